// AdaptiveLogSoftmaxWithLoss and the modules of fractional pooling.
#include <algorithm>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "nn/flow.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

nn::AdaptiveLogSoftmaxWithLoss make_softmax() {
  manual_seed(4);
  nn::AdaptiveLogSoftmaxWithLoss softmax(8, 20, {4, 10}, {.div_value = 2, .head_bias = true});
  softmax.to(float64);
  return softmax;
}

void expect_near(const Tensor& actual, const Tensor& expected) {
  ASSERT_EQ(actual.shape(), expected.shape());
  EXPECT_TRUE(allclose(actual.full(), expected.full(), {.rtol = 0, .atol = 1e-12}));
}

TEST(AdaptiveSoftmax, HasTheParametersOfPyTorch) {
  const nn::AdaptiveLogSoftmaxWithLoss softmax = make_softmax();
  EXPECT_EQ(softmax.get_parameter("head.weight").shape(), (Shape{6, 8}));
  EXPECT_EQ(softmax.get_parameter("head.bias").shape(), Shape{6});
  EXPECT_EQ(softmax.get_parameter("tail.0.0.weight").shape(), (Shape{4, 8}));
  EXPECT_EQ(softmax.get_parameter("tail.0.1.weight").shape(), (Shape{6, 4}));
  EXPECT_EQ(softmax.get_parameter("tail.1.0.weight").shape(), (Shape{2, 8}));
  EXPECT_EQ(softmax.get_parameter("tail.1.1.weight").shape(), (Shape{10, 2}));
  EXPECT_EQ(softmax.parameters().size(), 6U);
}

TEST(AdaptiveSoftmax, IsADistributionWhoseTargetsItScores) {
  nn::AdaptiveLogSoftmaxWithLoss softmax = make_softmax();
  const Tensor x = randn({7, 8}, {.dtype = float64});
  const Tensor target = tensor({0, 3, 4, 9, 10, 19, 12});
  const Tensor all = softmax.log_prob(x);
  EXPECT_EQ(all.shape(), (Shape{7, 20}));
  expect_near(all.exp().sum(1), ones({7}, {.dtype = float64}));

  const auto [output, loss] = softmax(x, target);
  expect_near(output, all.gather(1, target.unsqueeze(1)).squeeze(1));
  expect_near(loss, nll_loss(all, target));
  EXPECT_EQ(softmax.predict(x).to_vector<int64_t>(), all.argmax(1).to_vector<int64_t>());

  const auto one = softmax(x[5], target[5]);
  expect_near(one.output, output[5]);
  EXPECT_EQ(one.output.dim(), 0);

  // The gradients are those of the whole distribution.
  loss.backward();
  std::vector<Tensor> sparse;
  for (const Tensor& parameter : softmax.parameters())
    sparse.push_back(parameter.grad());
  softmax.zero_grad();
  nll_loss(softmax.log_prob(x), target).backward();
  for (size_t i = 0; i < sparse.size(); ++i)
    expect_near(sparse[i], softmax.parameters()[i].grad());
}

TEST(AdaptiveSoftmax, CompiledAndGlobalStepsEqualIt) {
  struct Score : nn::Graph<Score> {
    nn::AdaptiveLogSoftmaxWithLoss softmax = make_softmax();

    Tensor build(const Tensor& x, const Tensor& target) { return softmax(x, target).output; }
  };

  const Tensor x = randn({6, 8}, {.dtype = float64});
  const Tensor target = tensor({0, 5, 11, 19, 3, 9});
  nn::AdaptiveLogSoftmaxWithLoss softmax = make_softmax();
  const Tensor expected = softmax(x, target).output.detach();
  Score graph;
  expect_near(graph(x, target), expected);
  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    nn::AdaptiveLogSoftmaxWithLoss split = make_softmax();
    split.to_global(both, {{"head.*", sbp::split(0)}, {"*", sbp::broadcast}});
    const auto global = [&](const Tensor& all, Sbp layout) {
      return all.to_global(both, sbp::broadcast).to_global(both, layout);
    };
    const auto result = split(global(x, sbp::split(0)), global(target, sbp::split(0)));
    expect_near(result.output, expected);
    result.loss.backward();
    EXPECT_TRUE(split.tail[1][0].as<nn::Linear>().weight.grad().defined());
  });
}

