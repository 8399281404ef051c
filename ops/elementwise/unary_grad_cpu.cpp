// Kernels of the fused gradients of activations.
#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/unary_formulas.h"
#include "ops/elementwise/unary_op.h"
#include "ops/kernel/vector_math.h"

#include "ops/kernel/isa_begin.h"

namespace {

// F is a function object over vectors.
template <class F>
struct VectorsOf {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](Vec<C> dy, Vec<C> s) { return F()(dy, s); };
  }
};

template <class F>
void add_vectors_of(KernelTable& table, const OpDef& op, F /*function*/) {
  add_floating_binary<VectorsOf<F>>(table, op);
}

struct LeakyReluGradVector {
  template <class C>
  static auto make(const void* attrs) {
    const double slope = static_cast<const LeakyReluAttrs*>(attrs)->negative_slope;
    const auto factor = Vec<C>::fill(static_cast<C>(slope));
    return [factor](Vec<C> dy, Vec<C> x) { return select(x > Vec<C>::zero(), dy, factor * dy); };
  }
};

struct EluGradVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto alpha = Vec<C>::fill(static_cast<C>(static_cast<const EluAttrs*>(attrs)->alpha));
    return [alpha](Vec<C> dy, Vec<C> x) {
      return select(x > Vec<C>::zero(), dy, dy * (alpha * exp(x)));
    };
  }
};

struct SoftplusGradVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const SoftplusAttrs*>(attrs);
    const auto beta = Vec<C>::fill(static_cast<C>(a.beta));
    const auto threshold = Vec<C>::fill(static_cast<C>(a.threshold));
    return [beta, threshold](Vec<C> dy, Vec<C> x) {
      return select(beta * x > threshold, dy, dy * sigmoid(beta * x));
    };
  }
};

#if FLOW_ISA == 0
template <class F>
void add_floating_reference(KernelTable& table, const OpDef& op) {
  add_reference<F, Types::kFloating, 2>(table, op);
}

void register_references(KernelTable& table) {
  add_reference<OfTensors<ReluGrad>, Types::kAll, 2>(table, kReluGrad);
  add_floating_reference<OfTensors<TanhGrad>>(table, kTanhGrad);
  add_floating_reference<OfTensors<SigmoidGrad>>(table, kSigmoidGrad);
  add_floating_reference<OfTensors<GeluGrad>>(table, kGeluGrad);
  add_floating_reference<OfTensors<GeluTanhGrad>>(table, kGeluTanhGrad);
  add_floating_reference<OfTensors<SiluGrad>>(table, kSiluGrad);
  add_floating_reference<OfAttrs<LeakyRelu>>(table, kLeakyReluGrad);
  add_floating_reference<OfAttrs<Elu>>(table, kEluGrad);
  add_floating_reference<OfAttrs<Softplus>>(table, kSoftplusGrad);
}
#endif

}  // namespace

void register_unary_grad_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_references(table);
#endif
  add_vectors_of(table, kReluGrad, [](auto dy, auto y) {
    return select(y <= decltype(y)::zero(), decltype(y)::zero(), dy);
  });
  add_vectors_of(table, kTanhGrad,
                 [](auto dy, auto y) { return dy * fnma(y, y, decltype(y)::fill(1)); });
  add_vectors_of(table, kSigmoidGrad,
                 [](auto dy, auto y) { return dy * (y * (decltype(y)::fill(1) - y)); });
  add_vectors_of(table, kGeluGrad, [](auto dy, auto x) { return dy * gelu_erf_slope(x); });
  add_vectors_of(table, kGeluTanhGrad, [](auto dy, auto x) { return dy * gelu_tanh_slope(x); });
  add_vectors_of(table, kSiluGrad, [](auto dy, auto x) {
    const auto one = decltype(x)::fill(1);
    const auto s = sigmoid(x);
    return dy * (s * fma(x, one - s, one));
  });
  add_floating_binary<LeakyReluGradVector>(table, kLeakyReluGrad);
  add_floating_binary<EluGradVector>(table, kEluGrad);
  add_floating_binary<SoftplusGradVector>(table, kSoftplusGrad);
}

#include "ops/kernel/isa_end.h"
