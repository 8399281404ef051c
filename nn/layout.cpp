#include "nn/layout.h"

#include <algorithm>

#include "boxing/redistribute.h"
#include "core/tensor_meta.h"

namespace flow::nn {

Tensor laid_out(const Tensor& whole, const Placement& placement, const NdSbp& sbp, Site site) {
  const ToGlobalOptions options{.placement = placement, .sbp = sbp};
  if (whole.is_global()) return whole.to_global(options, site);
  const Placement first(placement.device_type(), Shape{1}, {placement.ranks()[0]});
  return whole.to_global({.placement = first, .sbp = sbp::broadcast}, site)
      .to_global(options, site);
}

Tensor with_layout_of(const Tensor& whole, const Tensor& like, Site site) {
  return like.is_global() ? laid_out(whole, like.placement(), like.sbp(), site) : whole;
}

NdSbp without_replicas(const Shape& shape, const Placement& placement, NdSbp sbp) {
  Shape left = box_of(shape, placement, sbp, 0).size;
  for (int64_t axis = 0; axis < sbp.size() && !left.empty(); ++axis) {
    const int64_t ranks = placement.shape()[axis];
    if (!sbp[axis].is_broadcast() || ranks == 1) continue;
    const int64_t dim = std::max_element(left.begin(), left.end()) - left.begin();
    sbp = sbp.with(axis, sbp::split(dim));
    left[dim] = balanced_part(left[dim], ranks, 0).size;
  }
  return sbp;
}

}  // namespace flow::nn
