// CUDA kernels of ops/elementwise/activation_and_grad_op.h. They give the bits of the single ops.
#include "ops/elementwise/activation_and_grad_op.h"
#include "ops/elementwise/formulas_cuda.cuh"
#include "ops/elementwise/unary_formulas.h"

namespace flow::ops {

void register_activation_and_grad_cuda(KernelTable& table);

namespace {

// Writes the gradient over dy, and the activation over x.
template <class Activation, class Gradient, class T>
__device__ void replace(T& dy, T& x) {
  using C = DeviceCompute<T>;
  const C value = widen(x);
  dy = narrow<T>(static_cast<C>(Gradient::apply(static_cast<C>(widen(dy)), value)));
  x = narrow<T>(static_cast<C>(Activation::apply(value)));
}

// The first elements are handled as packs; there are none if a tensor is not aligned.
template <class Activation, class Gradient, class T>
__global__ void replace_flat(int64_t n, int64_t packs, T* dy, T* x) {
  constexpr int kCount = kPackCount<T>;
  for (int64_t i = grid_thread(); i < packs; i += grid_threads()) {
    auto gradient = load_pack<kCount>(dy, i);
    auto value = load_pack<kCount>(x, i);
    FLOW_UNROLL
    for (int j = 0; j < kCount; ++j)
      replace<Activation, Gradient>(gradient.element[j], value.element[j]);
    store_pack(dy, i, gradient);
    store_pack(x, i, value);
  }
  for (int64_t i = packs * kCount + grid_thread(); i < n; i += grid_threads())
    replace<Activation, Gradient>(dy[i], x[i]);
}

// Operand 0 of the loop is dx, which has the strides of dy, operand 1.
template <class Activation, class Gradient, class T>
__global__ void replace_strided(DeviceLoop<3> loop, T* dy, T* x) {
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads()) {
    const auto offsets = offsets_of(loop, i);
    replace<Activation, Gradient>(dy[offsets.at[1]], x[offsets.at[2]]);
  }
}

template <class Activation, class Gradient, class T>
void run(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  const int64_t n = state.rows * state.inner;
  T* const dy = ctx.out(0).as<T>();
  T* const x = ctx.out(1).as<T>();
  if (!state.is_flat()) {
    cuda::launch(replace_strided<Activation, Gradient, T>, cuda::blocks_for(n), cuda::kBlockThreads,
                 0, cuda::stream_of(ctx), device_loop<3>(state), dy, x);
    return;
  }
  const int64_t packs = are_aligned(kPackCount<T>, dy, x) ? n / kPackCount<T> : 0;
  cuda::launch(replace_flat<Activation, Gradient, T>,
               cuda::blocks_for(std::max(packs, n - packs * kPackCount<T>)), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), n, packs, dy, x);
}

template <class Activation, class Gradient>
KernelChoice select(const KernelQuery& query) {
  KernelFn fn = nullptr;
  dispatch_floating(query.output(0).dtype, [&]<class T>() { fn = run<Activation, Gradient, T>; });
  return choose_elementwise(query, fn);
}

}  // namespace

void register_activation_and_grad_cuda(KernelTable& table) {
  table.add(kGeluAndGrad, DeviceType::kCuda, {"cuda", select<Gelu, GeluGrad>});
  table.add(kGeluTanhAndGrad, DeviceType::kCuda, {"cuda", select<GeluTanh, GeluTanhGrad>});
  table.add(kSiluAndGrad, DeviceType::kCuda, {"cuda", select<Silu, SiluGrad>});
}

}  // namespace flow::ops
