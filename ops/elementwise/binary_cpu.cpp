// Kernels of ops/elementwise/binary.h.
#include "ops/elementwise/binary_formulas.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/elementwise_loops.h"

#include "ops/kernel/isa_begin.h"

namespace {

// a + alpha b
struct AddScaled {
  template <class C>
  static auto make(const void* attrs) {
    const double alpha = static_cast<const AddAttrs*>(attrs)->alpha;
    const C scale = static_cast<C>(alpha);
    return [scale](C a, C b) { return Add::apply(a, Mul::apply(scale, b)); };
  }
};

struct AddScaledVector {
  template <class C>
  static auto make(const void* attrs) {
    const double alpha = static_cast<const AddAttrs*>(attrs)->alpha;
    const auto scale = Vec<C>::fill(static_cast<C>(alpha));
    return [scale](Vec<C> a, Vec<C> b) { return fma(scale, b, a); };
  }
};

// F is a function object over vectors.
template <class F>
struct VectorsOf {
  template <class C>
  static auto make(const void* /*attrs*/) {
    return [](Vec<C> a, Vec<C> b) { return F()(a, b); };
  }
};

template <class F>
struct VectorWithScalar {
  template <class C>
  static auto make(const void* attrs) {
    const auto value = static_cast<const ScalarAttrs*>(attrs)->value;
    const auto s = Vec<C>::fill(value.template to<C>());
    return [s](Vec<C> x) { return F()(x, s); };
  }
};

template <class F>
void add_vectors_of(KernelTable& table, const OpDef& op, F /*function*/) {
  add_floating_binary<VectorsOf<F>>(table, op);
}

template <class F>
void add_vectors_with_scalar(KernelTable& table, const OpDef& op, F /*function*/) {
  add_floating_unary<VectorWithScalar<F>>(table, op);
}

template <class F>
void add_integers(KernelTable& table, const OpDef& op) {
  add_loops<F, int32_t, int32_t, int32_t>(table, op);
  add_loops<F, int64_t, int64_t, int64_t>(table, op);
}

template <class F>
void add_integers_with_scalar(KernelTable& table, const OpDef& op) {
  add_loops<F, int32_t, int32_t>(table, op);
  add_loops<F, int64_t, int64_t>(table, op);
}

// These powers are cheaper than pow; PyTorch treats them in the same way. Others are computed one
// element at a time.
struct PowBlock {
  template <class T>
  static void run(const void* attrs, T* y, int64_t n, const T* x) {
    using C = Compute<T>;
    const double power = static_cast<const ScalarAttrs*>(attrs)->value.to<double>();
    if (power == 2) {
      map(
          y, n, [](auto v) { return v * v; }, x);
    } else if (power == 3) {
      map(
          y, n, [](auto v) { return v * v * v; }, x);
    } else if (power == 0.5) {
      map(
          y, n, [](auto v) { return sqrt(v); }, x);
    } else if (power == -1) {
      map(
          y, n, [](auto v) { return Vec<C>::fill(1) / v; }, x);
    } else {
      LoopBlock<WithScalar<Pow>>::run(attrs, y, n, x);
    }
  }
};

#if FLOW_ISA == 0
// Functions of the C library, one element at a time.
template <class F>
void add_elements(KernelTable& table, const OpDef& op) {
  add_reference<OfTensors<F>, Types::kFloating, 2>(table, op);
  add_loops<OfTensors<F>, double, double, double>(table, op);
  add_loops<OfTensors<F>, float, float, float>(table, op);
}

template <class F>
void add_scalar_reference(KernelTable& table, const OpDef& op) {
  add_reference<WithScalar<F>, Types::kNumeric, 1>(table, op);
}

void register_references(KernelTable& table) {
  add_reference<AddScaled, Types::kAll, 2>(table, kAdd);
  add_reference<OfTensors<Sub>, Types::kNumeric, 2>(table, kSub);
  add_reference<OfTensors<Mul>, Types::kAll, 2>(table, kMul);
  add_reference<OfTensors<Div>, Types::kFloating, 2>(table, kDiv);
  add_reference<OfTensors<Pow>, Types::kNumeric, 2>(table, kPow);
  add_reference<OfTensors<FloorDivide>, Types::kNumeric, 2>(table, kFloorDivide);
  add_reference<OfTensors<TruncDivide>, Types::kNumeric, 2>(table, kTruncDivide);
  add_reference<OfTensors<Fmod>, Types::kNumeric, 2>(table, kFmod);
  add_reference<OfTensors<Remainder>, Types::kNumeric, 2>(table, kRemainder);
  add_reference<OfTensors<Maximum>, Types::kAll, 2>(table, kMaximum);
  add_reference<OfTensors<Minimum>, Types::kAll, 2>(table, kMinimum);

  add_reference<WithScalar<Add>, Types::kAll, 1>(table, kAddScalar);
  add_reference<WithScalar<Mul>, Types::kAll, 1>(table, kMulScalar);
  add_reference<WithScalar<Div>, Types::kFloating, 1>(table, kDivScalar);
  add_reference<OfScalar<Div>, Types::kFloating, 1>(table, kRdivScalar);
  add_reference<OfScalar<Sub>, Types::kNumeric, 1>(table, kRsubScalar);
  add_reference<OfScalar<Pow>, Types::kNumeric, 1>(table, kRpowScalar);
  add_scalar_reference<Sub>(table, kSubScalar);
  add_scalar_reference<PowOfTensor>(table, kPowScalar);
  add_scalar_reference<FloorDivide>(table, kFloorDivideScalar);
  add_scalar_reference<TruncDivide>(table, kTruncDivideScalar);
  add_scalar_reference<Fmod>(table, kFmodScalar);
  add_scalar_reference<Remainder>(table, kRemainderScalar);
}
#endif

}  // namespace

