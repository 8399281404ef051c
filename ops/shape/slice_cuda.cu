// Copies for slices on CUDA devices. Each rank copies its share and writes zeros (a scatter: the
// tensor itself) elsewhere.
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/shape/slice_op.h"
#include "ops/shape/slice_parts.h"

namespace flow::ops {

void register_slice_cuda(KernelTable& table);

namespace {

// Copies between index k of the dense tensor and position start + step * k of the spread one, where
// both exist.
template <bool kSpreads>
void copy_shared(const KernelContext& ctx, const TensorView& target, const TensorView& source,
                 int64_t dim, int64_t start, int64_t step) {
  const SharedSlice shared(kSpreads ? source : target, kSpreads ? target : source, dim, start,
                           step);
  const SlicedPart& to = kSpreads ? shared.in_spread : shared.in_dense;
  const SlicedPart& from = kSpreads ? shared.in_dense : shared.in_spread;
  copy_box(ctx, shared.size, {to.data, to.strides}, {from.data, from.strides}, target.meta->dtype);
}

void slice(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SliceAttrs>();
  zero_part(ctx, ctx.out(0));
  copy_shared<false>(ctx, ctx.out(0), ctx.in(0), attrs.dim, attrs.start, attrs.step);
}

void unslice_part(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<UnsliceAttrs>();
  zero_part(ctx, ctx.out(0));
  copy_shared<true>(ctx, ctx.out(0), ctx.in(0), attrs.dim, attrs.start, attrs.step);
}

void slice_scatter(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SliceAttrs>();
  copy_part(ctx, ctx.out(0), ctx.in(0));
  copy_shared<true>(ctx, ctx.out(0), ctx.in(1), attrs.dim, attrs.start, attrs.step);
}

void select(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SelectAttrs>();
  const Range held = local_range(*ctx.in(0).meta, attrs.dim);
  if (attrs.index < held.begin || attrs.index >= held.begin + held.size) {
    return zero_part(ctx, ctx.out(0));
  }
  SlicedPart from = sliced_part(ctx.in(0), attrs.dim, attrs.index - held.begin, 1);
  from.strides.erase(attrs.dim);
  copy_box(ctx, ctx.out(0).shape(), {ctx.out(0).data, ctx.out(0).strides()},
           {from.data, from.strides}, ctx.in(0).meta->dtype);
}

}  // namespace

void register_slice_cuda(KernelTable& table) {
  table.add(kSlice, DeviceType::kCuda, {"cuda", always<slice>});
  table.add(kSelect, DeviceType::kCuda, {"cuda", always<select>});
  table.add(kUnslice, DeviceType::kCuda, {"cuda", always<unslice_part>});
  table.add(kSliceScatter, DeviceType::kCuda, {"cuda", always<slice_scatter>});
}

}  // namespace flow::ops
