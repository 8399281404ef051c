// CUDA kernels of ops/creation/creation.h. Outputs are new and therefore contiguous.
#include "core/context.h"
#include "ops/creation/creation_op.h"
#include "ops/elementwise/cast_formula.h"
#include "ops/kernel/element_cuda.cuh"

namespace flow::ops {

namespace {

void leave(const KernelContext& /*ctx*/) {}

template <class T>
__device__ T element(double x) {
  return narrow<T>(convert<DeviceCompute<T>>(x));
}

template <class T>
__device__ T element(int64_t x) {
  return narrow<T>(convert<DeviceCompute<T>>(x));
}

// y[i] = f(i)
template <class T, class F>
__global__ void generate(T* y, int64_t n, F f) {
  for (int64_t i = grid_thread(); i < n; i += grid_threads())
    y[i] = f(i);
}

// Ranks that do not hold the value of a partial sum get zeros.
template <class T, class F>
void run(const KernelContext& ctx, const F& f) {
  const TensorView& y = ctx.out(0);
  const cudaStream_t stream = cuda::stream_of(ctx);
  if (!holds_values(*y.meta, ctx.rank.rank())) {
    const size_t bytes = y.meta->local_bytes();
    if (bytes > 0) FLOW_CUDA_CALL(cudaMemsetAsync(y.data, 0, bytes, stream));
    return;
  }
  cuda::launch(generate<T, F>, cuda::blocks_for(y.numel()), cuda::kBlockThreads, 0, stream,
               y.as<T>(), y.numel(), f);
}

template <class T>
struct Constant {
  T value;

  __device__ T operator()(int64_t /*i*/) const { return value; }
};

template <class T, class Number>
struct Steps {
  Number start, step;
  int64_t begin;

  __device__ T operator()(int64_t i) const {
    return element<T>(start + rounded_product(static_cast<Number>(begin + i), step));
  }
};

// Computed from the nearer end, so that both ends are exact.
template <class T>
struct Between {
  double start, end, step;
  int64_t begin, steps;

  __device__ T operator()(int64_t i) const {
    const int64_t at = begin + i;
    return element<T>(at < (steps + 1) / 2
                          ? start + rounded_product(static_cast<double>(at), step)
                          : end - rounded_product(static_cast<double>(steps - 1 - at), step));
  }
};

template <class T>
struct Identity {
  int64_t columns, first_row, first_column;

  __device__ T operator()(int64_t i) const {
    const bool is_one = first_row + i / columns == first_column + i % columns;
    return element<T>(static_cast<int64_t>(is_one ? 1 : 0));
  }
};

template <class T>
void full(const KernelContext& ctx) {
  run<T>(ctx, Constant<T>{ctx.attrs_as<FullAttrs>().value.to<T>()});
}

template <class T>
void arange(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<ArangeAttrs>();
  const int64_t begin = ctx.out(0).meta->local_begin[0];
  if (attrs.start.is_floating() || attrs.step.is_floating()) {
    run<T>(ctx, Steps<T, double>{attrs.start.to<double>(), attrs.step.to<double>(), begin});
  } else {
    run<T>(ctx, Steps<T, int64_t>{attrs.start.to<int64_t>(), attrs.step.to<int64_t>(), begin});
  }
}

template <class T>
void linspace(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<LinspaceAttrs>();
  const TensorMeta& meta = *ctx.out(0).meta;
  const int64_t steps = meta.shape[0];
  const double step = steps > 1 ? (attrs.end - attrs.start) / static_cast<double>(steps - 1) : 0;
  run<T>(ctx, Between<T>{attrs.start, attrs.end, step, meta.local_begin[0], steps});
}

template <class T>
void eye(const KernelContext& ctx) {
  const TensorMeta& meta = *ctx.out(0).meta;
  run<T>(ctx, Identity<T>{meta.local_shape[1], meta.local_begin[0], meta.local_begin[1]});
}

template <class Pick>
KernelChoice by_output(const KernelQuery& query, const Pick& pick) {
  KernelChoice choice;
  dispatch_all(query.output(0).dtype,
               [&]<class T>() { choice.fn = pick.template operator()<T>(); });
  return choice;
}

KernelChoice select_full(const KernelQuery& query) {
  return by_output(query, []<class T>() -> KernelFn { return full<T>; });
}

KernelChoice select_arange(const KernelQuery& query) {
  return by_output(query, []<class T>() -> KernelFn { return arange<T>; });
}

KernelChoice select_linspace(const KernelQuery& query) {
  return by_output(query, []<class T>() -> KernelFn { return linspace<T>; });
}

KernelChoice select_eye(const KernelQuery& query) {
  return by_output(query, []<class T>() -> KernelFn { return eye<T>; });
}

}  // namespace

void register_creation_cuda(KernelTable& table) {
  table.add(kEmpty, DeviceType::kCuda, {"cuda", always<leave>});
  table.add(kFull, DeviceType::kCuda, {"cuda", select_full});
  table.add(kArange, DeviceType::kCuda, {"cuda", select_arange});
  table.add(kLinspace, DeviceType::kCuda, {"cuda", select_linspace});
  table.add(kEye, DeviceType::kCuda, {"cuda", select_eye});
}

}  // namespace flow::ops
