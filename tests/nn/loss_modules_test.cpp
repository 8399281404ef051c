#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
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

TEST(LossModules, WeightsAreBuffers) {
  const Tensor x = randn({4, 3}, {.dtype = float64}), classes = tensor({0, 2, 1, 2});
  CrossEntropyLoss loss({.weight = tensor({1.F, 2.F, 4.F})});
  const Tensor before = loss(x.to(float32), classes);

  loss.to(float64);

  EXPECT_EQ(loss.get_buffer("weight").dtype(), float64);
  EXPECT_NEAR(loss(x, classes).item(), before.item(), 1e-6);
  loss.load_state_dict({{"weight", ones({3}, {.dtype = float64})}});
  EXPECT_NEAR(loss(x, classes).item(), cross_entropy(x, classes).item(), 1e-6);
  EXPECT_TRUE(CrossEntropyLoss().state_dict().empty());
  EXPECT_EQ(BCEWithLogitsLoss({.weight = ones({3}), .pos_weight = ones({3})}).state_dict().size(),
            2);
}

TEST(LossModules, WeightsFollowToGlobal) {
  const Tensor x = randn({4, 3}), classes = tensor({0, 2, 1, 2});
  const Tensor weight = tensor({1.F, 2.F, 4.F});
  const double expected = cross_entropy(x, classes, {.weight = weight}).item();

  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    const auto rows = [&](const Tensor& all) {
      return all.to_global(both, sbp::broadcast).to_global(both, sbp::split(0));
    };
    NLLLoss loss({.weight = weight.clone()});
    loss.to_global(both, sbp::broadcast);

    const Tensor value = loss(log_softmax(rows(x), -1), rows(classes));

    EXPECT_NEAR(value.to_global(both, sbp::broadcast).to_local().item(), expected, 1e-6);
  });
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
