// Copies for views that strides cannot express.
#include "core/kernel.h"
#include "ops/kernel/box_copy.h"
#include "ops/shape/view_op.h"

#include "ops/kernel/isa_begin.h"

void register_view_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

// Copies the input, read through the view.
template <ViewFn kView>
void copy_view(const KernelContext& ctx) {
  ViewSpec view;
  kView(*ctx.in(0).meta, ctx.out(0).shape(), ctx.attrs, view);
  const size_t bytes = dtype_size(ctx.in(0).meta->dtype);
  copy_box(ctx.pool(), ctx.out(0).shape(), {ctx.out(0).data, ctx.out(0).strides()},
           {ctx.in(0).data + view.offset * static_cast<int64_t>(bytes), view.strides}, bytes);
}

// Copies in the order of the input, whose elements are contiguous in the output.
void copy_reshaped(const KernelContext& ctx) {
  const Shape& size = ctx.in(0).shape();
  copy_box(ctx.pool(), size, {ctx.out(0).data, contiguous_strides(size)},
           {ctx.in(0).data, ctx.in(0).strides()}, dtype_size(ctx.in(0).meta->dtype));
}

}  // namespace

void register_view_cpu(KernelTable& table) {
  table.add(kReshape, DeviceType::kCpu, {"reference", always<copy_reshaped>});
  table.add(kPermute, DeviceType::kCpu, {"reference", always<copy_view<view_permute>>});
  table.add(kExpand, DeviceType::kCpu, {"reference", always<copy_view<view_expand>>});
}

#else

void register_view_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
