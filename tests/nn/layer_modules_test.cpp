#include <initializer_list>

#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow::nn {
namespace {

TEST(BilinearLayer, HasPyTorchsParameters) {
  Bilinear layer(3, 4, 5);

  EXPECT_EQ(layer.weight.shape(), (Shape{5, 3, 4}));
  EXPECT_EQ(layer.bias.shape(), (Shape{5}));
  EXPECT_EQ(layer(randn({2, 3}), randn({2, 4})).shape(), (Shape{2, 5}));
  EXPECT_FALSE(Bilinear(3, 4, 5, {.bias = false}).bias.defined());
}

TEST(EmbeddingBagLayer, JoinsRowsOfEachBag) {
  EmbeddingBag layer(5, 3, {.mode = "sum", .padding_idx = 0});

  EXPECT_EQ(layer(tensor({{1, 2}, {0, 0}})).shape(), (Shape{2, 3}));
  EXPECT_EQ(layer(tensor({{0, 0}})).abs().sum().item(), 0);
  EXPECT_EQ(layer(tensor({1, 2, 3}), tensor({0, 1})).shape(), (Shape{2, 3}));
}

TEST(DropoutLayers, AreTheIdentityInEvaluation) {
  const Tensor x = randn({2, 3, 4, 4});
  Dropout2d dropout(0.5);
  AlphaDropout alpha(0.5);
  dropout.eval();
  alpha.eval();

  EXPECT_TRUE(dropout(x).is_same(x));
  EXPECT_TRUE(alpha(x).is_same(x));
  EXPECT_THROW(Dropout3d(1.5), InvalidArgument);
}

TEST(NeighbourhoodLayers, KeepOrShrinkShapes) {
  const Tensor x = rand({2, 6, 4, 4});

  EXPECT_EQ(LocalResponseNorm(3)(x).shape(), x.shape());
  EXPECT_EQ(LPPool2d(2, 2)(x).shape(), (Shape{2, 6, 2, 2}));
  EXPECT_EQ(ChannelShuffle(3)(x).shape(), x.shape());
  EXPECT_TRUE(Softmax2d()(x).equal(softmax(x, 1)));
  EXPECT_TRUE(Softmin(1)(x).equal(softmin(x, 1)));
}

TEST(InstanceNormLayers, TakeOneSample) {
  InstanceNorm1d tracked(3, {.affine = true, .track_running_stats = true});
  const Tensor x = randn({3, 5}), image = randn({2, 4, 4}), volume = randn({2, 3, 3, 2});

  const Tensor y = tracked(x);

  EXPECT_TRUE(allclose(y, layer_norm(x, {5})));
  EXPECT_TRUE(allclose(tracked.running_mean, x.mean({1}) * 0.1));
  EXPECT_EQ(InstanceNorm2d(2)(image).shape(), image.shape());
  EXPECT_EQ(InstanceNorm3d(2)(volume).shape(), volume.shape());
  tracked.eval();
  EXPECT_TRUE(allclose(tracked(x), tracked(x.unsqueeze(0)).squeeze(0)));
  EXPECT_THROW(tracked(randn({4, 5})), InvalidArgument);
}

TEST(NormLayers, TakeAnyNumberOfFeaturesWithoutParametersAndStatistics) {
  const Tensor x = randn({2, 5, 4});
  EXPECT_TRUE(allclose(BatchNorm1d(3, {.affine = false, .track_running_stats = false})(x),
                       BatchNorm1d(5)(x)));
  EXPECT_TRUE(allclose(InstanceNorm1d(3)(x), InstanceNorm1d(5)(x)));
  EXPECT_THROW(BatchNorm1d(3, {.affine = false})(x), InvalidArgument);
  EXPECT_THROW(BatchNorm1d(3, {.track_running_stats = false})(x), InvalidArgument);
  EXPECT_THROW(InstanceNorm1d(3, {.track_running_stats = true})(x), InvalidArgument);
}

// A mask whose dims are in another order has as many elements.
TEST(MultiheadAttentionLayer, RefusesMasksOfOtherShapesAndIntegers) {
  MultiheadAttention attention(4, 2);
  const Tensor q = randn({3, 2, 4}), k = randn({5, 2, 4});
  const auto call = [&](const AttentionCallOptions& options) {
    return attention(q, k, k, options).output;
  };
  const auto padding = [&](const Shape& shape, DType dtype) {
    return call({.key_padding_mask = zeros(shape, {.dtype = dtype})});
  };
  const auto mask = [&](const Shape& shape, DType dtype) {
    return call({.attn_mask = zeros(shape, {.dtype = dtype})});
  };

  EXPECT_THROW(padding({5, 2}, bool_), InvalidArgument);
  EXPECT_THROW(padding({10}, bool_), InvalidArgument);
  EXPECT_THROW(padding({2, 5}, int64), InvalidArgument);
  EXPECT_THROW(mask({3, 4, 5}, float32), InvalidArgument);
  EXPECT_THROW(mask({1, 5}, bool_), InvalidArgument);
  EXPECT_THROW(mask({3, 5}, int64), InvalidArgument);
  EXPECT_TRUE(allclose(padding({2, 5}, bool_), call({})));
  EXPECT_TRUE(allclose(mask({4, 3, 5}, float32), mask({3, 5}, bool_)));
}

TEST(MultiheadAttentionLayer, RefusesKeysAndValuesOfOtherBatchesAndLengths) {
  MultiheadAttention attention(4, 2, {.batch_first = true});
  const Tensor q = randn({3, 2, 4}), k = randn({3, 5, 4});
  const auto message = [&](const Tensor& key, const Tensor& value) {
    return message_of([&] { attention(q, key, value); });
  };

  EXPECT_NE(message(k, randn({1, 5, 4})).find("one batch size"), std::string::npos);
  EXPECT_NE(message(randn({1, 5, 4}), randn({1, 5, 4})).find("one batch size"), std::string::npos);
  EXPECT_NE(message(k, randn({3, 1, 4})).find("one length"), std::string::npos);
  EXPECT_EQ(attention(q, k, k).output.shape(), q.shape());
}

TEST(NormLayers, LearnTheWeightAloneWithoutBias) {
  const Tensor x = randn({3, 4, 5});
  BatchNorm1d batch(4, {.bias = false});
  InstanceNorm1d instance(4, {.affine = true, .bias = false});
  GroupNorm group(2, 4, {.bias = false});

  for (const ModuleBase* layer :
       std::initializer_list<const ModuleBase*>{&batch, &instance, &group}) {
    ASSERT_EQ(layer->named_parameters().size(), 1U);
    EXPECT_EQ(layer->named_parameters()[0].first, "weight");
    EXPECT_NE(layer->repr().find("affine=True, bias=False"), std::string::npos) << layer->repr();
  }
  EXPECT_TRUE(allclose(batch(x), BatchNorm1d(4)(x)));
  EXPECT_TRUE(allclose(instance(x), InstanceNorm1d(4)(x)));
  EXPECT_TRUE(allclose(group(x), GroupNorm(2, 4)(x)));
  EXPECT_TRUE(BatchNorm1d(4, {.affine = false}).parameters().empty());
}

// One call gives an output for each step; a node of the tape had at most 256.
TEST(RecurrentLayers, HaveGradientsOfLongSequences) {
  constexpr int64_t kSteps = 300;
  for (const bool is_lstm : {false, true}) {
    RNN rnn(2, 3);
    LSTM lstm(2, 3);
    const Tensor x = randn({kSteps, 1, 2}).requires_grad_();
    const Tensor all = is_lstm ? lstm(x).output : rnn(x).output;
    all.select(0, kSteps - 1).sum().backward();
    const Tensor early = x.grad().select(0, 0), late = x.grad().select(0, kSteps - 1);
    EXPECT_GT(late.abs().sum().item(), 1e-3);
    EXPECT_LT(early.abs().sum().item(), 1e-3 * late.abs().sum().item());
    if (is_lstm) continue;
    const Tensor h = all.select(0, kSteps - 1).detach();
    const Tensor expected = matmul(1 - h * h, rnn.get_parameter("weight_ih_l0").detach());
    EXPECT_TRUE(allclose(late, expected, {.rtol = 1e-5, .atol = 1e-6}));
  }
}

TEST(DropoutLayers, DropWholeChannelsOfASampleWithoutABatch) {
  manual_seed(2);
  const auto expect_whole = [](const Tensor& y, int64_t channels) {
    const Tensor rows = y.reshape({channels, -1});
    EXPECT_TRUE(rows.amax(1).equal(rows.amin(1)));
    const double kept = rows.select(1, 0).gt(0).sum().item();
    EXPECT_GT(kept, 0);
    EXPECT_LT(kept, static_cast<double>(channels));
  };
  expect_whole(Dropout1d(0.5)(ones({40, 6})), 40);
  expect_whole(Dropout3d(0.5)(ones({40, 2, 3, 3})), 40);
  expect_whole(Dropout1d(0.5)(ones({2, 20, 6})), 40);
}

TEST(InstanceNormLayers, TakeAnyNumberOfFeaturesWithoutParameters) {
  EXPECT_EQ(InstanceNorm2d(5)(randn({1, 3, 4, 4})).shape(), (Shape{1, 3, 4, 4}));
  EXPECT_THROW(InstanceNorm2d(5, {.affine = true})(randn({1, 3, 4, 4})), InvalidArgument);
  EXPECT_THROW(InstanceNorm2d(5, {.track_running_stats = true})(randn({1, 3, 4, 4})),
               InvalidArgument);
}

TEST(NormLayers, OfOneDimTakeANumber) {
  EXPECT_EQ(LayerNorm(4).weight.shape(), (Shape{4}));
  EXPECT_EQ(LayerNorm({4}).weight.shape(), (Shape{4}));
  EXPECT_EQ(LayerNorm({3, 4}, {.bias = false}).weight.shape(), (Shape{3, 4}));
  EXPECT_EQ(RMSNorm(4, {.eps = 1e-6}).weight.shape(), (Shape{4}));
}

}  // namespace
}  // namespace flow::nn
