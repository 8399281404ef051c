#include "ops/loss/cross_entropy.h"

#include <cmath>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/norm/softmax.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

struct CrossEntropy : ::testing::Test {
  Tensor x = tensor({{1.f, 2.f, 3.f}, {1.f, 0.f, -1.f}});
  Tensor target = tensor({2, 0});
};

TEST_F(CrossEntropy, IsTheNegativeLogLikelihoodOfTheSoftmax) {
  expect_values(cross_entropy(x, target), {0.40760596});
  expect_values(cross_entropy(x, target, {.reduction = "none"}), {0.40760596, 0.40760596});
  expect_values(nll_loss(log_softmax(x, 1), target), {0.40760596});
  expect_values(cross_entropy(x.select(0, 0), tensor(2)), {0.40760596});
}

TEST_F(CrossEntropy, GradientIsSoftmaxLessTheTarget) {
  x.requires_grad_();

  cross_entropy(x, target).backward();

  expect_values(x.grad(),
                {0.04501529, 0.12236424, -0.16737952, -0.16737952, 0.12236424, 0.04501529});
}

TEST_F(CrossEntropy, DividesByTheWeightsOfTheTargets) {
  const Tensor rows = tensor({{1.f, 2.f, 3.f}, {0.f, 0.f, 0.f}});
  const Tensor weight = tensor({1.f, 2.f, 3.f});

  // (3 * 0.40760596 + 1 * log(3)) / (3 + 1)
  expect_values(cross_entropy(rows, target, {.weight = weight}), {0.58035754});
  expect_values(cross_entropy(rows, target, {.weight = weight, .reduction = "sum"}), {2.32143018});
}

TEST_F(CrossEntropy, LeavesIgnoredTargetsOut) {
  const Tensor rows = tensor({{1.f, 2.f, 3.f}, {9.f, 0.f, 0.f}}).requires_grad_();
  const Tensor loss = cross_entropy(rows, tensor({2, -100}));

  loss.backward();

  expect_values(loss, {0.40760596});
  expect_values(rows.grad(), {0.09003057, 0.24472847, -0.33475904, 0, 0, 0});
  expect_values(cross_entropy(rows, tensor({1, 1}), {.ignore_index = 1}), {NAN});
}

TEST_F(CrossEntropy, SmoothsLabels) {
  expect_values(cross_entropy(x, target, {.label_smoothing = 0.1}), {0.50760596});
}

TEST_F(CrossEntropy, TakesDistributions) {
  const Tensor q = tensor({{0.2f, 0.3f, 0.5f}, {0.6f, 0.2f, 0.2f}});

  expect_values(cross_entropy(x, q), {1.05760596});
  expect_values(
      cross_entropy(x, tensor({{0.f, 0.f, 1.f}, {1.f, 0.f, 0.f}}), {.label_smoothing = 0.1}),
      {0.50760596});
}

TEST_F(CrossEntropy, TakesPlanesOfClasses) {
  // (1, 3, 2): column 0 holds 1, 2, 3 and column 1 holds 1, 0, -1.
  const Tensor planes = tensor({{{1.f, 1.f}, {2.f, 0.f}, {3.f, -1.f}}});

  expect_values(cross_entropy(planes, tensor({{2, 0}}), {.reduction = "none"}),
                {0.40760596, 0.40760596});
}

TEST_F(CrossEntropy, OfHalvesDoesNotOverflowInTheSum) {
  const Tensor many = zeros({4096, 2}, {.dtype = float16});
  const Tensor labels = zeros({4096}, {.dtype = int64});
  const Tensor loss = cross_entropy(many * 60000, labels);

  EXPECT_EQ(loss.dtype(), float16);
  expect_values(loss, {0.69335938}, 1e-3);
}

TEST_F(CrossEntropy, RefusesTargetsThatAreNoClasses) {
  expect_refused(
      [&] {
        cross_entropy(x, tensor({0, 3}));
      },
      "[cross_entropy] target 3 is not a class; give 0 to 2");
  expect_refused([&] { nll_loss(x, tensor({0, -1})); }, "[nll_loss] target -1 is not a class");
  expect_refused(
      [&] {
        cross_entropy(x, tensor({0, 1, 2}));
      },
      "target must be of shape (2,), the input's without its class dim");
  expect_refused([&] { cross_entropy(x, tensor({true, false})); }, "int64 or int32");
  expect_refused([&] { cross_entropy(x, target, {.weight = ones({2})}); },
                 "one element for each of the 3 classes");
  expect_refused([&] { cross_entropy(x, target, {.label_smoothing = 2}); }, "between 0 and 1");
  expect_refused([&] { cross_entropy(x, softmax(x, 1), {.ignore_index = 1}); },
                 "ignore_index is 1; it names classes, and the target is floating");
  expect_refused([&] { cross_entropy(x, target, {.weight = ones({3}).requires_grad_()}); },
                 "class weights have no gradient");
}

TEST_F(CrossEntropy, MeanOverManyFloat16DistributionsIsFinite) {
  const Tensor logits = zeros({131072, 2}, {.dtype = float16});

  EXPECT_NEAR(cross_entropy(logits, ones_like(logits) * 0.5).item(), 0.693, 1e-3);
}

// NaN and infinities of an ignored target, and of the weight of an ignored class, stay out.
TEST_F(CrossEntropy, IgnoredTargetsHaveNoGradientWhateverTheyContain) {
  const auto inf = static_cast<float>(INFINITY);
  const Tensor rows = tensor({{1.f, 2.f, 3.f}, {NAN, 0.f, 0.f}, {inf, 0.f, 0.f}});
  const Tensor chosen = tensor({2, -100, -100});
  const Tensor weight = tensor({1.f, NAN, 1.f});
  for (const double smoothing : {0.0, 0.5}) {
    const Tensor flat = rows.detach().requires_grad_();
    const Tensor columns = rows.t().contiguous().unsqueeze(0).requires_grad_();
    cross_entropy(flat, chosen, {.label_smoothing = smoothing}).backward();
    cross_entropy(columns, chosen.unsqueeze(0), {.label_smoothing = smoothing}).backward();

    expect_values(flat.grad().narrow(0, 1, 2), {0, 0, 0, 0, 0, 0});
    expect_values(columns.grad().narrow(2, 1, 2), {0, 0, 0, 0, 0, 0});
  }
  const Tensor flat = rows.narrow(0, 0, 1).detach().requires_grad_();
  cross_entropy(flat, tensor({2}), {.weight = weight, .ignore_index = 1}).backward();
  expect_values(flat.grad(), {0.09003057, 0.24472847, -0.33475904});
}

}  // namespace
}  // namespace flow
