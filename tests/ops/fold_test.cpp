#include "ops/conv/fold.h"

#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/sample_tensors.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

// Values of PyTorch 2.
TEST(Fold, UnfoldGivesWindowsAsColumns) {
  const Tensor x = counting({1, 1, 3, 4}, 1);

  EXPECT_EQ(unfold(x, 2).shape(), Shape({1, 4, 6}));
  EXPECT_EQ(unfold(x, 2).to_vector<float>(),
            Floats({1, 2, 3, 5, 6, 7, 2, 3, 4, 6, 7, 8, 5, 6, 7, 9, 10, 11, 6, 7, 8, 10, 11, 12}));
  EXPECT_EQ(unfold(x, {2, 3}, {.padding = {1, 0}, .stride = {2, 1}}).to_vector<float>(),
            Floats({0, 0, 5, 6, 0, 0, 6, 7, 0, 0, 7, 8, 1, 2, 9, 10, 2, 3, 10, 11, 3, 4, 11, 12}));
  EXPECT_EQ(unfold(ones({2, 5, 5}), 2, {.dilation = 3}).shape(), Shape({8, 4}));
  EXPECT_THROW(unfold(ones({5, 5}), 2), InvalidArgument);
  EXPECT_THROW(unfold(x, 4), InvalidArgument);
}

TEST(Fold, FoldAddsWindowsUp) {
  const Tensor x = counting({1, 1, 3, 4}, 1);
  const FoldOptions apart{.padding = 1, .stride = 2};

  EXPECT_EQ(fold(unfold(x, 2), {3, 4}, 2).to_vector<float>(),
            Floats({1, 4, 6, 4, 10, 24, 28, 16, 9, 20, 22, 12}));
  EXPECT_EQ(fold(unfold(x, {3, 2}, apart), {3, 4}, {3, 2}, apart).to_vector<float>(),
            Floats({1, 2, 3, 4, 10, 12, 14, 16, 9, 10, 11, 12}));
  EXPECT_EQ(fold(ones({4, 6}), {3, 4}, 2).shape(), Shape({1, 3, 4}));
  EXPECT_THROW(fold(ones({1, 4, 5}), {3, 4}, 2), InvalidArgument);
  EXPECT_THROW(fold(ones({1, 3, 6}), {3, 4}, 2), InvalidArgument);
}

TEST(Fold, GradientCountsTheWindowsOfAnElement) {
  const Tensor x = ones({1, 1, 3, 3}, {.requires_grad = true});

  sum(unfold(x, 2)).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({1, 2, 1, 2, 4, 2, 1, 2, 1}));
}

TEST(Fold, TradedPixelsHaveMemoryOfTheirOwn) {
  const Tensor x = counting({1, 4, 1, 1}, 0);

  const Tensor y = pixel_shuffle(x, 2);
  pixel_unshuffle(y, 2).zero_();
  y.add_(1);

  EXPECT_EQ(x.to_vector<float>(), Floats({0, 1, 2, 3}));
  EXPECT_EQ(y.to_vector<float>(), Floats({1, 2, 3, 4}));
}

TEST(Fold, PixelsAndChannelsTradePlaces) {
  const Tensor x = counting({1, 4, 1, 2}, 0);
  const Tensor y = pixel_shuffle(x, 2);

  EXPECT_EQ(y.shape(), Shape({1, 1, 2, 4}));
  EXPECT_EQ(y.to_vector<float>(), Floats({0, 2, 1, 3, 4, 6, 5, 7}));
  EXPECT_EQ(pixel_unshuffle(y, 2).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(pixel_shuffle(ones({2, 3, 18, 2, 2}), 3).shape(), Shape({2, 3, 2, 6, 6}));
  EXPECT_EQ(pixel_unshuffle(ones({1, 4, 6}), 2).shape(), Shape({4, 2, 3}));
  EXPECT_EQ(pixel_shuffle(ones({0, 4, 2, 2}), 2).shape(), Shape({0, 1, 4, 4}));
  EXPECT_THROW(pixel_shuffle(ones({6, 2, 2}), 2), InvalidArgument);
  EXPECT_THROW(pixel_shuffle(ones({4, 2, 2}), int64_t{1} << 32), InvalidArgument);
  EXPECT_THROW(pixel_unshuffle(ones({1, 3, 2}), 2), InvalidArgument);
  EXPECT_THROW(pixel_shuffle(ones({4, 4}), 2), InvalidArgument);
}

}  // namespace
}  // namespace flow
