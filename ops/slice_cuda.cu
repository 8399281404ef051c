// Copies for slices on CUDA devices: each rank's share, zeros (or, of a scatter, the tensor itself)
// elsewhere.
#include "ops/box_copy_cuda.cuh"
#include "ops/slice_op.h"

namespace flow::ops {

void register_slice_cuda(KernelTable& table);

namespace {

// A tensor's local part from `first` on in `dim`, every `step`-th element.
struct Part {
  std::byte* data;
  Strides strides;
};

Part part_of(const TensorView& tensor, int64_t dim, int64_t first, int64_t step) {
  Part part{tensor.data, tensor.strides()};
  part.data += first * part.strides[dim] * static_cast<int64_t>(dtype_size(tensor.meta->dtype));
  part.strides[dim] *= step;
  return part;
}

// Copies between index k of `dense` and position start + step * k of `spread`, where both exist.
template <bool kSpreads>
void copy_shared(const KernelContext& ctx, const TensorView& target, const TensorView& source,
                 int64_t dim, int64_t start, int64_t step) {
  const TensorView& dense = kSpreads ? source : target;
  const TensorView& spread = kSpreads ? target : source;
  const Range positions = local_range(*spread.meta, dim);
  const Range indices = local_range(*dense.meta, dim);
  const Range shared = indices_inside(indices, start, step, positions);
  const Part in_dense = part_of(dense, dim, shared.begin - indices.begin, 1);
  const Part in_spread = part_of(spread, dim, start + step * shared.begin - positions.begin, step);
  Shape size = dense.shape();
  size[dim] = shared.size;
  const Part& to = kSpreads ? in_spread : in_dense;
  const Part& from = kSpreads ? in_dense : in_spread;
  copy_box(ctx, size, {to.data, to.strides}, {from.data, from.strides}, target.meta->dtype);
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
  Part from = part_of(ctx.in(0), attrs.dim, attrs.index - held.begin, 1);
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
