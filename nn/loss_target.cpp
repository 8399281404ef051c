#include "nn/loss_target.h"

#include "boxing/layout.h"
#include "boxing/redistribute.h"

namespace flow::nn {

Tensor move_target_to_input(const Tensor& input, const Tensor& target) {
  if (!input.is_global() || !target.is_global() || input.placement() == target.placement()) {
    return target;
  }
  const Placement placement = input.placement();
  const bool has_same_num_axes = placement.num_axes() == target.placement().num_axes();
  return target.to_global({.placement = placement,
                           .sbp = has_same_num_axes ? boxing::without_partial(target.sbp())
                                                    : NdSbp::broadcast(placement.num_axes())});
}

}  // namespace flow::nn
