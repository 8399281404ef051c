#include "nn/loss_variants.h"

#include "nn/beside.h"

namespace flow::nn {

Tensor HingeEmbeddingLoss::forward(const Tensor& input, const Tensor& target) {
  return hinge_embedding_loss(input, beside(input, target), options_);
}

Tensor SoftMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return soft_margin_loss(input, beside(input, target), options_);
}

Tensor MultiMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return multi_margin_loss(input, beside(input, target), options_);
}

Tensor MultiLabelMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return multilabel_margin_loss(input, beside(input, target), options_);
}

Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return multilabel_soft_margin_loss(input, beside(input, target), options_);
}

Tensor PoissonNLLLoss::forward(const Tensor& input, const Tensor& target) {
  return poisson_nll_loss(input, beside(input, target), options_);
}

Tensor CosineEmbeddingLoss::forward(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target) {
  return cosine_embedding_loss(input1, input2, beside(input1, target), options_);
}

Tensor GaussianNLLLoss::forward(const Tensor& input, const Tensor& target, const Tensor& var) {
  return gaussian_nll_loss(input, beside(input, target), beside(input, var), options_);
}

Tensor TripletMarginWithDistanceLoss::forward(const Tensor& anchor, const Tensor& positive,
                                              const Tensor& negative) {
  return triplet_margin_with_distance_loss(anchor, positive, negative, options_);
}

Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) {
  return ctc_loss(log_probs, beside(log_probs, targets), beside(log_probs, input_lengths),
                  beside(log_probs, target_lengths), options_);
}

Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets,
                        const std::vector<int64_t>& input_lengths,
                        const std::vector<int64_t>& target_lengths) {
  return ctc_loss(log_probs, beside(log_probs, targets), input_lengths, target_lengths, options_);
}

}  // namespace flow::nn
