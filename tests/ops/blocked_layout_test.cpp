#include "ops/kernel/blocked_layout.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "ops/conv/conv.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/norm/batch_norm.h"
#include "ops/shape/view.h"
#include "ops/vendor/onednn.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

ops::ChannelBlocks blocks_of(const char* name, const Shape& shape) {
  return ops::channel_blocks({name, 0, nullptr, nullptr}, shape);
}

TEST(BlockedLayout, NamesTellTheLanes) {
  const ops::ChannelBlocks blocks = blocks_of("aBcd16b", {2, 20, 3, 5});

  EXPECT_EQ(blocks.lanes, 16);
  EXPECT_EQ(blocks.blocks(), 2);
  EXPECT_EQ(blocks.positions, 15);
  EXPECT_TRUE(blocks.has_padding());
  EXPECT_EQ(blocks_of("acdb", {2, 20, 3, 5}).lanes, 20);
  EXPECT_FALSE(blocks_of("acdb", {2, 20, 3, 5}).has_padding());
  EXPECT_EQ(blocks_of("aBc8b", {2, 20, 3}).lanes, 8);
  EXPECT_EQ(blocks_of("aBcde4b", {2, 20, 3, 5, 2}).lanes, 4);
  for (const char* name : {"abcd", "Abcd16a", "ABcd16b16a", "aBcd16b2a", "aBcde16b", "aBcdb"})
    EXPECT_EQ(blocks_of(name, {2, 20, 3, 5}).lanes, 0) << name;
}

// The output of a convolution with 20 channels: blocks of 8 or 16 channels have padding.
class BlockedOps : public testing::Test {
 protected:
  void SetUp() override {
    if (!ops::has_onednn()) GTEST_SKIP() << ops::onednn_description();
    x_ = convolve(0.5);
    ASSERT_NE(x_.meta().blocked, nullptr);
  }

  static Tensor convolve(double factor) {
    const Tensor x = linspace(-2, 3, 2 * 3 * 9 * 8).reshape({2, 3, 9, 8});
    const Tensor weight = linspace(-factor, 1, 20 * 3).reshape({20, 3, 1, 1});
    return conv2d(x, weight);
  }

  Tensor x_;
};

TEST_F(BlockedOps, OneInputHandsItsLayoutOn) {
  const Tensor strided = convolve(0.5);
  strided.make_strided();

  const Tensor y = gelu(relu(x_));

  ASSERT_EQ(y.meta().blocked, x_.meta().blocked);
  EXPECT_EQ(y.to_vector<float>(), gelu(relu(strided)).to_vector<float>());
}

TEST_F(BlockedOps, TwoInputsOfOneLayoutDoToo) {
  const Tensor other = convolve(2);
  ASSERT_EQ(other.meta().blocked, x_.meta().blocked);

  const Tensor sum = add(x_, other);
  const bool is_blocked = sum.meta().blocked != nullptr;
  x_.make_strided();
  other.make_strided();

  EXPECT_TRUE(is_blocked);
  EXPECT_EQ(sum.to_vector<float>(), add(x_, other).to_vector<float>());
}

TEST_F(BlockedOps, AStridedInputMakesTheResultStrided) {
  const Tensor other = ones({20, 1, 1});

  const Tensor sum = add(x_, other);

  EXPECT_EQ(sum.meta().blocked, nullptr);
  EXPECT_FLOAT_EQ(sum.to_vector<float>()[7], x_.to_vector<float>()[7] + 1);
}

// Writes floats that are not zero into the memory of a blocked tensor.
int64_t count_values(const Tensor& x) {
  const auto* elements = reinterpret_cast<const float*>(x.impl().data());
  return std::count_if(elements, elements + x.meta().local_bytes() / sizeof(float),
                       [](float value) { return value != 0; });
}

void expect_near(const Tensor& actual, const Tensor& expected) {
  expect_values(actual, expected.to_vector<double>(), 1e-5);
}

