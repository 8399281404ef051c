// Kernels of ops/elementwise/ternary.h: three reads and one write for each element.
#include "ops/elementwise/row_kernels.h"

#include "ops/kernel/isa_begin.h"

void register_ternary_cpu(KernelTable& table);

namespace {

// The vector forms of rows.
struct VectorForms {
  static auto of(Addcmul, auto x, auto a, auto b, auto value) { return fma(value, a * b, x); }

  static auto of(Addcdiv, auto x, auto a, auto b, auto value) { return fma(value, a / b, x); }

  template <class C>
  static auto of(Lerp, Vec<C> start, Vec<C> end, Vec<C> weight) {
    const Vec<C> distance = end - start;
    const auto is_near = abs(weight) < Vec<C>::fill(C{0.5});
    const Vec<C> left = weight - Vec<C>::fill(C{1});
    return fma(select(is_near, weight, left), distance, select(is_near, start, end));
  }

  static auto of(LerpNumber, auto start, auto end, auto weight) {
    return of(Lerp(), start, end, weight);
  }
};

}  // namespace

void register_ternary_cpu(KernelTable& table) {
  add_rows<VectorForms>(table, TernaryRows());
}

#include "ops/kernel/isa_end.h"
