// CUDA kernels of ops/loss/loss.h: the formulas of ops/loss/loss_cpu.cpp. A reduced loss is added
// up in pieces of constant size, so that the result does not depend on the device.
#include <cmath>

#include "ops/elementwise/elementwise_cuda.cuh"
#include "ops/loss/loss_op.h"

namespace flow::ops {

namespace {

// Each loss: value(x, t, p) and slope(x, t, p) = d value / dx of one element, p its parameter.

struct Mse {
  template <class C>
  __device__ static C value(C x, C t, C /*p*/) {
    return (x - t) * (x - t);
  }

  template <class C>
  __device__ static C slope(C x, C t, C /*p*/) {
    return C{2} * (x - t);
  }
};

// The sign of d; NaN stays NaN.
template <class C>
__device__ C sign_of(C d) {
  return d > C{0} ? C{1} : d < C{0} ? C{-1} : d;
}

struct L1 {
  template <class C>
  __device__ static C value(C x, C t, C /*p*/) {
    return std::abs(x - t);
  }

  template <class C>
  __device__ static C slope(C x, C t, C /*p*/) {
    return C(x > t) - C(x < t);
  }
};

struct SmoothL1 {
  template <class C>
  __device__ static C value(C x, C t, C beta) {
    const C d = std::abs(x - t);
    return d < beta ? C(0.5) * d * d / beta : d - C(0.5) * beta;
  }

  template <class C>
  __device__ static C slope(C x, C t, C beta) {
    const C d = x - t;
    return std::abs(d) < beta ? d / beta : sign_of(d);
  }
};

struct Huber {
  template <class C>
  __device__ static C value(C x, C t, C delta) {
    const C d = std::abs(x - t);
    return d <= delta ? C(0.5) * d * d : delta * (d - C(0.5) * delta);
  }

  template <class C>
  __device__ static C slope(C x, C t, C delta) {
    const C d = x - t;
    return std::abs(d) <= delta ? d : delta * sign_of(d);
  }
};

// As in PyTorch, logarithms are at least -100 and denominators at least the float32 next to 1e-12.
// Values that are not probabilities give NaN, because a kernel cannot raise an error.
struct Bce {
  template <class C>
  __device__ static C value(C x, C t, C /*p*/) {
    const C lowest = C{-100};
    const bool is_fit = x >= C{0} && x <= C{1} && t >= C{0} && t <= C{1};
    if (!is_fit) return static_cast<C>(NAN);
    const C other = std::log1p(-x);
    const C own = std::log(x);
    return (t - C{1}) * (other > lowest ? other : lowest) - t * (own > lowest ? own : lowest);
  }

  template <class C>
  __device__ static C slope(C x, C t, C /*p*/) {
    const C least = C(1e-12F);
    const C v = (C{1} - x) * x;
    return (x - t) / (v < least ? least : v);
  }
};

struct BceWithLogits {
  template <class C>
  __device__ static C value(C x, C t, C /*p*/) {
    return (x > C{0} ? x : C{0}) - x * t + std::log1p(std::exp(-std::abs(x)));
  }

  template <class C>
  __device__ static C slope(C x, C t, C /*p*/) {
    return C{1} / (C{1} + std::exp(-x)) - t;
  }
};

template <class L, class C>
struct ValueOf {
  C parameter;

  __device__ C operator()(C x, C t) const { return L::value(x, t, parameter); }
};

template <class L, class C>
struct SlopeOf {
  C parameter, scale;

