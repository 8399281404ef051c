// Kernels of ops/elementwise/unary.h.
#include "ops/elementwise/elementwise_formulas.h"
#include "ops/elementwise/elementwise_loops.h"
#include "ops/elementwise/unary_formulas.h"
#include "ops/elementwise/unary_op.h"
#include "ops/kernel/vector_math.h"

#include "ops/kernel/isa_begin.h"

namespace {

// F is a function object over vectors.
template <class F>
struct VectorOf {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](Vec<C> x) { return F()(x); };
  }
};

template <class F>
void add_vectors_of(KernelTable& table, const OpDef& op, F /*function*/) {
  add_floating_unary<VectorOf<F>>(table, op);
}

struct LeakyReluVector {
  template <class C>
  static auto make(const void* attrs) {
    const double slope = static_cast<const LeakyReluAttrs*>(attrs)->negative_slope;
    const auto factor = Vec<C>::fill(static_cast<C>(slope));
    return [factor](Vec<C> x) { return select(x > Vec<C>::zero(), x, factor * x); };
  }
};

struct EluVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto alpha = Vec<C>::fill(static_cast<C>(static_cast<const EluAttrs*>(attrs)->alpha));
    return [alpha](Vec<C> x) { return select(x > Vec<C>::zero(), x, alpha * expm1(x)); };
  }
};

struct SoftplusVector {
  template <class C>
  static auto make(const void* attrs) {
    const auto& a = *static_cast<const SoftplusAttrs*>(attrs);
    const auto beta = Vec<C>::fill(static_cast<C>(a.beta));
    const auto threshold = Vec<C>::fill(static_cast<C>(a.threshold));
    return [beta, threshold](Vec<C> x) {
      return select(beta * x > threshold, x, softplus(beta * x) / beta);
    };
  }
};

template <class F>
void add_predicate(KernelTable& table, const OpDef& op) {
#if FLOW_ISA == 0
  add_reference_predicate<OfTensor<F>, Types::kAll, 1>(table, op);
#endif
  add_loops<OfTensor<F>, bool, double>(table, op);
  add_loops<OfTensor<F>, bool, float>(table, op);
}

#if FLOW_ISA == 0
// The C library's function, one element at a time; the reference for 16-bit floats only.
template <class F>
void add_elements(KernelTable& table, const OpDef& op) {
  add_reference<OfTensor<F>, Types::kFloating, 1>(table, op);
  add_loops<OfTensor<F>, double, double>(table, op);
  add_loops<OfTensor<F>, float, float>(table, op);
}

template <class F>
void add_floating_reference(KernelTable& table, const OpDef& op) {
  add_reference<OfTensor<F>, Types::kFloating, 1>(table, op);
}

void register_references(KernelTable& table) {
  add_reference<OfTensor<Neg>, Types::kNumeric, 1>(table, kNeg);
  add_reference<OfTensor<Abs>, Types::kAll, 1>(table, kAbs);
  add_reference<OfTensor<Sign>, Types::kAll, 1>(table, kSign);
  add_reference<OfTensor<Square>, Types::kAll, 1>(table, kSquare);
  add_reference<OfTensor<Floor>, Types::kNumeric, 1>(table, kFloor);
  add_reference<OfTensor<Ceil>, Types::kNumeric, 1>(table, kCeil);
  add_reference<OfTensor<Round>, Types::kNumeric, 1>(table, kRound);
  add_reference<OfTensor<Trunc>, Types::kNumeric, 1>(table, kTrunc);
  add_reference<OfTensor<Relu>, Types::kNumeric, 1>(table, kRelu);
  add_floating_reference<Frac>(table, kFrac);
  add_floating_reference<Exp>(table, kExp);
  add_floating_reference<Expm1>(table, kExpm1);
  add_floating_reference<Log>(table, kLog);
  add_floating_reference<Log1p>(table, kLog1p);
  add_floating_reference<Sqrt>(table, kSqrt);
  add_floating_reference<Rsqrt>(table, kRsqrt);
  add_floating_reference<Reciprocal>(table, kReciprocal);
  add_floating_reference<Sin>(table, kSin);
  add_floating_reference<Cos>(table, kCos);
  add_floating_reference<Tanh>(table, kTanh);
  add_floating_reference<Erf>(table, kErf);
  add_floating_reference<Sigmoid>(table, kSigmoid);
  add_floating_reference<Gelu>(table, kGelu);
  add_floating_reference<GeluTanh>(table, kGeluTanh);
  add_floating_reference<Silu>(table, kSilu);
  add_reference<LeakyRelu, Types::kFloating, 1>(table, kLeakyRelu);
  add_reference<Elu, Types::kFloating, 1>(table, kElu);
  add_reference<Softplus, Types::kFloating, 1>(table, kSoftplus);
}
#endif

}  // namespace

void register_unary_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_references(table);
  add_elements<Exp2>(table, kExp2);
  add_elements<Log2>(table, kLog2);
  add_elements<Log10>(table, kLog10);
  add_elements<Erfc>(table, kErfc);
  add_elements<Sinc>(table, kSinc);
#endif
  add_predicate<Isnan>(table, kIsnan);
  add_predicate<Isinf>(table, kIsinf);
  add_predicate<Isfinite>(table, kIsfinite);
  add_predicate<LogicalNot>(table, kLogicalNot);

  add_vectors_of(table, kNeg, [](auto x) { return -x; });
  add_vectors_of(table, kAbs, [](auto x) { return abs(x); });
  add_vectors_of(table, kSquare, [](auto x) { return x * x; });
  add_vectors_of(table, kFloor, [](auto x) { return floor(x); });
  add_vectors_of(table, kCeil, [](auto x) { return ceil(x); });
  add_vectors_of(table, kRound, [](auto x) { return round_even(x); });
  add_vectors_of(table, kTrunc, [](auto x) { return trunc(x); });
  add_vectors_of(table, kFrac, [](auto x) { return x - trunc(x); });
  add_vectors_of(table, kExp, [](auto x) { return exp(x); });
  add_vectors_of(table, kExpm1, [](auto x) { return expm1(x); });
  add_vectors_of(table, kLog, [](auto x) { return log(x); });
  add_vectors_of(table, kLog1p, [](auto x) { return log1p(x); });
  add_vectors_of(table, kSqrt, [](auto x) { return sqrt(x); });
  add_vectors_of(table, kRsqrt, [](auto x) { return decltype(x)::fill(1) / sqrt(x); });
  add_vectors_of(table, kReciprocal, [](auto x) { return decltype(x)::fill(1) / x; });
  add_vectors_of(table, kSin, [](auto x) { return sin(x); });
  add_vectors_of(table, kCos, [](auto x) { return cos(x); });
  add_vectors_of(table, kTanh, [](auto x) { return tanh(x); });
  add_vectors_of(table, kErf, [](auto x) { return erf(x); });
  add_vectors_of(table, kSigmoid, [](auto x) { return sigmoid(x); });
  // max gives its second argument where either is NaN.
  add_vectors_of(table, kRelu, [](auto x) { return max(decltype(x)::zero(), x); });
  add_vectors_of(table, kGelu, [](auto x) { return gelu_erf(x); });
  add_vectors_of(table, kGeluTanh, [](auto x) { return gelu_tanh(x); });
  add_vectors_of(table, kSilu, [](auto x) { return silu(x); });
  add_floating_unary<LeakyReluVector>(table, kLeakyRelu);
  add_floating_unary<EluVector>(table, kElu);
  add_floating_unary<SoftplusVector>(table, kSoftplus);
}

#include "ops/kernel/isa_end.h"
