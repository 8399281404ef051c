#include "ops/blocked_layout.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "ops/binary.h"
#include "ops/conv.h"
#include "ops/copy.h"
#include "ops/creation.h"
#include "ops/onednn.h"
#include "ops/unary.h"
#include "ops/view.h"

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

// The output of a convolution, of 20 channels: blocks of 8 or 16 have padding.
class BlockedElementwise : public testing::Test {
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

TEST_F(BlockedElementwise, OneInputHandsItsLayoutOn) {
  const Tensor strided = convolve(0.5);
  strided.make_strided();

  const Tensor y = gelu(relu(x_));

  ASSERT_EQ(y.meta().blocked, x_.meta().blocked);
  EXPECT_EQ(y.to_vector<float>(), gelu(relu(strided)).to_vector<float>());
}

TEST_F(BlockedElementwise, TwoInputsOfOneLayoutDoToo) {
  const Tensor other = convolve(2);
  ASSERT_EQ(other.meta().blocked, x_.meta().blocked);

  const Tensor sum = add(x_, other);
  const bool is_blocked = sum.meta().blocked != nullptr;
  x_.make_strided();
  other.make_strided();

  EXPECT_TRUE(is_blocked);
  EXPECT_EQ(sum.to_vector<float>(), add(x_, other).to_vector<float>());
}

TEST_F(BlockedElementwise, AStridedInputMakesTheResultStrided) {
  const Tensor other = ones({20, 1, 1});

  const Tensor sum = add(x_, other);

  EXPECT_EQ(sum.meta().blocked, nullptr);
  EXPECT_FLOAT_EQ(sum.to_vector<float>()[7], x_.to_vector<float>()[7] + 1);
}

TEST_F(BlockedElementwise, PaddingStaysZero) {
  const Tensor y = exp(x_);

  ASSERT_NE(y.meta().blocked, nullptr);
  const auto* elements = reinterpret_cast<const float*>(y.impl().data());
  const auto count = static_cast<std::ptrdiff_t>(y.meta().local_bytes() / sizeof(float));
  EXPECT_EQ(std::count(elements, elements + count, 0.0F), count - y.numel());
  EXPECT_EQ(exp(add(x_, 1.0)).to_vector<float>().size(), static_cast<size_t>(y.numel()));
}

}  // namespace
}  // namespace flow
