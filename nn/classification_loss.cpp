#include "nn/classification_loss.h"

#include "nn/loss_target.h"

namespace flow::nn {

BCELoss::BCELoss(BceOptions options) : options_(std::move(options)) {
  register_buffer("weight", options_.weight, true, Site::none());
}

Tensor BCELoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy(input, move_target_to_input(input, target), options_);
}

BCEWithLogitsLoss::BCEWithLogitsLoss(BceWithLogitsOptions options) : options_(std::move(options)) {
  register_buffer("weight", options_.weight, true, Site::none());
  register_buffer("pos_weight", options_.pos_weight, true, Site::none());
}

Tensor BCEWithLogitsLoss::forward(const Tensor& input, const Tensor& target) {
  return binary_cross_entropy_with_logits(input, move_target_to_input(input, target), options_);
}

NLLLoss::NLLLoss(NllLossOptions options) : options_(std::move(options)) {
  register_buffer("weight", options_.weight, true, Site::none());
}

Tensor NLLLoss::forward(const Tensor& input, const Tensor& target) {
  return nll_loss(input, move_target_to_input(input, target), options_);
}

CrossEntropyLoss::CrossEntropyLoss(CrossEntropyOptions options) : options_(std::move(options)) {
  register_buffer("weight", options_.weight, true, Site::none());
}

Tensor CrossEntropyLoss::forward(const Tensor& input, const Tensor& target) {
  return cross_entropy(input, move_target_to_input(input, target), options_);
}

Tensor SoftMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return soft_margin_loss(input, move_target_to_input(input, target), options_);
}

MultiMarginLoss::MultiMarginLoss(MultiMarginOptions options) : options_(std::move(options)) {
  register_buffer("weight", options_.weight, true, Site::none());
}

Tensor MultiMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return multi_margin_loss(input, move_target_to_input(input, target), options_);
}

Tensor MultiLabelMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return multilabel_margin_loss(input, move_target_to_input(input, target), options_);
}

MultiLabelSoftMarginLoss::MultiLabelSoftMarginLoss(MultilabelSoftMarginOptions options)
    : options_(std::move(options)) {
  register_buffer("weight", options_.weight, true, Site::none());
}

Tensor MultiLabelSoftMarginLoss::forward(const Tensor& input, const Tensor& target) {
  return multilabel_soft_margin_loss(input, move_target_to_input(input, target), options_);
}

Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets, const Tensor& input_lengths,
                        const Tensor& target_lengths) {
  return ctc_loss(log_probs, move_target_to_input(log_probs, targets),
                  move_target_to_input(log_probs, input_lengths),
                  move_target_to_input(log_probs, target_lengths), options_);
}

Tensor CTCLoss::forward(const Tensor& log_probs, const Tensor& targets,
                        const std::vector<int64_t>& input_lengths,
                        const std::vector<int64_t>& target_lengths) {
  return ctc_loss(log_probs, move_target_to_input(log_probs, targets), input_lengths,
                  target_lengths, options_);
}

}  // namespace flow::nn
