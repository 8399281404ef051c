// CUDA kernels of ops/elementwise/special.h.
#include <cmath>

#include "ops/elementwise/formulas_cuda.cuh"
#include "ops/elementwise/rows_cuda.cuh"
#include "ops/elementwise/special/functions.h"
#include "ops/elementwise/special_op.h"

namespace flow::ops {

void register_special_cuda(KernelTable& table);

namespace {

struct Lgamma {
  template <class C>
  static __device__ C apply(C x) {
    return static_cast<C>(
        std::lgamma(static_cast<double>(x)));  // near its roots float is not enough
  }
};

}  // namespace

void register_special_cuda(KernelTable& table) {
  add_formula<Applied<Lgamma>::Of, Elements::kFloating, 1>(table, kLgamma);
  add_formula<PolygammaOf, Elements::kFloating, 1>(table, kPolygamma);
  add_formula<Applied<Erfinv>::Of, Elements::kFloating, 1>(table, kErfinv);
  add_rows(table, SpecialRows());
}

}  // namespace flow::ops