  __device__ C operator()(C dy, C x, C t) const { return dy * scale * L::slope(x, t, parameter); }
};

template <class L, class T>
void run_values(const KernelContext& ctx) {
  using C = DeviceCompute<T>;
  run_elementwise<T, T, T>(ctx, ValueOf<L, C>{static_cast<C>(ctx.attrs_as<LossAttrs>().parameter)});
}

template <class L, class T>
void run_slopes(const KernelContext& ctx) {
  using C = DeviceCompute<T>;
  const auto& attrs = ctx.attrs_as<LossAttrs>();
  run_elementwise<T, T, T, T>(
      ctx, SlopeOf<L, C>{static_cast<C>(attrs.parameter),
                         static_cast<C>(1.0 / static_cast<double>(attrs.count))});
}

// ---- the sum of all losses, in two steps

constexpr int64_t kPiece = 4096;

__device__ double join_block(double value) {
  __shared__ double shared[cuda::kBlockThreads];
  shared[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = cuda::kBlockThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
    __syncthreads();
  }
  return shared[0];
}

// Operand 0 of the loop stands for the losses, which are not stored.
template <class L, class T>
__global__ void add_pieces(DeviceLoop<3> loop, const T* x, const T* t, DeviceCompute<T> parameter,
                           double* partial) {
  for (int64_t piece = blockIdx.x; piece * kPiece < loop.numel; piece += gridDim.x) {
    const int64_t first = piece * kPiece;
    const int64_t end = first + kPiece < loop.numel ? first + kPiece : loop.numel;
    double sum = 0;
    for (int64_t i = first + threadIdx.x; i < end; i += cuda::kBlockThreads) {
      const auto offsets = offsets_of(loop, i);
      const DeviceCompute<T> a = widen(x[offsets.at[1]]);
      const DeviceCompute<T> b = widen(t[offsets.at[2]]);
      sum += static_cast<double>(L::value(a, b, parameter));
    }
    sum = join_block(sum);
    if (threadIdx.x == 0) partial[piece] = sum;
    __syncthreads();
  }
}

template <class T>
__global__ void add_partials(int64_t pieces, const double* partial, double divisor, T* y) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += cuda::kBlockThreads)
    sum += partial[i];
  sum = join_block(sum);
  if (threadIdx.x == 0) y[0] = narrow<T>(static_cast<DeviceCompute<T>>(sum / divisor));
}

template <class L, class T>
void run_reduced(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<LossAttrs>();
  const auto loop = device_loop<3>(ctx.state_as<LoopNest>());
  const int64_t pieces = (loop.numel + kPiece - 1) / kPiece;
  const Ref<Storage> partial = ctx.scratch(static_cast<size_t>(pieces) * sizeof(double));
  auto* sums = reinterpret_cast<double*>(partial->data());
  const cudaStream_t stream = cuda::stream_of(ctx);
  cuda::launch(add_pieces<L, T>, cuda::blocks_for(pieces, 1), cuda::kBlockThreads, 0, stream, loop,
               ctx.in(0).as<T>(), ctx.in(1).as<T>(), static_cast<DeviceCompute<T>>(attrs.parameter),
               sums);
  cuda::launch(add_partials<T>, 1, cuda::kBlockThreads, 0, stream, pieces, sums,
               static_cast<double>(attrs.count), ctx.out(0).as<T>());
}

template <class L>
KernelChoice select_loss(const KernelQuery& query) {
  const DType dtype = query.input(0).dtype;
  KernelFn fn = nullptr;
  if (!query.attrs_as<LossAttrs>().reduces) {
    dispatch_floating(dtype, [&]<class T>() { fn = run_values<L, T>; });
    return choose_elementwise(query, fn);
  }
  dispatch_floating(dtype, [&]<class T>() { fn = run_reduced<L, T>; });
  // The output has no dims, so the loop follows the order of x's memory.
  return {fn, share_loop_nest(query.input(0), query.inputs.first(2))};
}

template <class L>
KernelChoice select_slope(const KernelQuery& query) {
  KernelFn fn = nullptr;
  dispatch_floating(query.output(0).dtype, [&]<class T>() { fn = run_slopes<L, T>; });
  return choose_elementwise(query, fn);
}

template <class L>
void add_loss(KernelTable& table, const OpDef& loss, const OpDef& backward) {
  table.add(loss, DeviceType::kCuda, {"cuda", select_loss<L>});
  table.add(backward, DeviceType::kCuda, {"cuda", select_slope<L>});
}

}  // namespace

void register_loss_cuda(KernelTable& table) {
  add_loss<Mse>(table, kMseLoss, kMseLossBackward);
  add_loss<L1>(table, kL1Loss, kL1LossBackward);
  add_loss<SmoothL1>(table, kSmoothL1Loss, kSmoothL1LossBackward);
  add_loss<Huber>(table, kHuberLoss, kHuberLossBackward);
  add_loss<Bce>(table, kBceLoss, kBceLossBackward);
  add_loss<BceWithLogits>(table, kBceWithLogitsLoss, kBceWithLogitsLossBackward);
}

}  // namespace flow::ops
