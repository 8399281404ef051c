#include <algorithm>
#include <span>

#include "ops/reduce/reduce_op.h"

namespace flow::ops {

namespace {

using Dim = ReduceState::Dim;

// A stride-0 dim repeats the dims inside it, so it is placed outside.
int64_t sort_key(const Dim& dim) {
  return dim.in_stride == 0 ? INT64_MAX : std::abs(dim.in_stride);
}

int sort_and_merge(std::span<Dim> dims) {
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return sort_key(a) > sort_key(b); });
  int count = 0;
  for (const Dim& dim : dims) {
    if (count > 0) {
      Dim& outer = dims[static_cast<size_t>(count - 1)];
      if (outer.in_stride == dim.in_stride * dim.size &&
          outer.out_stride == dim.out_stride * dim.size) {
        outer = {outer.size * dim.size, dim.in_stride, dim.out_stride};
        continue;
      }
    }
    dims[static_cast<size_t>(count++)] = dim;
  }
  return count;
}

}  // namespace

ReduceState prepare_reduction(const TensorMeta& input, DimSet reduced) {
  ReduceState state;
  const Shape& shape = input.local_shape;
  int64_t out_stride = 1;
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    const bool is_reduced = (reduced >> i & 1U) != 0;
    const Dim dim{shape[i], input.strides[i], is_reduced ? 0 : out_stride};
    (is_reduced ? state.reduced_numel : state.kept_numel) *= dim.size;
    if (!is_reduced) out_stride *= dim.size;
    if (dim.size == 1) continue;
    if (is_reduced) {
      state.reduced[static_cast<size_t>(state.num_reduced++)] = dim;
    } else {
      state.kept[static_cast<size_t>(state.num_kept++)] = dim;
    }
  }
  // Collected innermost first.
  std::reverse(state.kept.begin(), state.kept.begin() + state.num_kept);
  std::reverse(state.reduced.begin(), state.reduced.begin() + state.num_reduced);
  state.num_kept = sort_and_merge({state.kept.data(), static_cast<size_t>(state.num_kept)});
  state.num_reduced =
      sort_and_merge({state.reduced.data(), static_cast<size_t>(state.num_reduced)});
  if (state.num_reduced > 0) {
    state.has_rows = state.reduced[static_cast<size_t>(state.num_reduced - 1)].in_stride == 1;
  }
  if (state.num_kept > 0) {
    const Dim& last = state.kept[static_cast<size_t>(state.num_kept - 1)];
    state.has_columns = last.in_stride == 1 && last.out_stride == 1;
  }
  return state;
}

}  // namespace flow::ops
