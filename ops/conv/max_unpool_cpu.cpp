// Writes elements back to the positions of the maxima. Traffic: y is written once, x and indices
// are read once.
#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/kernel.h"
#include "core/thread_pool.h"
#include "ops/conv/max_unpool_op.h"
#include "ops/kernel/box_copy.h"

#include "ops/kernel/isa_begin.h"

void register_max_unpool_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

constexpr int64_t kGrainBytes = 1 << 16;

// The input's elements as a contiguous array; a copy if they are not contiguous.
const std::byte* contiguous(const KernelContext& ctx, int i, Ref<Storage>& memory) {
  const TensorView& view = ctx.in(i);
  if (view.meta->is_contiguous) return view.data;
  const size_t bytes = dtype_size(view.meta->dtype);
  memory = ctx.scratch(static_cast<size_t>(view.numel()) * bytes);
  copy_box(view.shape(), {memory->data(), contiguous_strides(view.shape())},
           {view.data, view.strides()}, bytes);
  return memory->data();
}

// Elements are copied without conversion, whatever their dtype.
template <class Bits>
void unpool(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<MaxUnpoolAttrs>();
  Ref<Storage> x_memory;
  Ref<Storage> index_memory;
  const auto* x = reinterpret_cast<const Bits*>(contiguous(ctx, 0, x_memory));
  const auto* indices = reinterpret_cast<const int64_t*>(contiguous(ctx, 1, index_memory));
  Bits* y = ctx.out(0).as<Bits>();
  const int64_t count = ctx.in(0).shape().back();
  const int64_t planes = count == 0 ? 0 : ctx.in(0).numel() / count;
  if (count == 0) std::memset(y, 0, static_cast<size_t>(ctx.out(0).numel()) * sizeof(Bits));
  const int64_t plane_bytes = (attrs.size + count + 1) * static_cast<int64_t>(sizeof(Bits));
  ctx.pool().parallel_for(
      0, planes, kGrainBytes / plane_bytes + 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; ++p) {
          Bits* plane = y + p * attrs.size;
          std::memset(plane, 0, static_cast<size_t>(attrs.size) * sizeof(Bits));
          for (int64_t i = p * count; i < (p + 1) * count; ++i) {
            if (indices[i] < 0 || indices[i] >= attrs.size) {
              throw InvalidArgument(str("[max_unpool", attrs.num_dims, "d] index ", indices[i],
                                        " is outside the ", attrs.size,
                                        " elements of a plane; received indices ", *ctx.in(1).meta,
                                        "; give the output_size before pooling"));
            }
            plane[indices[i]] = x[i];
          }
        }
      });
}

KernelChoice select_unpool(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  Shape y = x.local_shape;
  y[y.size() - 1] = query.attrs_as<MaxUnpoolAttrs>().size;
  if (!(query.input(1).local_shape == x.local_shape) || !(query.output(0).local_shape == y))
    return {};
  switch (dtype_size(x.dtype)) {
    case 2:
      return {unpool<uint16_t>};
    case 4:
      return {unpool<uint32_t>};
    default:
      return {unpool<uint64_t>};
  }
}

}  // namespace

void register_max_unpool_cpu(KernelTable& table) {
  table.add(kMaxUnpool, DeviceType::kCpu, {"reference", select_unpool});
}

#else

void register_max_unpool_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
