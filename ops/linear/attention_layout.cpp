#include "ops/linear/attention_layout.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>

#include "ops/linear/attention_op.h"

namespace flow::ops {

namespace {

// `meta` with dense strides; its dims follow each other in memory as those of `like` do. Dims of
// size 1 keep their places, because their strides say nothing.
MetaPtr stored_like(MetaPtr meta, const TensorMeta& like) {
  if (like.is_contiguous || like.blocked != nullptr || meta->local_numel == 0) return meta;
  const int64_t num_dims = meta->local_shape.size();
  std::vector<int64_t> places;
  for (int64_t i = 0; i < num_dims; ++i) {
    if (like.local_shape[i] == 1) continue;
    if (like.strides[i] == 0) return meta;  // an expanded dim has no place
    places.push_back(i);
  }
  std::vector<int64_t> by_stride = places;
  std::stable_sort(by_stride.begin(), by_stride.end(),
                   [&](int64_t a, int64_t b) { return like.strides[a] > like.strides[b]; });
  // Kernels load and store along the last dim.
  if (by_stride.empty() || by_stride.back() != places.back()) return meta;
  std::vector<int64_t> order(static_cast<size_t>(num_dims));
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = 0; i < places.size(); ++i)
    order[static_cast<size_t>(places[i])] = by_stride[i];
  Strides strides = meta->strides;
  int64_t step = 1;
  for (int64_t i = num_dims - 1; i >= 0; --i) {
    const int64_t dim = order[static_cast<size_t>(i)];
    strides[dim] = step;
    step *= meta->local_shape[dim];
  }
  return with_strides(meta, strides);
}

}  // namespace

std::vector<MetaPtr> attention_outputs(const KernelQuery& query) {
  std::vector<MetaPtr> outputs(query.outputs.begin(), query.outputs.end());
  if (&query.op == &kAttention) {
    outputs[0] = stored_like(outputs[0], query.input(0));
    return outputs;
  }
  for (int i = 0; i < 3; ++i) {
    auto& output = outputs[static_cast<size_t>(i)];
    output = stored_like(output, query.input(i + 1));
  }
  return outputs;
}

}  // namespace flow::ops
