#include "nn/ranking_loss.h"

#include "nn/loss_target.h"

namespace flow::nn {

Tensor MarginRankingLoss::forward(const Tensor& input1, const Tensor& input2,
                                  const Tensor& target) {
  return margin_ranking_loss(input1, input2, target, options_);
}

Tensor HingeEmbeddingLoss::forward(const Tensor& input, const Tensor& target) {
  return hinge_embedding_loss(input, move_target_to_input(input, target), options_);
}

Tensor CosineEmbeddingLoss::forward(const Tensor& input1, const Tensor& input2,
                                    const Tensor& target) {
  return cosine_embedding_loss(input1, input2, move_target_to_input(input1, target), options_);
}

Tensor TripletMarginLoss::forward(const Tensor& anchor, const Tensor& positive,
                                  const Tensor& negative) {
  return triplet_margin_loss(anchor, positive, negative, options_);
}

Tensor TripletMarginWithDistanceLoss::forward(const Tensor& anchor, const Tensor& positive,
                                              const Tensor& negative) {
  return triplet_margin_with_distance_loss(anchor, positive, negative, options_);
}

Tensor CombinedMarginLoss::forward(const Tensor& input, const Tensor& label) {
  return combined_margin_loss(input, label, options_);
}

}  // namespace flow::nn
