// CUDA kernels of ops/elementwise/unary.h and of its fused gradients, from the formulas of the
// CPU's.
#include "ops/elementwise/elementwise_cuda.cuh"
#include "ops/elementwise/unary_formulas.h"
#include "ops/elementwise/unary_op.h"

namespace flow::ops {

namespace {

template <class C>
struct LeakyReluOf {
  C slope;

  explicit LeakyReluOf(const void* attrs)
      : slope(static_cast<C>(static_cast<const LeakyReluAttrs*>(attrs)->negative_slope)) {}

  __device__ C operator()(C x) const { return x > C{0} ? x : slope * x; }

  __device__ C operator()(C dy, C x) const { return x > C{0} ? dy : slope * dy; }
};

template <class C>
struct EluOf {
  C alpha;

  explicit EluOf(const void* attrs)
      : alpha(static_cast<C>(static_cast<const EluAttrs*>(attrs)->alpha)) {}

  __device__ C operator()(C x) const { return x > C{0} ? x : alpha * std::expm1(x); }

  __device__ C operator()(C dy, C x) const { return x > C{0} ? dy : dy * (alpha * std::exp(x)); }
};

template <class C>
struct SoftplusOf {
  C beta, threshold;

  explicit SoftplusOf(const void* attrs)
      : beta(static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->beta)),
        threshold(static_cast<C>(static_cast<const SoftplusAttrs*>(attrs)->threshold)) {}

  __device__ C operator()(C x) const {
    return beta * x > threshold ? x : std::log1p(std::exp(beta * x)) / beta;
  }

  __device__ C operator()(C dy, C x) const {
    return beta * x > threshold ? dy : dy * Sigmoid::apply(beta * x);
  }
};

// ---- y and the inputs have one dtype

template <class F, class T>
void run_unary(const KernelContext& ctx) {
  run_elementwise<T, T>(ctx, DeviceFormula<F>());
}

template <class F, class T>
void run_predicate(const KernelContext& ctx) {
  run_elementwise<bool, T>(ctx, DeviceFormula<F>());
}

template <class F, class T>
void run_grad(const KernelContext& ctx) {
  run_elementwise<T, T, T>(ctx, DeviceFormula<F>());
}

template <template <class> class F, class T>
void run_with_attrs(const KernelContext& ctx) {
  run_elementwise<T, T>(ctx, F<DeviceCompute<T>>(ctx.attrs));
}

template <template <class> class F, class T>
void run_grad_with_attrs(const KernelContext& ctx) {
  run_elementwise<T, T, T>(ctx, F<DeviceCompute<T>>(ctx.attrs));
}

// Of floating inputs; others are not applicable.
template <class Pick>
KernelChoice by_floating(const KernelQuery& query, const Pick& pick) {
  if (!is_floating(query.input(0).dtype)) return {};
  KernelFn fn = nullptr;
  dispatch_floating(query.input(0).dtype, [&]<class T>() { fn = pick.template operator()<T>(); });
  return choose_elementwise(query, fn);
}

template <class Pick>
KernelChoice by_any(const KernelQuery& query, const Pick& pick) {
  KernelFn fn = nullptr;
  dispatch_all(query.input(0).dtype, [&]<class T>() { fn = pick.template operator()<T>(); });
  return choose_elementwise(query, fn);
}

template <class F>
KernelChoice select_unary(const KernelQuery& query) {
  return by_floating(query, []<class T>() -> KernelFn { return run_unary<F, T>; });
}

template <class F>
KernelChoice select_numeric(const KernelQuery& query) {
  return by_any(query, []<class T>() -> KernelFn {
    if constexpr (std::is_same_v<T, bool>) {
      return nullptr;
    } else {
      return run_unary<F, T>;
    }
  });
}

template <class F>
KernelChoice select_all(const KernelQuery& query) {
  return by_any(query, []<class T>() -> KernelFn { return run_unary<F, T>; });
}

template <class F>
KernelChoice select_predicate(const KernelQuery& query) {
  return by_any(query, []<class T>() -> KernelFn { return run_predicate<F, T>; });
}

template <class F>
KernelChoice select_grad(const KernelQuery& query) {
  return by_floating(query, []<class T>() -> KernelFn { return run_grad<F, T>; });
}

KernelChoice select_relu_grad(const KernelQuery& query) {
  return by_any(query, []<class T>() -> KernelFn { return run_grad<ReluGrad, T>; });
}

template <template <class> class F>
KernelChoice select_with_attrs(const KernelQuery& query) {
  return by_floating(query, []<class T>() -> KernelFn { return run_with_attrs<F, T>; });
}

template <template <class> class F>
KernelChoice select_grad_with_attrs(const KernelQuery& query) {
  return by_floating(query, []<class T>() -> KernelFn { return run_grad_with_attrs<F, T>; });
}

using Select = KernelChoice (*)(const KernelQuery& query);

void add(KernelTable& table, const OpDef& op, Select select) {
  table.add(op, DeviceType::kCuda, {"cuda", select});
}

void register_gradients(KernelTable& table) {
  add(table, kReluGrad, select_relu_grad);
  add(table, kTanhGrad, select_grad<TanhGrad>);
  add(table, kSigmoidGrad, select_grad<SigmoidGrad>);
  add(table, kGeluGrad, select_grad<GeluGrad>);
  add(table, kGeluTanhGrad, select_grad<GeluTanhGrad>);
  add(table, kSiluGrad, select_grad<SiluGrad>);
  add(table, kLeakyReluGrad, select_grad_with_attrs<LeakyReluOf>);
  add(table, kEluGrad, select_grad_with_attrs<EluOf>);
  add(table, kSoftplusGrad, select_grad_with_attrs<SoftplusOf>);
}

}  // namespace

