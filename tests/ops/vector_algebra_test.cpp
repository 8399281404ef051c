#include "ops/linear/vector_algebra.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/context.h"
#include "core/error.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "ops/conv/conv.h"
#include "ops/conv/grid_sample.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/shrink.h"
#include "ops/elementwise/unary.h"
#include "ops/index/embedding_bag.h"
#include "ops/loss/ctc_loss.h"
#include "ops/loss/likelihood_loss.h"
#include "ops/loss/margin_loss.h"
#include "ops/norm/softmax.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Longs = std::vector<int64_t>;

TEST(VectorAlgebra, CrossProductOfAxes) {
  const Tensor x = tensor({1.F, 0.F, 0.F});
  const Tensor y = tensor({0.F, 1.F, 0.F});

  EXPECT_EQ(cross(x, y).to_vector<float>(), (Floats{0, 0, 1}));
  EXPECT_EQ(cross(y, x).to_vector<float>(), (Floats{0, 0, -1}));
}

TEST(VectorAlgebra, InnerProductsOfRows) {
  const Tensor a = tensor({{1.F, 2.F}, {3.F, 4.F}});
  const Tensor b = tensor({{1.F, 0.F}, {1.F, 1.F}, {0.F, 2.F}});

  EXPECT_EQ(inner(a, b).shape(), (Shape{2, 3}));
  EXPECT_EQ(a.inner(b).to_vector<float>(), (std::vector<float>{1, 3, 4, 3, 7, 8}));
  EXPECT_EQ(inner(a, tensor(2.F)).to_vector<float>(), (std::vector<float>{2, 4, 6, 8}));
  EXPECT_THROW(inner(a, ones({3})), InvalidArgument);
}

TEST(VectorAlgebra, DistanceOfAllElements) {
  const Tensor a = tensor({{1.F, 2.F}, {3.F, 4.F}});

  EXPECT_EQ(a.dist(zeros({2}), 1).item(), 10);
  EXPECT_EQ(dist(a, tensor({{1.F, 2.F}, {0.F, 0.F}})).item(), 5);
  EXPECT_THROW(dist(a, ones({3})), InvalidArgument);
}

TEST(VectorAlgebra, CombinationsKeepTheOrder) {
  const Tensor x = tensor({1, 2, 3});

  EXPECT_EQ(combinations(x).to_vector<int64_t>(), (Longs{1, 2, 1, 3, 2, 3}));
  EXPECT_EQ(combinations(x, 2, true).shape(), (Shape{6, 2}));
  EXPECT_EQ(combinations(x, 4).shape(), (Shape{0, 4}));
}

TEST(VectorAlgebra, CdistAtZeroDistanceHasNoGradient) {
  const Tensor x = tensor({{1.F, 2.F}}).requires_grad_();

  cdist(x, tensor({{1.F, 2.F}})).sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 0}));
}

// Sizes that fill neither a block of rows, nor a panel, nor a vector.
TEST(VectorAlgebra, CdistOfUnevenSizesEqualsTheNormsOfDifferences) {
  manual_seed(3);
  for (const DType dtype : {float32, float64}) {
    const Tensor a = randn({2, 37, 51}, {.dtype = dtype}).requires_grad_();
    const Tensor b = randn({2, 77, 51}, {.dtype = dtype}).requires_grad_();
    const Tensor weight = randn({2, 37, 77}, {.dtype = dtype});
    const Tensor norms = sqrt(square(a.unsqueeze(2) - b.unsqueeze(1)).sum(-1));

    const Tensor distances = cdist(a, b);
    const std::vector<Tensor> actual = grad({(distances * weight).sum()}, {a, b});
    const std::vector<Tensor> expected = grad({(norms * weight).sum()}, {a, b});

    const double tolerance = dtype == float64 ? 1e-12 : 1e-4;
    EXPECT_LT(abs(distances - norms).max().item(), tolerance);
    EXPECT_LT(abs(actual[0] - expected[0]).max().item(), tolerance);
    EXPECT_LT(abs(actual[1] - expected[1]).max().item(), tolerance);
  }
}

TEST(CtcLoss, ATargetThatDoesNotFitIsInfinitelyUnlikely) {
  const Tensor log_probs = log_softmax(zeros({2, 1, 3}), -1);
  const Tensor targets = tensor({{1, 1}});  // needs a blank between: three times

  EXPECT_TRUE(std::isinf(ctc_loss(log_probs, targets, {2}, {2}).item()));
  EXPECT_EQ(ctc_loss(log_probs, targets, {2}, {2}, {.zero_infinity = true}).item(), 0);
}

