#include "ops/creation/copy.h"

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/cast_formula.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

TEST(Copy, CloneHasMemoryOfItsOwn) {
  const Tensor x = tensor({1.f, 2.f});
  const Tensor y = x.clone();

  y.fill_(5);

  EXPECT_EQ(x.to_vector<float>(), Floats({1, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({5, 5}));
}

TEST(Copy, ContiguousGivesDenseTensorsBack) {
  const Tensor x = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});

  EXPECT_TRUE(x.contiguous().is_same(x));
  const Tensor y = x.t().contiguous();
  EXPECT_TRUE(y.is_contiguous());
  EXPECT_EQ(Floats(y.data<float>(), y.data<float>() + 6), Floats({1, 4, 2, 5, 3, 6}));
}

TEST(Copy, ToTheSameDeviceGivesTheTensorItself) {
  const Tensor x = ones({2});

  EXPECT_TRUE(x.to("cpu").is_same(x));
  EXPECT_THROW(x.to("cuda"), Unsupported);
  EXPECT_THROW(x.to("tpu"), InvalidArgument);
}

// The tensor is large enough for tiles with uneven edges, in every order of dims and size of
// elements.
TEST(Copy, TransposesOfAnyOrderKeepTheirElements) {
  const Shape shape{5, 33, 18};
  for (const DType dtype : {bool_, int8, bfloat16, float32, float64}) {
    const Tensor x = arange(5 * 33 * 18).to(dtype).reshape(shape);
    const std::vector<double> values = x.to_vector<double>();
    for (const auto& order :
         {Ints{0, 2, 1}, Ints{1, 0, 2}, Ints{1, 2, 0}, Ints{2, 0, 1}, Ints{2, 1, 0}}) {
      const Tensor y = x.permute(order).clone();
      const std::vector<double> copied = y.to_vector<double>();
      size_t at = 0;
      std::array<int64_t, 3> index{};  // along the dims of x
      for (int64_t i = 0; i < y.size(0); ++i) {
        for (int64_t j = 0; j < y.size(1); ++j) {
          for (int64_t k = 0; k < y.size(2); ++k) {
            index[static_cast<size_t>(order[0])] = i;
            index[static_cast<size_t>(order[1])] = j;
            index[static_cast<size_t>(order[2])] = k;
            const int64_t from = (index[0] * 33 + index[1]) * 18 + index[2];
            ASSERT_EQ(copied[at++], values[static_cast<size_t>(from)]) << dtype;
          }
        }
      }
    }
  }
}

TEST(Copy, CopyBroadcastsAndConverts) {
  const Tensor x = zeros({2, 3});

  x.copy_(tensor({1, 2, 3}));

  EXPECT_EQ(x.to_vector<float>(), Floats({1, 2, 3, 1, 2, 3}));
  EXPECT_THROW(x.copy_(zeros({2})), InvalidArgument);
  EXPECT_THROW(x.copy_(zeros({1, 2, 3})), InvalidArgument);
}

TEST(Copy, APartialTensorTakesValuesOfAnotherDtype) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor rows = ones({4, 3}, {.dtype = int64, .placement = both, .sbp = sbp::split(0)});
    const Tensor sums = rows.sum({0});
    ASSERT_EQ(sums.sbp(), NdSbp(sbp::partial_sum));
    sums.copy_(full({3}, 5.5, {.placement = both, .sbp = sbp::broadcast}));
    EXPECT_EQ(sums.to_vector<int64_t>(), (std::vector<int64_t>{5, 5, 5}));
  });
}

TEST(Copy, WritesThroughViewsReachTheBase) {
  const Tensor x = zeros({2, 3});

  x.t().narrow(0, 1, 1).copy_(tensor({{7.f, 8.f}}));
  x.select(0, 0).fill_(1);

  EXPECT_EQ(x.to_vector<float>(), Floats({1, 1, 1, 0, 8, 0}));
}

TEST(Copy, OverwrittenValuesHaveTheGradientZero) {
  const std::vector<std::function<void(const Tensor&)>> writes = {
      [](const Tensor& y) { y.fill_(3); },
      [](const Tensor& y) { y.zero_(); },
      [](const Tensor& y) { y.copy_(ones({3})); },
  };

  for (size_t i = 0; i < writes.size(); ++i) {
    const Tensor x = ones({3}).requires_grad_();
    const Tensor y = x * 1;
    writes[i](y);
    sum(y).backward();
    ASSERT_TRUE(x.grad().defined()) << i;
    EXPECT_EQ(x.grad().to_vector<float>(), Floats({0, 0, 0})) << i;
  }
}

TEST(Copy, OverlappingViewsAreReadBeforeTheyAreWritten) {
  const Tensor x = tensor({1.f, 2.f, 3.f, 4.f});

  x.narrow(0, 1, 3).copy_(x.narrow(0, 0, 3));

  EXPECT_EQ(x.to_vector<float>(), Floats({1, 1, 2, 3}));
}

TEST(Cast, FloatsRoundTowardsZeroAndBoolsAreNotZero) {
  const Tensor x = tensor({-1.7f, 0.f, 0.5f, 2.9f});

  EXPECT_EQ(cast(x, int64).to_vector<int64_t>(), std::vector<int64_t>({-1, 0, 0, 2}));
  EXPECT_EQ(cast(x, bool_).to_vector<int64_t>(), std::vector<int64_t>({1, 0, 1, 1}));
  EXPECT_EQ(cast(tensor({-1}), uint8).to_vector<int64_t>(), std::vector<int64_t>({255}));
}

// One number beyond int32 makes the others of its vector take the same rule.
TEST(Cast, FloatsBeyondInt32WrapAround) {
  Floats values;
  for (int i = 0; i < 70; ++i)
    values.push_back(static_cast<float>(i) - 30.5F);
  values[3] = 3e9F;
  values[21] = -2147483648.F;
  values[40] = NAN;
  values[66] = -1e30F;
  const Tensor x = tensor(values, {70});
  std::vector<int64_t> wide;
  std::vector<int64_t> bytes;
  for (const float value : values) {
    wide.push_back(ops::convert<int32_t>(value));
    bytes.push_back(ops::convert<uint8_t>(value));
  }

  EXPECT_EQ(cast(x, int32).to_vector<int64_t>(), wide);
  EXPECT_EQ(cast(x, uint8).to_vector<int64_t>(), bytes);
  const Tensor y = zeros({70}, {.dtype = int32});
  y.copy_(x);
  EXPECT_EQ(y.to_vector<int64_t>(), wide);
}

TEST(Cast, SixteenBitFloatsRoundToNearestEven) {
  const Tensor x = tensor({1.00390625f, 1.01171875f, 70000.f});  // halfway between two bfloat16

  EXPECT_EQ(cast(x, bfloat16).to_vector<float>(), Floats({1.f, 1.015625f, 70144.f}));
  EXPECT_TRUE(std::isinf(cast(x, float16).to_vector<float>()[2]));
}

TEST(Cast, SameDtypeGivesTheTensorItself) {
  const Tensor x = ones({2});

  EXPECT_TRUE(x.to(float32).is_same(x));
}

}  // namespace
}  // namespace flow
