// Copies between host memory and a device, and from other devices, in pieces through pinned memory.
// A strided tensor is made contiguous where it is stored, piece by piece.
#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/device_memory.h"
#include "ops/creation/copy_op.h"
#include "ops/elementwise/elementwise_cuda.cuh"
#include "ops/kernel/box_copy.h"

namespace flow::ops {

namespace {

// y[i] = element first + i of x in row-major order. The loop's output is contiguous.
template <class T>
__global__ void pack(DeviceLoop<2> loop, int64_t first, int64_t count, T* y, const T* x) {
  for (int64_t i = grid_thread(); i < count; i += grid_threads())
    y[i] = x[offsets_of(loop, first + i).at[1]];
}

// Queues the copy of `count` elements from `first` on to contiguous device memory.
void pack_on_device(const KernelContext& ctx, int64_t first, int64_t count, std::byte* y,
                    const std::byte* x) {
  const auto loop = device_loop<2>(ctx.state_as<LoopNest>());
  const auto launch = [&]<class T>(T /*element*/) {
    cuda::launch(pack<T>, cuda::blocks_for(count), cuda::kBlockThreads, 0, cuda::stream_of(ctx),
                 loop, first, count, reinterpret_cast<T*>(y), reinterpret_cast<const T*>(x));
  };
  switch (dtype_size(ctx.in(0).meta->dtype)) {
    case 1:
      return launch(uint8_t{});
    case 2:
      return launch(uint16_t{});
    case 4:
      return launch(uint32_t{});
    default:
      return launch(uint64_t{});
  }
}

// A range of the row-major elements of a strided box in host memory.
struct HostRange {
  const Shape& shape;
  const Strides& strides;
  size_t element_bytes;

  // Copies elements [first, last) of the box of dims [dim, end) at x to y; returns the end of y.
  // The range consists of a part of an index of `dim`, whole indices, and another part.
  std::byte* pack(std::byte* y, const std::byte* x, int64_t dim, int64_t first,
                  int64_t last) const {
    int64_t inner = 1;
    for (int64_t d = dim + 1; d < shape.size(); ++d)
      inner *= shape[d];
    while (first < last) {
      const std::byte* const at = x + first / inner * strides[dim] * bytes(1);
      const int64_t begin = first % inner;
      int64_t count = std::min(inner - begin, last - first);
      if (count < inner) {
        y = pack(y, at, dim + 1, begin, begin + count);
      } else {
        count = (last - first) / inner * inner;
        Shape size{count / inner};
        Strides from{strides[dim]};
        for (int64_t d = dim + 1; d < shape.size(); ++d) {
          size.push_back(shape[d]);
          from.push_back(strides[d]);
        }
        copy_box(size, {y, contiguous_strides(size)}, {at, from}, element_bytes);
        y += bytes(count);
      }
      first += count;
    }
    return y;
  }

  int64_t bytes(int64_t count) const { return count * static_cast<int64_t>(element_bytes); }
};

void copy_up(const KernelContext& ctx) {
  const TensorMeta& x = *ctx.in(0).meta;
  cuda::PinnedRing& ring = cuda::rank_device(ctx.rank).ring();
  const HostRange range{x.local_shape, x.strides, dtype_size(x.dtype)};
  ring.upload(ctx.out(0).data, x.local_bytes(), [&](std::byte* piece, size_t first, size_t count) {
    const auto begin = static_cast<int64_t>(first / range.element_bytes);
    const auto size = static_cast<int64_t>(count / range.element_bytes);
    range.pack(piece, ctx.in(0).data, 0, begin, begin + size);
  });
}

// x is in the memory of the rank's device.
void copy_down(const KernelContext& ctx, const std::byte* x) {
  cuda::RankDevice& own = cuda::rank_device(ctx.rank);
  const size_t bytes = ctx.in(0).meta->local_bytes();
  const size_t element_bytes = dtype_size(ctx.in(0).meta->dtype);
  // Pieces follow each other on the stream, so one has room for all.
  const Ref<Storage> packed =
      allocate_storage(ctx.rank, DeviceType::kCuda, std::min(bytes, cuda::PinnedRing::kSlotBytes));
  own.ring().download(ctx.out(0).data, bytes, [&](std::byte* piece, size_t first, size_t count) {
    pack_on_device(ctx, static_cast<int64_t>(first / element_bytes),
                   static_cast<int64_t>(count / element_bytes), packed->data(), x);
    own.ring().receive(piece, packed->data(), count);
  });
  own.throw_fault();
}

void to_device(const KernelContext& ctx) {
  const TensorView& x = ctx.in(0);
  const TensorView& y = ctx.out(0);
  if (x.numel() == 0) return;
  if (x.meta->is_contiguous) {
    return copy_bytes(ctx.rank, y.data, y.meta->device, x.data, x.meta->device,
                      y.meta->local_bytes());
  }
  if (x.meta->device == DeviceType::kCpu) return copy_up(ctx);
  const size_t spanned = bytes_spanned(*x.meta);
  const Ref<Storage> here = cuda::copy_of_elsewhere(ctx.rank, x.data, spanned);
  const std::byte* const data = here ? here->data() : x.data;
  if (y.meta->device == DeviceType::kCpu) return copy_down(ctx, data);
  pack_on_device(ctx, 0, x.numel(), y.data, data);
}

KernelChoice select(const KernelQuery& query) {
  if (query.input(0).device == query.output(0).device &&
      query.output(0).device == DeviceType::kCpu) {
    return {};
  }
  return {to_device, share_loop_nest(query.output(0), query.inputs)};
}

}  // namespace

void register_to_device_cuda(KernelTable& table);

void register_to_device_cuda(KernelTable& table) {
  for (const DeviceType device : {DeviceType::kCpu, DeviceType::kCuda})
    table.add(kToDevice, device, {"cuda", select});
}

}  // namespace flow::ops