TEST(CtcLoss, OneAlignmentCostsItsProbabilities) {
  const Tensor log_probs = log_softmax(zeros({1, 1, 4}, {.dtype = float64}), -1);

  const Tensor loss = ctc_loss(log_probs, tensor({{2}}), {1}, {1});

  EXPECT_NEAR(loss.item(), std::log(4.0), 1e-15);
}

TEST(CtcLoss, ItsGradientIsNotDifferentiatedAgain) {
  const Tensor x = zeros({2, 1, 3}, {.dtype = float64}).requires_grad_();
  const Tensor loss = ctc_loss(log_softmax(x, -1), tensor({{1}}), {2}, {1});
  const Tensor gradient = grad({loss}, {x}, {.create_graph = true})[0];

  EXPECT_THROW(grad({square(gradient).sum()}, {x}), Unsupported);
}

TEST(CtcLoss, LengthsAndLabelsAreChecked) {
  const Tensor log_probs = log_softmax(zeros({2, 1, 3}), -1);

  EXPECT_THROW(ctc_loss(log_probs, tensor({{1}}), {3}, {1}), InvalidArgument);
  EXPECT_THROW(ctc_loss(log_probs, tensor({{1}}), {2}, {2}), InvalidArgument);
  EXPECT_THROW(ctc_loss(log_probs, tensor({{3}}), {2}, {1}), InvalidArgument);
  EXPECT_THROW(ctc_loss(log_probs, tensor({{1}}), {2}, {1}, {.blank = 3}), InvalidArgument);
}

TEST(GridSample, TheIdentityGridGivesTheImage) {
  const Tensor x = randn({2, 3, 4, 5}, {.dtype = float64});
  const Tensor theta =
      tensor({{{1.0, 0.0, 0.0}, {0.0, 1.0, 0.0}}}, {.dtype = float64}).expand({2, 2, 3});

  const Tensor y = grid_sample(x, affine_grid(theta, x.shape()));

  EXPECT_LT(sub(x, y).abs().max().item(), 1e-12);
}

TEST(GridSample, NanReadsTheFirstPixelAtABorderAndNothingElsewhere) {
  const Tensor x = tensor({{{{1.F, 2.F}, {3.F, 4.F}}}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor grid = tensor({{{{nan, nan}, {0.5F, 0.5F}}}});

  const Tensor border = grid_sample(x, grid, {.padding_mode = "border"});
  const Tensor zeros = grid_sample(x, grid);

  EXPECT_EQ(border.to_vector<float>(), (Floats{1, 4}));
  EXPECT_EQ(zeros.to_vector<float>(), (Floats{0, 4}));
}

TEST(GridSample, PositionsOnAndBeyondTheBorderHaveNoGradient) {
  const Tensor x = tensor({{{{1.0, 2.0, 4.0}}}}, {.dtype = float64});
  const Tensor grid = tensor({{{{-1.0, 0.0}, {-0.5, 0.0}, {1.5, 0.0}}}}, {.dtype = float64});
  grid.requires_grad_();

  grid_sample(x, grid, {.padding_mode = "border", .align_corners = true}).sum().backward();

  EXPECT_EQ(grid.grad().select(-1, 0).to_vector<double>(), (std::vector<double>{0, 1, 0}));
}

TEST(GridSample, AnInfinitePixelOutsideTheCornersDoesNotMatter) {
  const Tensor x = zeros({1, 5, 4, 4});
  x.select(2, 0).select(2, 0).fill_(std::numeric_limits<float>::infinity());
  const Tensor grid = tensor({{{{1.0F, 1.0F}, {2.0F, 0.0F}}}});

  const Tensor y = grid_sample(x, grid, {.align_corners = true});

  EXPECT_EQ(y.abs().max().item(), 0);
}

TEST(EmbeddingBag, EmptyBagsAreZeros) {
  const Tensor weight = tensor({{1.F, 2.F}, {3.F, 4.F}});

  const Tensor y = embedding_bag(tensor({1, 0}), weight, {.offsets = tensor({0, 0, 2})});

  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 0, 2, 3, 0, 0}));
}

