// CUDA kernels of ops/creation/copy.h and of cast.
#include "ops/creation/copy_op.h"
#include "ops/creation/transposed_copy_cuda.cuh"
#include "ops/elementwise/cast_formula.h"
#include "ops/elementwise/cast_op.h"
#include "ops/elementwise/elementwise_cuda.cuh"

namespace flow::ops {

namespace {

// The source is the last input: clone has one, copy_ two.
const TensorView& source_of(const KernelContext& ctx) {
  return ctx.inputs.back();
}

void copy_flat(const KernelContext& ctx) {
  const size_t bytes = ctx.out(0).meta->local_bytes();
  if (bytes == 0) return;
  FLOW_CUDA_CALL(cudaMemcpyAsync(ctx.out(0).data, source_of(ctx).data, bytes,
                                 cudaMemcpyDeviceToDevice, cuda::stream_of(ctx)));
}

template <class To, class From>
__global__ void copy_strided(DeviceLoop<2> loop, To* y, const From* x) {
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads()) {
    const auto offsets = offsets_of(loop, i);
    if constexpr (std::is_same_v<To, From>) {
      y[offsets.at[0]] = x[offsets.at[1]];
    } else {
      y[offsets.at[0]] = narrow<To>(convert<DeviceCompute<To>>(widen(x[offsets.at[1]])));
    }
  }
}

// Copies runs of 16 bytes if both sides are made of them.
bool copy_units(const KernelContext& ctx, DeviceLoop<2> loop, size_t element_bytes) {
  BoxDim dims[kMaxDims];
  for (int d = 0; d < loop.num_dims; ++d) {
    dims[loop.num_dims - 1 - d] = {&loop.size[d], {&loop.stride[d][0], &loop.stride[d][1]}};
  }
  const auto per_unit = static_cast<int64_t>(sizeof(Bytes16) / element_bytes);
  if (!join_into_units(dims, loop.num_dims, per_unit, ctx.out(0).data, source_of(ctx).data)) {
    return false;
  }
  loop.numel /= per_unit;
  cuda::launch(copy_strided<Bytes16, Bytes16>, cuda::blocks_for(loop.numel), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), loop, reinterpret_cast<Bytes16*>(ctx.out(0).data),
               reinterpret_cast<const Bytes16*>(source_of(ctx).data));
  return true;
}

template <class To>
struct ConvertTo {
  template <class C>
  __device__ DeviceCompute<To> operator()(C x) const {
    return convert<DeviceCompute<To>>(x);
  }
};

template <class To, class From>
void run_copy(const KernelContext& ctx) {
  const auto& state = ctx.state_as<LoopNest>();
  const auto loop = device_loop<2>(state);
  if constexpr (std::is_same_v<To, From>) {
    if (loop.numel > 0 && copy_units(ctx, loop, sizeof(To))) return;
    if constexpr (sizeof(To) > 1) {
      if (copy_transposed(ctx, loop, ctx.out(0).as<To>(), source_of(ctx).as<To>())) return;
    }
  } else if constexpr (is_floating(dtype_of<To>) && is_floating(dtype_of<From>)) {
    if (state.is_flat()) {
      return internal::launch_flat(cuda::stream_of(ctx), loop.numel, ConvertTo<To>(),
                                   ctx.out(0).as<To>(),
                                   static_cast<const From*>(source_of(ctx).as<From>()));
    }
  }
  cuda::launch(copy_strided<To, From>, cuda::blocks_for(loop.numel), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), loop, ctx.out(0).as<To>(), source_of(ctx).as<From>());
}

// Elements of one dtype are copied as integers of their size.
KernelFn same_dtype(size_t bytes) {
  switch (bytes) {
    case 1:
      return run_copy<uint8_t, uint8_t>;
    case 2:
      return run_copy<uint16_t, uint16_t>;
    case 4:
      return run_copy<uint32_t, uint32_t>;
    default:
      return run_copy<uint64_t, uint64_t>;
  }
}

KernelChoice select_copy(const KernelQuery& query) {
  const TensorMeta& output = query.output(0);
  const TensorMeta& source = *query.inputs.back();
  if (output.dtype == source.dtype && output.is_contiguous && source.is_contiguous &&
      output.local_shape == source.local_shape) {
    return {copy_flat};
  }
  KernelFn fn = nullptr;
  if (output.dtype == source.dtype) {
    fn = same_dtype(dtype_size(output.dtype));
  } else {
    dispatch_all(output.dtype, [&]<class To>() {
      dispatch_all(source.dtype, [&]<class From>() {
        if constexpr (!std::is_same_v<To, From>) fn = run_copy<To, From>;
      });
    });
  }
  return {fn, share_loop_nest(output, query.inputs.last(1))};
}

template <class T>
__global__ void fill_strided(DeviceLoop<1> loop, T* y, T value) {
  for (int64_t i = grid_thread(); i < loop.numel; i += grid_threads())
    y[offsets_of(loop, i).at[0]] = value;
}

template <class T>
void run_fill(const KernelContext& ctx) {
  const auto loop = device_loop<1>(ctx.state_as<LoopNest>());
  cuda::launch(fill_strided<T>, cuda::blocks_for(loop.numel), cuda::kBlockThreads, 0,
               cuda::stream_of(ctx), loop, ctx.out(0).as<T>(),
               ctx.attrs_as<FillAttrs>().value.to<T>());
}

KernelChoice select_fill(const KernelQuery& query) {
  KernelChoice choice;
  dispatch_all(query.output(0).dtype, [&]<class T>() { choice.fn = run_fill<T>; });
  choice.state = share_loop_nest(query.output(0), {});
  return choice;
}

}  // namespace

void register_copy_cuda(KernelTable& table) {
  table.add(kCast, DeviceType::kCuda, {"cuda", select_copy});
  table.add(kClone, DeviceType::kCuda, {"cuda", select_copy});
  table.add(kCopy, DeviceType::kCuda, {"cuda", select_copy});
  table.add(kFill, DeviceType::kCuda, {"cuda", select_fill});
}

}  // namespace flow::ops
