// Kernels of ops/elementwise/binary.h.
#include "ops/elementwise/row_kernels.h"

#include "ops/kernel/isa_begin.h"

namespace {

// The vector forms of rows.
// clang-format off
struct VectorForms {
  static auto of(Add, auto a, auto b, auto alpha) { return fma(alpha, b, a); }
  static auto of(Sub, auto a, auto b) { return a - b; }
  static auto of(Mul, auto a, auto b) { return a * b; }
  static auto of(Div, auto a, auto b) { return a / b; }
  static auto of(Maximum, auto a, auto b) { return maximum(a, b); }
  static auto of(Minimum, auto a, auto b) { return minimum(a, b); }
  static auto of(AddNumber, auto x, auto c) { return x + c; }
  static auto of(SubNumber, auto x, auto c) { return x - c; }
  static auto of(NumberSub, auto x, auto c) { return c - x; }
  static auto of(MulNumber, auto x, auto c) { return x * c; }
  static auto of(DivNumber, auto x, auto c) { return x / c; }
  static auto of(NumberDiv, auto x, auto c) { return c / x; }
};

// clang-format on

// These powers are cheaper than pow; PyTorch treats them in the same way. Others are computed one
// element at a time.
struct PowBlock {
  template <class T>
  static void run(const void* attrs, T* y, int64_t n, const T* x) {
    using C = Compute<T>;
    const double power = static_cast<const ScalarAttrs*>(attrs)->value.to<double>();
    if (power == 2) {
      map(
          y, n, [](auto v) { return v * v; }, x);
    } else if (power == 3) {
      map(
          y, n, [](auto v) { return v * v * v; }, x);
    } else if (power == 0.5) {
      map(
          y, n, [](auto v) { return sqrt(v); }, x);
    } else if (power == -1) {
      map(
          y, n, [](auto v) { return Vec<C>::fill(1) / v; }, x);
    } else {
      LoopBlock<RowLoop<PowNumber>>::run(attrs, y, n, x);
    }
  }
};

}  // namespace

void register_binary_cpu(KernelTable& table) {
  add_rows<VectorForms>(table, ArithmeticRows());
  add_kernel<PowBlock, double, double>(table, op_of<PowNumber>());
  add_kernel<PowBlock, float, float>(table, op_of<PowNumber>());
}

#include "ops/kernel/isa_end.h"
