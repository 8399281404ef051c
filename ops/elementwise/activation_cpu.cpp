// Kernels of ops/elementwise/activation.h.
#include "ops/elementwise/activation_formulas.h"
#include "ops/elementwise/activation_op.h"
#include "ops/elementwise/row_kernels.h"
#include "ops/kernel/vector_math.h"

#include "ops/kernel/isa_begin.h"

namespace {

// F is a function object over vectors.
template <class F>
struct VectorOf {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](auto... x) { return F()(x...); };
  }
};

template <class F>
void add_binary(KernelTable& table, const OpDef& op, F /*function*/) {
  add_floating_binary<VectorOf<F>>(table, op);
}

struct ScaledEluVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const ScaledEluAttrs*>(attrs);
    const auto scale = Vec<C>::fill(static_cast<C>(a.scale));
    const auto below = Vec<C>::fill(static_cast<C>(a.scale * a.alpha));
    const auto rate = Vec<C>::fill(static_cast<C>(a.rate));
    return [=](Vec<C> x) { return select(x > Vec<C>::zero(), scale * x, below * expm1(rate * x)); };
  }
};

struct ScaledEluGradVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const ScaledEluAttrs*>(attrs);
    const auto scale = Vec<C>::fill(static_cast<C>(a.scale));
    const auto below = Vec<C>::fill(static_cast<C>(a.scale * a.alpha * a.rate));
    const auto rate = Vec<C>::fill(static_cast<C>(a.rate));
    return [=](Vec<C> dy, Vec<C> x) {
      return select(x > Vec<C>::zero(), dy * scale, dy * (below * exp(rate * x)));
    };
  }
};

// min and max return their second argument if either is NaN.
struct HardtanhVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const HardtanhAttrs*>(attrs);
    const auto low = Vec<C>::fill(static_cast<C>(a.min_val));
    const auto high = Vec<C>::fill(static_cast<C>(a.max_val));
    return [=](Vec<C> x) { return min(high, max(low, x)); };
  }
};

struct HardtanhGradVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const HardtanhAttrs*>(attrs);
    const auto low = Vec<C>::fill(static_cast<C>(a.min_val));
    const auto high = Vec<C>::fill(static_cast<C>(a.max_val));
    return [=](Vec<C> dy, Vec<C> x) {
      const Vec<C> below_high = select(x >= high, Vec<C>::zero(), dy);
      return select(x <= low, Vec<C>::zero(), below_high);
    };
  }
};

template <class C>
Vec<C> relu6_of(Vec<C> x) {
  return min(Vec<C>::fill(6), max(Vec<C>::zero(), x));
}

// With e = exp(x), tanh(log(1 + e)) = n / (n + 2), n = e (e + 2); it is 1 in double from 20 on.
template <class C>
Vec<C> mish_of(Vec<C> x) {
  const Vec<C> two = Vec<C>::fill(2);
  const Vec<C> e = exp(min(Vec<C>::fill(20), x));
  const Vec<C> n = e * (e + two);
  return x * (n / (n + two));
}

// n / (n + 2) + 4 x e (1 + e) / (n + 2)^2
template <class C>
Vec<C> mish_slope(Vec<C> x) {
  const Vec<C> two = Vec<C>::fill(2);
  const Vec<C> z = min(Vec<C>::fill(20), x);
  const Vec<C> e = exp(z);
  const Vec<C> n = e * (e + two);
  const Vec<C> inverse = Vec<C>::fill(1) / (n + two);
  const Vec<C> bend = Vec<C>::fill(4) * (e * fma(e, inverse, inverse)) * inverse;
  return fma(z, bend, n * inverse);
}

struct VectorForms {
  static auto of(Mish, auto x) { return mish_of(x); }

  static auto of(Hardswish, auto x) {
    return x * relu6_of(x + decltype(x)::fill(3)) / decltype(x)::fill(6);
  }

  static auto of(Hardsigmoid, auto x) {
    return relu6_of(x + decltype(x)::fill(3)) / decltype(x)::fill(6);
  }

  static auto of(Softsign, auto x) { return x / (decltype(x)::fill(1) + abs(x)); }

  static auto of(Logsigmoid, auto x) { return -softplus(-x); }
};

void register_forward(KernelTable& table) {
  add_rows<VectorForms>(table, ActivationRows());
#if FLOW_ISA == 0
  for (const OpDef* op : {&kCelu, &kSelu})
    add_reference<OfAttrs<ScaledElu>, Types::kFloating, 1>(table, *op);
  add_reference<OfAttrs<Hardtanh>, Types::kFloating, 1>(table, kHardtanh);
  add_reference<OfTensors<Prelu>, Types::kFloating, 2>(table, kPrelu);
#endif
  for (const OpDef* op : {&kCelu, &kSelu})
    add_floating_unary<ScaledEluVector>(table, *op);
  add_floating_unary<HardtanhVector>(table, kHardtanh);
  add_binary(table, kPrelu,
             [](auto x, auto weight) { return select(x > decltype(x)::zero(), x, weight * x); });
}

void register_gradients(KernelTable& table) {
#if FLOW_ISA == 0
  add_reference<OfAttrs<ScaledEluGrad>, Types::kFloating, 2>(table, kScaledEluGrad);
  add_reference<OfTensors<MishGrad>, Types::kFloating, 2>(table, kMishGrad);
  add_reference<OfTensors<HardswishGrad>, Types::kFloating, 2>(table, kHardswishGrad);
  add_reference<OfTensors<HardsigmoidGrad>, Types::kFloating, 2>(table, kHardsigmoidGrad);
  add_reference<OfAttrs<Hardtanh>, Types::kFloating, 2>(table, kHardtanhGrad);
  add_reference<OfTensors<SoftsignGrad>, Types::kFloating, 2>(table, kSoftsignGrad);
  add_reference<OfTensors<LogsigmoidGrad>, Types::kFloating, 2>(table, kLogsigmoidGrad);
#endif
  add_floating_binary<ScaledEluGradVector>(table, kScaledEluGrad);
  add_floating_binary<HardtanhGradVector>(table, kHardtanhGrad);
  add_binary(table, kMishGrad, [](auto dy, auto x) { return dy * mish_slope(x); });
  add_binary(table, kHardswishGrad, [](auto dy, auto x) {
    using V = decltype(x);
    const V between = dy * (x / V::fill(3) + V::fill(0.5F));
    const V not_low = select(x >= V::fill(3), dy, between);
    return select(x <= V::fill(-3), V::zero(), not_low);
  });
  add_binary(table, kHardsigmoidGrad, [](auto dy, auto x) {
    using V = decltype(x);
    return select(abs(x) < V::fill(3), dy * V::fill(1.0F / 6.0F), V::zero());
  });
  add_binary(table, kSoftsignGrad, [](auto dy, auto x) {
    const auto size = decltype(x)::fill(1) + abs(x);
    return dy / size / size;
  });
  add_binary(table, kLogsigmoidGrad, [](auto dy, auto x) { return dy * sigmoid(-x); });
}

}  // namespace

void register_activation_cpu(KernelTable& table) {
  register_forward(table);
  register_gradients(table);
}

#include "ops/kernel/isa_end.h"
