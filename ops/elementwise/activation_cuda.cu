// CUDA kernels of ops/elementwise/activation.h, from the formulas of the CPU's.
#include "ops/elementwise/activation_formulas.h"
#include "ops/elementwise/activation_op.h"
#include "ops/elementwise/formulas_cuda.cuh"

namespace flow::ops {

void register_activation_cuda(KernelTable& table);

namespace {

template <class C>
struct ScaledEluOf {
  C scale, below, rate;

  explicit ScaledEluOf(const void* attrs)
      : ScaledEluOf(*static_cast<const ScaledEluAttrs*>(attrs)) {}

  explicit ScaledEluOf(const ScaledEluAttrs& a)
      : scale(static_cast<C>(a.scale)),
        below(static_cast<C>(a.scale * a.alpha)),
        rate(static_cast<C>(a.rate)) {}

  __device__ C operator()(C x) const { return x > C{0} ? scale * x : below * std::expm1(rate * x); }
};

template <class C>
struct ScaledEluGradOf {
  C scale, below, rate;

  explicit ScaledEluGradOf(const void* attrs)
      : ScaledEluGradOf(*static_cast<const ScaledEluAttrs*>(attrs)) {}

  explicit ScaledEluGradOf(const ScaledEluAttrs& a)
      : scale(static_cast<C>(a.scale)),
        below(static_cast<C>(a.scale * a.alpha * a.rate)),
        rate(static_cast<C>(a.rate)) {}

  __device__ C operator()(C dy, C x) const {
    return x > C{0} ? dy * scale : dy * (below * std::exp(rate * x));
  }
};

template <class C>
struct HardtanhOf {
  C low, high;

  explicit HardtanhOf(const void* attrs)
      : low(static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->min_val)),
        high(static_cast<C>(static_cast<const HardtanhAttrs*>(attrs)->max_val)) {}

  __device__ C operator()(C x) const {
    const C raised = x < low ? low : x;
    return raised > high ? high : raised;
  }

  __device__ C operator()(C dy, C x) const { return x <= low || x >= high ? C{0} : dy; }
};

template <class F>
void add_forward(KernelTable& table, const OpDef& op) {
  add_formula<Applied<F>::template Of, Elements::kFloating, 1>(table, op);
}

template <class F>
void add_pair(KernelTable& table, const OpDef& op) {
  add_formula<Applied<F>::template Of, Elements::kFloating, 2>(table, op);
}

}  // namespace

void register_activation_cuda(KernelTable& table) {
  for (const OpDef* op : {&kCelu, &kSelu})
    add_formula<ScaledEluOf, Elements::kFloating, 1>(table, *op);
  add_forward<Mish>(table, kMish);
  add_forward<Hardswish>(table, kHardswish);
  add_forward<Hardsigmoid>(table, kHardsigmoid);
  add_formula<HardtanhOf, Elements::kFloating, 1>(table, kHardtanh);
  add_forward<Softsign>(table, kSoftsign);
  add_forward<Logsigmoid>(table, kLogsigmoid);
  add_pair<Prelu>(table, kPrelu);
  add_formula<ScaledEluGradOf, Elements::kFloating, 2>(table, kScaledEluGrad);
  add_pair<MishGrad>(table, kMishGrad);
  add_pair<HardswishGrad>(table, kHardswishGrad);
  add_pair<HardsigmoidGrad>(table, kHardsigmoidGrad);
  add_formula<HardtanhOf, Elements::kFloating, 2>(table, kHardtanhGrad);
  add_pair<SoftsignGrad>(table, kSoftsignGrad);
  add_pair<LogsigmoidGrad>(table, kLogsigmoidGrad);
}

}  // namespace flow::ops
