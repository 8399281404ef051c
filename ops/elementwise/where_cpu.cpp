// Kernels of ops/elementwise/where.h.
#include <bit>
#include <cstdint>
#include <type_traits>

#include "core/float16.h"
#include "ops/elementwise/row_kernels.h"

#include "ops/kernel/isa_begin.h"

namespace {

template <class T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// A choice between bits is one that the compiler vectorises without branches. A bool is 0 or 1.
template <class Bits>
Bits choose(uint8_t condition, Bits a, Bits b) {
  const auto all = static_cast<Bits>(-static_cast<Bits>(condition));
  return static_cast<Bits>((a & all) | (b & ~all));
}

template <class T>
const BitsOf<T>* bits_of(const T* x) {
  return reinterpret_cast<const BitsOf<T>*>(x);
}

struct WhereBlock {
  template <class T>
  static void run(const void* /*attrs*/, T* y, int64_t n, const bool* condition, const T* a,
                  const T* b) {
    auto* chosen = reinterpret_cast<BitsOf<T>*>(y);
    const uint8_t* is_a = bits_of(condition);
    const BitsOf<T>* a_bits = bits_of(a);
    const BitsOf<T>* b_bits = bits_of(b);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      chosen[i] = choose(is_a[i], a_bits[i], b_bits[i]);
  }
};

struct MaskedFillBlock {
  template <class T>
  static void run(const void* attrs, T* y, int64_t n, const T* x, const bool* mask) {
    using Bits = BitsOf<T>;
    const T number = static_cast<const ScalarAttrs*>(attrs)->value.to<T>();
    const auto value = std::bit_cast<Bits>(number);
    auto* filled = reinterpret_cast<Bits*>(y);
    const Bits* x_bits = bits_of(x);
    const uint8_t* is_filled = bits_of(mask);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i)
      filled[i] = choose(is_filled[i], value, x_bits[i]);
  }
};

template <class... T>
void add_choices(KernelTable& table) {
  (add_kernel<WhereBlock, T, bool, T, T>(table, op_of<Where>()), ...);
  (add_kernel<MaskedFillBlock, T, T, bool>(table, op_of<MaskedFill>()), ...);
}

}  // namespace

void register_where_cpu(KernelTable& table) {
  add_rows<NoVectorForms>(table, ChoiceRows());
  add_choices<bool, uint8_t, int8_t, int16_t, int32_t, int64_t, Float16, BFloat16, double, float>(
      table);
}

#include "ops/kernel/isa_end.h"
