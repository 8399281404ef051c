// CUDA kernels of ops/elementwise/trigonometry.h.
#include <cmath>

#include "ops/elementwise/formulas_cuda.cuh"
#include "ops/elementwise/trigonometry_op.h"

namespace flow::ops {

void register_trigonometry_cuda(KernelTable& table);

namespace {

#define FLOW_FUNCTION(Name, function) \
  struct Name {                       \
    template <class C>                \
    static __device__ C apply(C x) {  \
      return std::function(x);        \
    }                                 \
  }

FLOW_FUNCTION(Tan, tan);
FLOW_FUNCTION(Asin, asin);
FLOW_FUNCTION(Acos, acos);
FLOW_FUNCTION(Atan, atan);
FLOW_FUNCTION(Sinh, sinh);
FLOW_FUNCTION(Cosh, cosh);
FLOW_FUNCTION(Asinh, asinh);
FLOW_FUNCTION(Acosh, acosh);
FLOW_FUNCTION(Atanh, atanh);
#undef FLOW_FUNCTION

struct Atan2 {
  template <class C>
  static __device__ C apply(C y, C x) {
    return std::atan2(y, x);
  }
};

template <class F>
void add(KernelTable& table, const OpDef& op) {
  add_formula<Applied<F>::template Of, Elements::kFloating, 1>(table, op);
}

}  // namespace

void register_trigonometry_cuda(KernelTable& table) {
  add<Tan>(table, kTan);
  add<Asin>(table, kAsin);
  add<Acos>(table, kAcos);
  add<Atan>(table, kAtan);
  add<Sinh>(table, kSinh);
  add<Cosh>(table, kCosh);
  add<Asinh>(table, kAsinh);
  add<Acosh>(table, kAcosh);
  add<Atanh>(table, kAtanh);
  add_formula<Applied<Atan2>::Of, Elements::kFloating, 2>(table, kAtan2);
}

}  // namespace flow::ops
