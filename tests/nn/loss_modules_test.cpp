#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"

namespace flow::nn {
namespace {

TEST(LossModules, GiveWhatTheirFunctionsGive) {
  const Tensor x = randn({3, 4}), y = randn({3, 4});
  const Tensor sign = tensor({1.F, -1.F, 1.F});
  const Tensor classes = tensor({0, 3, 1});

  EXPECT_TRUE(HingeEmbeddingLoss()(x, ones({3, 4})).equal(hinge_embedding_loss(x, ones({3, 4}))));
  EXPECT_TRUE(SoftMarginLoss()(x, ones({3, 4})).equal(soft_margin_loss(x, ones({3, 4}))));
  EXPECT_TRUE(MultiMarginLoss({.p = 2})(x, classes).equal(multi_margin_loss(x, classes, {.p = 2})));
  EXPECT_TRUE(PoissonNLLLoss()(x, y.abs()).equal(poisson_nll_loss(x, y.abs())));
  EXPECT_TRUE(GaussianNLLLoss()(x, y, y.abs()).equal(gaussian_nll_loss(x, y, y.abs())));
  EXPECT_TRUE(CosineEmbeddingLoss({.margin = 0.1})(x, y, sign)
                  .equal(cosine_embedding_loss(x, y, sign, {.margin = 0.1})));
  EXPECT_TRUE(TripletMarginWithDistanceLoss()(x, y, neg(y))
                  .equal(triplet_margin_with_distance_loss(x, y, neg(y))));
}

TEST(LossModules, CtcTakesLengthsAsTensorsOrNumbers) {
  const Tensor log_probs = log_softmax(randn({6, 2, 4}), -1);
  const Tensor targets = tensor({{1, 2}, {3, 0}});
  CTCLoss loss({.reduction = "sum"});

  const Tensor from_numbers =
      loss(log_probs, targets, std::vector<int64_t>{6, 5}, std::vector<int64_t>{2, 1});
  const Tensor from_tensors = loss(log_probs, targets, tensor({6, 5}), tensor({2, 1}));

  EXPECT_TRUE(from_numbers.equal(from_tensors));
  EXPECT_GT(from_numbers.item(), 0);
}

}  // namespace
}  // namespace flow::nn
