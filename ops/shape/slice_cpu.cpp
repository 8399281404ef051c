// Copies for slices of a dim that is split over ranks. Each rank copies its share and writes zeros
// (a scatter: the tensor itself) elsewhere.
#include "core/kernel.h"
#include "ops/kernel/box_copy.h"
#include "ops/shape/slice_op.h"
#include "ops/shape/slice_parts.h"

#include "ops/kernel/isa_begin.h"

void register_slice_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

// Copies between index k of the dense tensor and position start + step * k of the spread one, where
// both exist.
template <bool kSpreads>
void copy_shared(const TensorView& target, const TensorView& source, int64_t dim, int64_t start,
                 int64_t step) {
  const SharedSlice shared(kSpreads ? source : target, kSpreads ? target : source, dim, start,
                           step);
  const SlicedPart& to = kSpreads ? shared.in_spread : shared.in_dense;
  const SlicedPart& from = kSpreads ? shared.in_dense : shared.in_spread;
  copy_box(shared.size, {to.data, to.strides}, {from.data, from.strides},
           dtype_size(target.meta->dtype));
}

void slice(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SliceAttrs>();
  zero_part(ctx.out(0));
  copy_shared<false>(ctx.out(0), ctx.in(0), attrs.dim, attrs.start, attrs.step);
}

void unslice(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<UnsliceAttrs>();
  zero_part(ctx.out(0));
  copy_shared<true>(ctx.out(0), ctx.in(0), attrs.dim, attrs.start, attrs.step);
}

void slice_scatter(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SliceAttrs>();
  copy_part(ctx.out(0), ctx.in(0));
  copy_shared<true>(ctx.out(0), ctx.in(1), attrs.dim, attrs.start, attrs.step);
}

void select(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<SelectAttrs>();
  zero_part(ctx.out(0));
  const Range held = local_range(*ctx.in(0).meta, attrs.dim);
  if (attrs.index < held.begin || attrs.index >= held.begin + held.size) return;
  SlicedPart from = sliced_part(ctx.in(0), attrs.dim, attrs.index - held.begin, 1);
  from.strides.erase(attrs.dim);
  copy_box(ctx.out(0).shape(), {ctx.out(0).data, ctx.out(0).strides()}, {from.data, from.strides},
           dtype_size(ctx.in(0).meta->dtype));
}

}  // namespace

void register_slice_cpu(KernelTable& table) {
  table.add(kSlice, DeviceType::kCpu, {"reference", always<slice>});
  table.add(kSelect, DeviceType::kCpu, {"reference", always<select>});
  table.add(kUnslice, DeviceType::kCpu, {"reference", always<unslice>});
  table.add(kSliceScatter, DeviceType::kCpu, {"reference", always<slice_scatter>});
}

#else

void register_slice_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