void register_binary_cpu(KernelTable& table) {
#if FLOW_ISA == 0
  register_references(table);
  add_elements<Logaddexp>(table, kLogaddexp);
  add_elements<Xlogy>(table, kXlogy);
  add_elements<Hypot>(table, kHypot);
#endif
  add_integers<AddScaled>(table, kAdd);
  add_integers<OfTensors<Sub>>(table, kSub);
  add_integers<OfTensors<Mul>>(table, kMul);
  add_integers<OfTensors<Maximum>>(table, kMaximum);
  add_integers<OfTensors<Minimum>>(table, kMinimum);
  add_integers_with_scalar<WithScalar<Add>>(table, kAddScalar);
  add_integers_with_scalar<WithScalar<Sub>>(table, kSubScalar);
  add_integers_with_scalar<WithScalar<Mul>>(table, kMulScalar);

  add_floating_binary<AddScaledVector>(table, kAdd);
  add_vectors_of(table, kSub, [](auto a, auto b) { return a - b; });
  add_vectors_of(table, kMul, [](auto a, auto b) { return a * b; });
  add_vectors_of(table, kDiv, [](auto a, auto b) { return a / b; });
  add_vectors_of(table, kMaximum, [](auto a, auto b) { return maximum(a, b); });
  add_vectors_of(table, kMinimum, [](auto a, auto b) { return minimum(a, b); });

  add_vectors_with_scalar(table, kAddScalar, [](auto x, auto s) { return x + s; });
  add_vectors_with_scalar(table, kSubScalar, [](auto x, auto s) { return x - s; });
  add_vectors_with_scalar(table, kRsubScalar, [](auto x, auto s) { return s - x; });
  add_vectors_with_scalar(table, kMulScalar, [](auto x, auto s) { return x * s; });
  add_vectors_with_scalar(table, kDivScalar, [](auto x, auto s) { return x / s; });
  add_vectors_with_scalar(table, kRdivScalar, [](auto x, auto s) { return s / x; });
  add_kernel<PowBlock, double, double>(table, kPowScalar);
  add_kernel<PowBlock, float, float>(table, kPowScalar);
}

#include "ops/kernel/isa_end.h"