TEST(Shrink, GumbelSoftmaxIsOneHotWhereHard) {
  manual_seed(3);
  const Tensor logits = zeros({50, 4}).requires_grad_();

  const Tensor y = gumbel_softmax(logits, {.hard = true});
  y.select(1, 0).sum().backward();

  EXPECT_EQ(y.sum(1).to_vector<float>(), Floats(50, 1.F));
  EXPECT_GT(logits.grad().abs().sum().item(), 0);
}

TEST(Shrink, AlphaDropoutKeepsMeanAndVariance) {
  manual_seed(4);
  const Tensor x = randn({100000});

  const Tensor y = alpha_dropout(x, {.p = 0.3, .training = true});

  EXPECT_NEAR(y.mean().item(), 0, 0.02);
  EXPECT_NEAR(y.var().item(), 1, 0.03);
  EXPECT_TRUE(alpha_dropout(x).is_same(x));
}

TEST(Shrink, FeatureDropoutTakesWholeChannels) {
  manual_seed(5);
  const Tensor y = dropout2d(ones({8, 16, 3, 3}), {.p = 0.5});

  for (const float total : y.sum({2, 3}).to_vector<float>())
    EXPECT_TRUE(total == 0 || total == 18) << total;
  EXPECT_GT(y.sum().item(), 0);
}

TEST(Shrink, RreluDrawsSlopesInTraining) {
  manual_seed(6);
  const Tensor slopes = neg(rrelu(full({1000}, -1.F), {.training = true}));

  EXPECT_GE(slopes.min().item(), 1.0 / 8);
  EXPECT_LE(slopes.max().item(), 1.0 / 3);
  EXPECT_GT(slopes.std().item(), 0.01);
}

TEST(LossVariants, DistancesOfOnesOwnAreTaken) {
  const auto distance = [](const Tensor& a, const Tensor& b) { return sub(a, b).abs().sum(1); };
  const Tensor near = zeros({1, 2});

  const Tensor loss = triplet_margin_with_distance_loss(
      near, tensor({{1.F, 1.F}}), tensor({{0.F, 0.5F}}), {.distance_function = distance});

  EXPECT_EQ(loss.item(), 2.5);
}

TEST(Conv, IntegersAreConvolvedExactly) {
  const Tensor x = ones({1, 1, 3}, {.dtype = int64});
  const Tensor w = full({1, 1, 2}, 200, {.dtype = int64});

  EXPECT_EQ(conv1d(x, w).to_vector<int64_t>(), (Longs{400, 400}));
  EXPECT_EQ(conv1d(x.to(uint8), w.to(uint8)).to_vector<int64_t>(), (Longs{144, 144}));
  EXPECT_THROW(conv1d(x, w.to(float32)), InvalidArgument);
}

TEST(Random, BernoulliRefusesWhatIsNoProbability) {
  EXPECT_THROW(bernoulli(tensor({0.5F, 1.5F})), InvalidArgument);
  EXPECT_THROW(bernoulli(tensor({NAN})), InvalidArgument);
}

TEST(Cov, HasTheDtypeOfItsVariablesAndWeights) {
  const Tensor x = tensor({{1.0F, 2.0F, 4.0F}, {0.5F, -1.0F, 3.0F}});
  const Tensor importance = tensor({0.5F, 0.25F, 1.0F});

  const Tensor y = cov(x.to(bfloat16), {.aweights = importance});
  EXPECT_EQ(y.dtype(), float32);
  EXPECT_TRUE(equal(y, cov(x, {.aweights = importance})));
  EXPECT_EQ(cov(x.to(bfloat16), {.fweights = tensor({1, 2, 1})}).dtype(), bfloat16);
  EXPECT_THROW(cov(x, {.fweights = importance}), InvalidArgument);
}

TEST(Trapezoid, NarrowIntegersDoNotOverflow) {
  const Tensor y = full({3}, 255, {.dtype = uint8});

  EXPECT_EQ(trapezoid(y, {.dx = 0.5}).item(), 255);
  EXPECT_EQ(trapezoid(y, {.x = arange(y.numel(), {.dtype = float16})}).dtype(), float16);
  EXPECT_EQ(cumulative_trapezoid(y).to_vector<double>(), (std::vector<double>{255, 510}));
}

TEST(VectorAlgebra, InnerTakesLastDimsOfOneSize) {
  EXPECT_THROW(inner(ones({2, 1}), ones({3, 4})), InvalidArgument);
  EXPECT_EQ(inner(ones({2, 4}), ones({3, 4})).shape(), Shape({2, 3}));
}

}  // namespace
}  // namespace flow
