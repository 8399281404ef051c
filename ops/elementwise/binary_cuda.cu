// CUDA kernels of ops/elementwise/binary.h, made from the formulas of the CPU kernels.
#include "ops/elementwise/binary_formulas.h"
#include "ops/elementwise/binary_op.h"
#include "ops/elementwise/elementwise_cuda.cuh"

namespace flow::ops {

namespace {

// a + alpha b
template <class C>
struct AddScaled {
  C alpha;

  __device__ C operator()(C a, C b) const { return Add::apply(a, Mul::apply(alpha, b)); }
};

// A quotient of integers by zero is 0: a kernel cannot raise an error.
template <class F>
struct Guarded {
  template <class C>
  __device__ static C apply(C a, C b) {
    if constexpr (std::is_integral_v<C>) {
      if (b == C{0}) return C{0};
    }
    return F::apply(a, b);
  }
};

enum class Types { kAll, kNumeric, kFloating };

// Calls fn.operator()<T>() for the dtypes that an op takes; returns null for others.
template <Types kTypes, class Fn>
KernelFn pick(DType dtype, const Fn& fn) {
  KernelFn kernel = nullptr;
  dispatch_all(dtype, [&]<class T>() {
    constexpr bool kAccepts =
        kTypes == Types::kAll ||
        (kTypes == Types::kNumeric ? !std::is_same_v<T, bool> : is_floating(dtype_of<T>));
    if constexpr (kAccepts) kernel = fn.template operator()<T>();
  });
  return kernel;
}

template <class T>
void run_add(const KernelContext& ctx) {
  using C = DeviceCompute<T>;
  const auto alpha = static_cast<C>(ctx.attrs_as<AddAttrs>().alpha);
  run_elementwise<T, T, T>(ctx, AddScaled<C>{alpha});
}

KernelChoice select_add(const KernelQuery& query) {
  return choose_elementwise(
      query,
      pick<Types::kAll>(query.output(0).dtype, []<class T>() -> KernelFn { return run_add<T>; }));
}

template <class F, class T>
void run_tensors(const KernelContext& ctx) {
  run_elementwise<T, T, T>(ctx, DeviceFormula<F>());
}

template <class F, Types kTypes>
KernelChoice select_tensors(const KernelQuery& query) {
  return choose_elementwise(query, pick<kTypes>(query.output(0).dtype, []<class T>() -> KernelFn {
                              return run_tensors<F, T>;
                            }));
}

template <class F, class T>
void run_with_scalar(const KernelContext& ctx) {
  using C = DeviceCompute<T>;
  run_elementwise<T, T>(ctx, DeviceWithScalar<F, C>{ctx.attrs_as<ScalarAttrs>().value.to<C>()});
}

template <class F, class T>
void run_of_scalar(const KernelContext& ctx) {
  using C = DeviceCompute<T>;
  run_elementwise<T, T>(ctx, DeviceOfScalar<F, C>{ctx.attrs_as<ScalarAttrs>().value.to<C>()});
}

template <class F, Types kTypes>
KernelChoice select_with_scalar(const KernelQuery& query) {
  return choose_elementwise(query, pick<kTypes>(query.output(0).dtype, []<class T>() -> KernelFn {
                              return run_with_scalar<F, T>;
                            }));
}

template <class F, Types kTypes>
KernelChoice select_of_scalar(const KernelQuery& query) {
  return choose_elementwise(query, pick<kTypes>(query.output(0).dtype, []<class T>() -> KernelFn {
                              return run_of_scalar<F, T>;
                            }));
}

template <class F, Types kTypes>
void add_tensors(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", select_tensors<F, kTypes>});
}

template <class F, Types kTypes>
void add_with_scalar(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", select_with_scalar<F, kTypes>});
}

template <class F, Types kTypes>
void add_of_scalar(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCuda, {"cuda", select_of_scalar<F, kTypes>});
}

}  // namespace

void register_binary_cuda(KernelTable& table) {
  table.add(kAdd, DeviceType::kCuda, {"cuda", select_add});
  add_tensors<Sub, Types::kNumeric>(table, kSub);
  add_tensors<Mul, Types::kAll>(table, kMul);
  add_tensors<Div, Types::kFloating>(table, kDiv);
  add_tensors<Pow, Types::kNumeric>(table, kPow);
  add_tensors<Guarded<FloorDivide>, Types::kNumeric>(table, kFloorDivide);
  add_tensors<Guarded<TruncDivide>, Types::kNumeric>(table, kTruncDivide);
  add_tensors<Guarded<Fmod>, Types::kNumeric>(table, kFmod);
  add_tensors<Guarded<Remainder>, Types::kNumeric>(table, kRemainder);
  add_tensors<Maximum, Types::kAll>(table, kMaximum);
  add_tensors<Minimum, Types::kAll>(table, kMinimum);
  add_tensors<Logaddexp, Types::kFloating>(table, kLogaddexp);
  add_tensors<Xlogy, Types::kFloating>(table, kXlogy);
  add_tensors<Hypot, Types::kFloating>(table, kHypot);

  add_with_scalar<Add, Types::kAll>(table, kAddScalar);
  add_with_scalar<Sub, Types::kNumeric>(table, kSubScalar);
  add_with_scalar<Mul, Types::kAll>(table, kMulScalar);
  add_with_scalar<Div, Types::kFloating>(table, kDivScalar);
  add_with_scalar<PowOfTensor, Types::kNumeric>(table, kPowScalar);
  add_with_scalar<Guarded<FloorDivide>, Types::kNumeric>(table, kFloorDivideScalar);
  add_with_scalar<Guarded<TruncDivide>, Types::kNumeric>(table, kTruncDivideScalar);
  add_with_scalar<Guarded<Fmod>, Types::kNumeric>(table, kFmodScalar);
  add_with_scalar<Guarded<Remainder>, Types::kNumeric>(table, kRemainderScalar);
  add_of_scalar<Div, Types::kFloating>(table, kRdivScalar);
  add_of_scalar<Sub, Types::kNumeric>(table, kRsubScalar);
  add_of_scalar<Pow, Types::kNumeric>(table, kRpowScalar);
}

}  // namespace flow::ops
