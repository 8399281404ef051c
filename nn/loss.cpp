#include "nn/loss.h"

#include "boxing/layout.h"
#include "boxing/redistribute.h"
#include "nn/beside.h"

namespace flow::nn {

Tensor beside(const Tensor& input, const Tensor& target) {
  if (!input.is_global() || !target.is_global() || input.placement() == target.placement()) {
    return target;
  }
  const Placement placement = input.placement();
  const bool is_arranged_alike = placement.num_axes() == target.placement().num_axes();
  return target.to_global({.placement = placement,
                           .sbp = is_arranged_alike ? boxing::without_partial(target.sbp())
                                                    : NdSbp::broadcast(placement.num_axes())});
}

Tensor L1Loss::forward(const Tensor& input, const Tensor& target) {
  return l1_loss(input, beside(input, target), options_);
}

Tensor MSELoss::forward(const Tensor& input, const Tensor& target) {
  return mse_loss(input, beside(input, target), options_);
}

Tensor SmoothL1Loss::forward(const Tensor& input, const Tensor& target) {
  return smooth_l1_loss(input, beside(input, target), options_);
}

Tensor HuberLoss::forward(const Tensor& input, const Tensor& target) {
  return huber_loss(input, beside(input, target), options_);
}

Tensor BCELoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy(input, beside(input, target), options_);
}

Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy_with_logits(input, beside(input, target), options_);
}

Tensor KLDivLoss::forward(const Tensor& input, const Tensor& target) {
  return kl_div(input, beside(input, target), options_);
}

Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) {
  return nll_loss(input, beside(input, target), options_);
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  return cross_entropy(input, beside(input, target), options_);
}

Tensor MarginRankingLoss::forward(const Tensor& input1, const Tensor& input2,
                                  const Tensor& target) {
  return margin_ranking_loss(input1, input2, target, options_);
}

Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative) {
  return triplet_margin_loss(anchor, positive, negative, options_);
}

Tensor CombinedMarginLoss::forward(const Tensor& input, const Tensor& label) {
  return combined_margin_loss(input, label, options_);
}

}  // namespace flow::nn
