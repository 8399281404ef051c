// Kernels of ops/elementwise/binary.h.
#include "ops/elementwise/row_kernels.h"
#include "ops/kernel/vector_pow.h"

#include "ops/kernel/isa_begin.h"

namespace {

// The vector forms of rows.
// clang-format off
struct VectorForms {
  static auto of(Add, auto a, auto b, auto alpha) { return fma(alpha, b, a); }
  static auto of(Sub, auto a, auto b) { return a - b; }
  static auto of(Mul, auto a, auto b) { return a * b; }
  static auto of(Div, auto a, auto b) { return a / b; }
  static auto of(Pow, auto a, auto b) { return pow(a, b); }
  static auto of(Maximum, auto a, auto b) { return maximum(a, b); }
  static auto of(Minimum, auto a, auto b) { return minimum(a, b); }
  static auto of(AddNumber, auto x, auto c) { return x + c; }
  static auto of(SubNumber, auto x, auto c) { return x - c; }
  static auto of(NumberSub, auto x, auto c) { return c - x; }
  static auto of(MulNumber, auto x, auto c) { return x * c; }
  static auto of(DivNumber, auto x, auto c) { return x / c; }
  static auto of(NumberDiv, auto x, auto c) { return c / x; }
  static auto of(NumberPow, auto x, auto c) { return pow(c, x); }
};

// clang-format on

// These powers, among them the factors of their gradients, are cheaper than pow.
struct PowBlock {
  template <class T>
  static void run(const void* attrs, T* y, int64_t n, const T* x) {
    using C = Compute<T>;
    const double power = static_cast<const ScalarAttrs*>(attrs)->value.to<double>();
    const auto each = [&](auto f) { map_ahead(y, n, f, x); };
    const auto one = Vec<C>::fill(1);
    if (power == 1) {
      each([](auto v) { return v; });
    } else if (power == 2) {
      each([](auto v) { return v * v; });
    } else if (power == 3) {
      each([](auto v) { return v * v * v; });
    } else if (power == 0.5) {
      each([](auto v) { return sqrt(v); });
    } else if (power == -1) {
      each([one](auto v) { return one / v; });
    } else if (power == -2) {
      each([one](auto v) { return (one / v) * (one / v); });
    } else {
      const auto exponent = Vec<C>::fill(static_cast<C>(power));
      each([exponent](auto v) { return pow(v, exponent); });
    }
  }
};

}  // namespace

void register_binary_cpu(KernelTable& table) {
  add_rows<VectorForms>(table, ArithmeticRows());
  add_kernel<PowBlock, Float16, Float16>(table, op_of<PowNumber>());
  add_kernel<PowBlock, BFloat16, BFloat16>(table, op_of<PowNumber>());
  add_kernel<PowBlock, double, double>(table, op_of<PowNumber>());
  add_kernel<PowBlock, float, float>(table, op_of<PowNumber>());
}

#include "ops/kernel/isa_end.h"
