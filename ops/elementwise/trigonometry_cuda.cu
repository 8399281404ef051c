// CUDA kernels of ops/elementwise/trigonometry.h.
#include <cmath>

#include "ops/elementwise/trigonometry_op.h"
#include "ops/elementwise/unary_rows_cuda.cuh"

namespace flow::ops {

void register_trigonometry_cuda(KernelTable& table);

namespace {

struct Atan2 {
  template <class C>
  static __device__ C apply(C y, C x) {
    return std::atan2(y, x);
  }
};

}  // namespace

void register_trigonometry_cuda(KernelTable& table) {
  add_rows(table, TrigonometryRows());
  add_formula<Applied<Atan2>::Of, Elements::kFloating, 2>(table, kAtan2);
}

}  // namespace flow::ops