TEST_F(BlockedOps, BatchNormKeepsItForwardAndBackward) {
  const Tensor weight = linspace(0.5, 2, 20);
  const Tensor bias = linspace(1, 3, 20);
  const auto run = [&](const Tensor& source) {
    const Tensor x = Tensor(source.impl().alias()).requires_grad_();  // detach() is strided
    const Tensor w = weight.detach().requires_grad_();
    const Tensor y =
        batch_norm(x, zeros({20}), ones({20}), {.weight = w, .bias = bias, .training = true});
    std::vector<Tensor> result = grad({y}, {x, w}, {.grad_outputs = {relu(convolve(2))}});
    result.insert(result.begin(), y);
    return result;
  };
  const std::vector<Tensor> blocked = run(x_);
  const Tensor evaluated = batch_norm(x_, bias, weight);

  ASSERT_NE(blocked[0].meta().blocked, nullptr);
  ASSERT_NE(blocked[1].meta().blocked, nullptr);
  ASSERT_NE(evaluated.meta().blocked, nullptr);
  EXPECT_EQ(count_values(blocked[0]), x_.numel());
  EXPECT_EQ(count_values(evaluated), x_.numel());
  const Tensor strided = x_.clone();
  strided.make_strided();
  const std::vector<Tensor> plain = run(strided);
  for (size_t i = 0; i < plain.size(); ++i)
    expect_near(blocked[i], plain[i]);
  expect_near(evaluated, batch_norm(strided, bias, weight));
}

// Up to eight threads share the images, more share the channels.
TEST_F(BlockedOps, ThreadsChangeNoBitOfBatchNorm) {
  const Tensor x = conv2d(linspace(-2, 3, 9 * 3 * 9 * 7).reshape({9, 3, 9, 7}),
                          linspace(-0.5, 1, 20 * 3).reshape({20, 3, 1, 1}));
  ASSERT_NE(x.meta().blocked, nullptr);
  const auto run = [&](int64_t threads) {
    set_num_threads(threads);
    const Tensor source = Tensor(x.impl().alias()).requires_grad_();
    const Tensor weight = linspace(0.5, 2, 20).requires_grad_();
    const Tensor mean = zeros({20});
    const Tensor var = ones({20});
    const Tensor y = batch_norm(source, mean, var, {.weight = weight, .training = true});
    const std::vector<Tensor> gradients = grad({y}, {source, weight}, {.grad_outputs = {relu(x)}});
    std::vector<std::vector<float>> values;
    for (const Tensor& tensor : {y, mean, var, gradients[0], gradients[1]})
      values.push_back(tensor.to_vector<float>());
    return values;
  };
  const int64_t threads_before = get_num_threads();
  const auto expected = run(1);

  for (const int64_t threads : {2, 3, 7, 16})
    EXPECT_EQ(run(threads), expected) << threads << " threads";
  set_num_threads(threads_before);
}

TEST_F(BlockedOps, AnInfinityLeavesItsChannelWithoutAVariance) {
  const Tensor weight = ones({20, 3, 1, 1});
  weight.narrow(0, 1, 1).fill_(std::numeric_limits<double>::infinity());
  const Tensor var = ones({20});

  const Tensor y =
      batch_norm(conv2d(ones({2, 3, 9, 8}), weight), zeros({20}), var, {.training = true});

  ASSERT_NE(y.meta().blocked, nullptr);
  const std::vector<float> variances = var.to_vector<float>();
  for (size_t channel = 0; channel < variances.size(); ++channel)
    EXPECT_EQ(std::isnan(variances[channel]), channel == 1) << channel;
}

TEST_F(BlockedOps, PaddingStaysZero) {
  const Tensor y = exp(x_);

  ASSERT_NE(y.meta().blocked, nullptr);
  EXPECT_EQ(count_values(y), y.numel());
}

}  // namespace
}  // namespace flow
