#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"

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

}  // namespace
}  // namespace flow::nn
