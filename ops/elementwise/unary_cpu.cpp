// Kernels of ops/elementwise/unary.h.
#include "ops/elementwise/row_kernels.h"
#include "ops/elementwise/unary_formulas.h"
#include "ops/elementwise/unary_op.h"
#include "ops/kernel/vector_math.h"

#include "ops/kernel/isa_begin.h"

namespace {

// The vector forms of rows.
// clang-format off
struct VectorForms {
  static auto of(Neg, auto x) { return -x; }
  static auto of(Abs, auto x) { return abs(x); }
  static auto of(Square, auto x) { return x * x; }
  static auto of(Floor, auto x) { return floor(x); }
  static auto of(Ceil, auto x) { return ceil(x); }
  static auto of(Round, auto x) { return round_even(x); }
  static auto of(Trunc, auto x) { return trunc(x); }
  static auto of(Frac, auto x) { return x - trunc(x); }
  static auto of(Exp, auto x) { return exp(x); }
  static auto of(Expm1, auto x) { return expm1(x); }
  static auto of(Log, auto x) { return log(x); }
  static auto of(Log1p, auto x) { return log1p(x); }
  static auto of(Sqrt, auto x) { return sqrt(x); }
  static auto of(Rsqrt, auto x) { return decltype(x)::fill(1) / sqrt(x); }
  static auto of(Reciprocal, auto x) { return decltype(x)::fill(1) / x; }
  static auto of(Sin, auto x) { return sin(x); }
  static auto of(Cos, auto x) { return cos(x); }
  static auto of(Tanh, auto x) { return tanh(x); }
  static auto of(Erf, auto x) { return erf(x); }
  static auto of(Sigmoid, auto x) { return sigmoid(x); }
  // max returns its second argument if either is NaN.
  static auto of(Relu, auto x) { return max(decltype(x)::zero(), x); }
  static auto of(Gelu, auto x) { return gelu_erf(x); }
  static auto of(GeluTanh, auto x) { return gelu_tanh(x); }
  static auto of(Silu, auto x) { return silu(x); }
};

// clang-format on

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

}  // namespace

void register_unary_cpu(KernelTable& table) {
  add_rows<VectorForms>(table, BasicRows());
#if FLOW_ISA == 0
  add_reference<OfAttrs<LeakyRelu>, Types::kFloating, 1>(table, kLeakyRelu);
  add_reference<OfAttrs<Elu>, Types::kFloating, 1>(table, kElu);
  add_reference<OfAttrs<Softplus>, Types::kFloating, 1>(table, kSoftplus);
#endif
  add_floating_unary<LeakyReluVector>(table, kLeakyRelu);
  add_floating_unary<EluVector>(table, kElu);
  add_floating_unary<SoftplusVector>(table, kSoftplus);
}

#include "ops/kernel/isa_end.h"