void register_unary_cuda(KernelTable& table) {
  add(table, kNeg, select_numeric<Neg>);
  add(table, kAbs, select_all<Abs>);
  add(table, kSign, select_all<Sign>);
  add(table, kSquare, select_numeric<Square>);
  add(table, kFloor, select_numeric<Floor>);
  add(table, kCeil, select_numeric<Ceil>);
  add(table, kRound, select_numeric<Round>);
  add(table, kTrunc, select_numeric<Trunc>);
  add(table, kRelu, select_numeric<Relu>);
  add(table, kFrac, select_unary<Frac>);
  add(table, kExp, select_unary<Exp>);
  add(table, kExp2, select_unary<Exp2>);
  add(table, kExpm1, select_unary<Expm1>);
  add(table, kLog, select_unary<Log>);
  add(table, kLog2, select_unary<Log2>);
  add(table, kLog10, select_unary<Log10>);
  add(table, kLog1p, select_unary<Log1p>);
  add(table, kSqrt, select_unary<Sqrt>);
  add(table, kRsqrt, select_unary<Rsqrt>);
  add(table, kReciprocal, select_unary<Reciprocal>);
  add(table, kSin, select_unary<Sin>);
  add(table, kCos, select_unary<Cos>);
  add(table, kTanh, select_unary<Tanh>);
  add(table, kErf, select_unary<Erf>);
  add(table, kErfc, select_unary<Erfc>);
  add(table, kSinc, select_unary<Sinc>);
  add(table, kSigmoid, select_unary<Sigmoid>);
  add(table, kGelu, select_unary<Gelu>);
  add(table, kGeluTanh, select_unary<GeluTanh>);
  add(table, kSilu, select_unary<Silu>);
  add(table, kLeakyRelu, select_with_attrs<LeakyReluOf>);
  add(table, kElu, select_with_attrs<EluOf>);
  add(table, kSoftplus, select_with_attrs<SoftplusOf>);
  add(table, kIsnan, select_predicate<Isnan>);
  add(table, kIsinf, select_predicate<Isinf>);
  add(table, kIsfinite, select_predicate<Isfinite>);
  add(table, kLogicalNot, select_predicate<LogicalNot>);
  register_gradients(table);
}

}  // namespace flow::ops