TEST(AdaptiveSoftmax, RefusesCutoffsAndTargetsThatAreNone) {
  const auto make = [](std::vector<int64_t> cutoffs) {
    nn::AdaptiveLogSoftmaxWithLoss(8, 20, std::move(cutoffs));
  };
  EXPECT_THROW(make({}), InvalidArgument);
  EXPECT_THROW(make({0, 4}), InvalidArgument);
  EXPECT_THROW(make({4, 4}), InvalidArgument);
  EXPECT_THROW(make({4, 20}), InvalidArgument);
  EXPECT_THROW(nn::AdaptiveLogSoftmaxWithLoss(2, 20, {4, 8}), InvalidArgument) << "no features";
  nn::AdaptiveLogSoftmaxWithLoss softmax = make_softmax();
  const Tensor x = ones({2, 8}, {.dtype = float64});
  EXPECT_THROW(softmax(x, tensor({0, 20})), InvalidArgument);
  EXPECT_THROW(softmax(x, tensor({-1, 2})), InvalidArgument);
  EXPECT_THROW(softmax(x, tensor({1, 2, 3})), InvalidArgument);
  EXPECT_THROW(softmax(x, tensor({{1}, {2}})), InvalidArgument);
}

TEST(FractionalMaxPool, WindowsCoverTheInputInOrder) {
  const Tensor x = arange(2 * 12 * 9, {.dtype = float32}).reshape({1, 2, 12, 9});
  nn::FractionalMaxPool2d pool(3, {.output_ratio = {0.5, 0.4}});
  const auto [values, indices] = pool.forward_with_indices(x);
  EXPECT_EQ(values.shape(), (Shape{1, 2, 6, 3}));
  EXPECT_EQ(values.to_vector<float>(),
            x.flatten(2).gather(2, indices.flatten(2)).to_vector<float>());
  EXPECT_EQ(values.max().item(), 2 * 12 * 9 - 1) << "the last window ends at the last element";
  const Doubles rows = values[0][0].select(1, 0).to_vector<double>();
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));

  manual_seed(1);
  const auto first = pool(x).to_vector<float>();
  manual_seed(1);
  EXPECT_EQ(pool(x).to_vector<float>(), first);
  EXPECT_EQ(nn::FractionalMaxPool3d(2, {.output_size = {2, 3, 4}})(rand({2, 4, 5, 6})).shape(),
            (Shape{2, 2, 3, 4}));
}

TEST(FractionalMaxPool, RanksPlaceTheSameWindows) {
  const Tensor x = rand({4, 2, 8, 8});
  manual_seed(9);
  const auto expected = fractional_max_pool2d(x, 2, {.output_size = 5}).to_vector<float>();
  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    manual_seed(9);
    const Tensor split = x.to_global(both, sbp::broadcast).to_global(both, sbp::split(0));
    EXPECT_EQ(fractional_max_pool2d(split, 2, {.output_size = 5}).to_vector<float>(), expected);
  });
}

TEST(FractionalMaxPool, RefusesSizesThatDoNotFit) {
  const Tensor x = rand({1, 2, 6, 6});
  EXPECT_THROW(fractional_max_pool2d(x, 2, {}), InvalidArgument);
  EXPECT_THROW(fractional_max_pool2d(x, 2, {.output_size = 3, .output_ratio = {0.5}}),
               InvalidArgument);
  EXPECT_THROW(fractional_max_pool2d(x, 2, {.output_size = 6}), InvalidArgument);
  EXPECT_THROW(fractional_max_pool2d(x, 2, {.output_ratio = {1.5}}), InvalidArgument);
  EXPECT_THROW(fractional_max_pool2d(x[0][0], 2, {.output_size = 2}), InvalidArgument);
  EXPECT_THROW(fractional_max_pool2d(x, 2, {.output_size = 2, .random_samples = rand({1, 2, 3})}),
               InvalidArgument);
}

}  // namespace
}  // namespace flow
