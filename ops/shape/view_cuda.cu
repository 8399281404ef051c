// Views that cannot share memory, copied on CUDA devices.
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/shape/view_op.h"

namespace flow::ops {

void register_view_cuda(KernelTable& table);

namespace {

// Copies the input, read through the view.
template <ViewFn kView>
void copy_view(const KernelContext& ctx) {
  ViewSpec view;
  kView(*ctx.in(0).meta, ctx.out(0).shape(), ctx.attrs, view);
  const DType dtype = ctx.in(0).meta->dtype;
  copy_box(ctx, ctx.out(0).shape(), {ctx.out(0).data, ctx.out(0).strides()},
           {ctx.in(0).data + view.offset * static_cast<int64_t>(dtype_size(dtype)), view.strides},
           dtype);
}

// Copies in the order of the input, whose elements are contiguous in the output.
void copy_reshaped(const KernelContext& ctx) {
  const Shape& size = ctx.in(0).shape();
  copy_box(ctx, size, {ctx.out(0).data, contiguous_strides(size)},
           {ctx.in(0).data, ctx.in(0).strides()}, ctx.in(0).meta->dtype);
}

}  // namespace

void register_view_cuda(KernelTable& table) {
  table.add(kReshape, DeviceType::kCuda, {"cuda", always<copy_reshaped>});
  table.add(kPermute, DeviceType::kCuda, {"cuda", always<copy_view<view_permute>>});
  table.add(kExpand, DeviceType::kCuda, {"cuda", always<copy_view<view_expand>>});
}

}  // namespace flow::ops
