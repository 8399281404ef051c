// Kernels of ops/elementwise/bitwise.h.
#include <cstdint>
#include <type_traits>

#include "ops/elementwise/bitwise_op.h"
#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"

#include "ops/kernel/isa_begin.h"

namespace {

// f(a, b), of integers; no call has floats.
template <class T, class F>
T of_bits(T a, T b, F f) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(f(a, b));
  } else {
    return a;
  }
}

struct And {
  template <class T>
  static T apply(T a, T b) {
    return of_bits(a, b, [](auto x, auto y) { return x & y; });
  }
};

struct Or {
  template <class T>
  static T apply(T a, T b) {
    return of_bits(a, b, [](auto x, auto y) { return x | y; });
  }
};

struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return of_bits(a, b, [](auto x, auto y) { return x ^ y; });
  }
};

struct Not {
  template <class T>
  static T apply(T x) {
    if constexpr (std::is_same_v<T, bool>) {
      return !x;
    } else {
      return of_bits(x, x, [](auto a, auto /*a*/) { return ~a; });
    }
  }
};

template <class T>
bool is_within_width(T bits) {
  if constexpr (std::is_signed_v<T>) {
    if (bits < 0) return false;
  }
  return static_cast<uint64_t>(bits) < 8 * sizeof(T);
}

struct LeftShift {
  template <class T>
  static T apply(T a, T b) {
    return of_bits(a, b, [](auto x, auto bits) {
      return is_within_width(bits) ? static_cast<T>(static_cast<uint64_t>(x) << bits) : T{0};
    });
  }
};

struct RightShift {
  template <class T>
  static T apply(T a, T b) {
    return of_bits(a, b, [](auto x, auto bits) {
      return static_cast<T>(is_within_width(bits) ? x >> bits : x < T{0} ? -1 : 0);
    });
  }
};

template <class F>
void add_binary(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  add_reference<OfTensors<F>, Types::kAll, 2>(table, op);
#endif
  add_loops<OfTensors<F>, bool, bool, bool>(table, op);
  add_loops<OfTensors<F>, int32_t, int32_t, int32_t>(table, op);
  add_loops<OfTensors<F>, int64_t, int64_t, int64_t>(table, op);
}

}  // namespace

void register_bitwise_cpu(KernelTable& table) {
  add_binary<And>(table, kBitwiseAnd);
  add_binary<Or>(table, kBitwiseOr);
  add_binary<Xor>(table, kBitwiseXor);
#if FLOW_ISA == 0
  add_reference<OfTensor<Not>, Types::kAll, 1>(table, kBitwiseNot);
  add_reference<OfTensors<LeftShift>, Types::kNumeric, 2>(table, kLeftShift);
  add_reference<OfTensors<RightShift>, Types::kNumeric, 2>(table, kRightShift);
#endif
  add_loops<OfTensor<Not>, bool, bool>(table, kBitwiseNot);
  add_loops<OfTensor<Not>, int32_t, int32_t>(table, kBitwiseNot);
  add_loops<OfTensor<Not>, int64_t, int64_t>(table, kBitwiseNot);
}

#include "ops/kernel/isa_end.h"
