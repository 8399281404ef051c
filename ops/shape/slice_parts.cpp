#include "ops/shape/slice_parts.h"

#include "ops/kernel/box_copy.h"

namespace flow::ops {

SlicedPart sliced_part(const TensorView& tensor, int64_t dim, int64_t first, int64_t step) {
  SlicedPart part{tensor.data, tensor.strides()};
  part.data += first * part.strides[dim] * static_cast<int64_t>(dtype_size(tensor.meta->dtype));
  part.strides[dim] *= step;
  return part;
}

SharedSlice::SharedSlice(const TensorView& dense, const TensorView& spread, int64_t dim,
                         int64_t start, int64_t step)
    : size(dense.shape()) {
  const Range positions = local_range(*spread.meta, dim);
  const Range indices = local_range(*dense.meta, dim);
  const Range shared = indices_inside(indices, start, step, positions);
  size[dim] = shared.size;
  in_dense = sliced_part(dense, dim, shared.begin - indices.begin, 1);
  in_spread = sliced_part(spread, dim, start + step * shared.begin - positions.begin, step);
}

}  // namespace flow::ops
