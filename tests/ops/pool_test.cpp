#include "ops/conv/pool.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/interpreter.h"
#include "eager/runtime.h"
#include "ops/conv/conv.h"
#include "ops/conv/max_unpool.h"
#include "ops/conv/pool_volume.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/vendor/onednn.h"
#include "tests/support/error_of.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;
using Indices = std::vector<int64_t>;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Doubles doubles(const Tensor& x) {
  return x.to_vector<double>();
}

// Distinct values in an order without pattern.
Tensor shuffled(const Shape& shape, DType dtype = DType::kFloat32) {
  const int64_t count = shape.numel();
  Doubles values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<double>((i * 7919 + 13) % 10007) / 97.0 - 50);
  return tensor(values, shape, {.dtype = dtype});
}

Tensor plane(const Doubles& values, int64_t width) {
  return tensor(values, {1, static_cast<int64_t>(values.size()) / width, width},
                {.dtype = float32});
}

// ---- maxima

TEST(MaxPool, TakesTheLargestOfEachWindow) {
  const Tensor x = plane({1, 5, 2, 0, 3, 4, 8, 1, 9, 0, 0, 7}, 4);

  EXPECT_EQ(doubles(max_pool2d(x, 2)), (Doubles{5, 8}));
  EXPECT_EQ(doubles(max_pool2d(x, 2, {.stride = 1})), (Doubles{5, 8, 8, 9, 8, 8}));
  EXPECT_EQ(doubles(max_pool2d(x, {1, 3}, {.stride = {2, 1}})), (Doubles{5, 5, 9, 7}));
}

TEST(MaxPool, PaddingNeverWins) {
  const Tensor x = plane({-1, -2, -3, -4}, 2);

  EXPECT_EQ(doubles(max_pool2d(x, 2, {.padding = 1})), (Doubles{-1, -2, -3, -4}));
}

TEST(MaxPool, CeilModeAddsTheWindowThatSticksOut) {
  const Tensor x = plane({1, 2, 3, 4, 5}, 5);

  EXPECT_EQ(doubles(max_pool2d(x, {1, 2})), (Doubles{2, 4}));
  EXPECT_EQ(doubles(max_pool2d(x, {1, 2}, {.ceil_mode = true})), (Doubles{2, 4, 5}));
  // A window that would start in the padding at the end is omitted.
  EXPECT_EQ(
      doubles(max_pool2d(x, {1, 2}, {.stride = {1, 3}, .padding = {0, 1}, .ceil_mode = true})),
      (Doubles{1, 4}));
}

TEST(MaxPool, DilatedWindowSkipsElements) {
  const Tensor x = plane({1, 9, 2, 8, 3}, 5);

  EXPECT_EQ(doubles(max_pool2d(x, {1, 2}, {.stride = 1, .dilation = {1, 2}})), (Doubles{2, 9, 3}));
}

TEST(MaxPool, IndicesCountInThePlane) {
  const Tensor x = reshape(plane({1, 5, 2, 0, 3, 4, 8, 1, 9, 0, 0, 7, 1, 1, 1, 2}, 4), {2, 2, 4});

  const auto [values, indices] = max_pool2d_with_indices(x, 2);

  EXPECT_EQ(doubles(values), (Doubles{5, 8, 9, 7}));
  EXPECT_EQ(indices.to_vector<int64_t>(), (Indices{1, 6, 0, 3}));
  EXPECT_EQ(indices.dtype(), int64);
}

TEST(MaxPool, FirstOfEqualElementsAndLastOfNans) {
  const auto index = [](const Doubles& values) {
    const auto result = max_pool2d_with_indices(plane(values, 4), {1, 4});
    return std::pair(result.values.item(), result.indices.item<int64_t>());
  };

  EXPECT_EQ(index({3, 7, 7, 1}), std::pair(7.0, int64_t{1}));
  EXPECT_EQ(index({-kInfinity, -kInfinity, -kInfinity, -kInfinity}),
            std::pair(-kInfinity, int64_t{0}));
  const auto [value, at] = index({kNan, 2, kNan, kInfinity});
  EXPECT_TRUE(std::isnan(value));
  EXPECT_EQ(at, 2);
}

TEST(MaxPool, IntegersAreComparedAsTheyAre) {
  constexpr int64_t kLarge = int64_t{1} << 60;
  const Tensor x = tensor(std::vector<int64_t>{kLarge, kLarge + 1, -3, -2}, {1, 2, 2});

  const auto [values, indices] = max_pool2d_with_indices(x, 2);
  EXPECT_EQ(values.to_vector<int64_t>(), (std::vector<int64_t>{kLarge + 1}));
  EXPECT_EQ(indices.to_vector<int64_t>(), (std::vector<int64_t>{1}));
  EXPECT_EQ(avg_pool2d(tensor(std::vector<int64_t>{-3, -2, -1, -1}, {1, 2, 2}), 2).item<int64_t>(),
            -1);
  EXPECT_THROW(max_pool2d(ones({1, 2, 2}, {.dtype = bool_}), 2), InvalidArgument);
  EXPECT_THROW(avg_pool2d(ones({1, 2, 2}, {.dtype = int32}), 2), InvalidArgument);
}

TEST(MaxPool, GradientGoesToTheMaxima) {
  const Tensor x = plane({1, 5, 2, 7, 3, 4, 6, 1, 0}, 3).requires_grad_();

  max_pool2d(x, 2, {.stride = 1}).sum().backward();

  EXPECT_EQ(doubles(x.grad()), (Doubles{0, 1, 0, 2, 0, 1, 0, 0, 0}));
}

TEST(MaxPool, OneDim) {
  const Tensor x = tensor({{1.f, 4.f, 2.f, 3.f, 0.f}});

  EXPECT_EQ(doubles(max_pool1d(x, 2)), (Doubles{4, 3}));
  EXPECT_EQ(max_pool1d(reshape(x, {1, 1, 5}), 3, {.stride = 1, .padding = 1}).shape(),
            (Shape{1, 1, 5}));
}

TEST(MaxPool, GradientsAndTheirGradientsAgreeWithDifferences) {
  const std::vector<Tensor> inputs{shuffled({2, 2, 5, 6}, float64).requires_grad_()};
  const auto fn = [](const std::vector<Tensor>& in) {
    return max_pool2d(in[0], {3, 2}, {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}});
  };

  EXPECT_TRUE(gradcheck(fn, inputs));
  EXPECT_TRUE(gradgradcheck(fn, inputs));
}

// ---- means

TEST(AvgPool, DividesByTheElementsOrAsTold) {
  const Tensor x = plane({1, 2, 3, 4, 5, 6, 7, 8, 9}, 3);

  EXPECT_EQ(doubles(avg_pool2d(x, 3)), (Doubles{5}));
  EXPECT_EQ(doubles(avg_pool2d(x, 2, {.stride = 1})), (Doubles{3, 4, 6, 7}));
  EXPECT_EQ(doubles(avg_pool2d(x, 2, {.padding = 1})), (Doubles{0.25, 1.25, 2.75, 7}));
  EXPECT_EQ(doubles(avg_pool2d(x, 2, {.padding = 1, .count_include_pad = false})),
            (Doubles{1, 2.5, 5.5, 7}));
  EXPECT_EQ(doubles(avg_pool2d(x, 2, {.padding = 1, .divisor_override = 2})),
            (Doubles{0.5, 2.5, 5.5, 14}));
}

TEST(AvgPool, WindowThatSticksOutInCeilModeCountsNoElementsBeyondThePadding) {
  const Tensor x = plane({1, 2, 3, 4, 5}, 5);

  EXPECT_EQ(doubles(avg_pool2d(x, {1, 2}, {.ceil_mode = true})), (Doubles{1.5, 3.5, 5}));
  EXPECT_EQ(
      doubles(avg_pool2d(x, {1, 4}, {.stride = {1, 3}, .padding = {0, 1}, .ceil_mode = true})),
      (Doubles{1.5, 3}));
}

TEST(AvgPool, OneDim) {
  const Tensor x = tensor({{1.f, 4.f, 2.f, 3.f, 0.f}});

  EXPECT_EQ(doubles(avg_pool1d(x, 2)), (Doubles{2.5, 2.5}));
}

TEST(AvgPool, GradientsAndTheirGradientsAgreeWithDifferences) {
  const std::vector<Tensor> inputs{shuffled({1, 2, 5, 6}, float64).requires_grad_()};
  const auto fn = [](const std::vector<Tensor>& in) {
    const Tensor y = avg_pool2d(in[0], {3, 2}, {.stride = {2, 3}, .padding = 1, .ceil_mode = true});
    return y * y;
  };

  EXPECT_TRUE(gradcheck(fn, inputs));
  EXPECT_TRUE(gradgradcheck(fn, inputs));
}

TEST(AdaptiveAvgPool, WindowsOverlapWhereSizesDoNotDivide) {
  const Tensor x = plane({1, 2, 3, 4, 5}, 5);

  EXPECT_EQ(doubles(adaptive_avg_pool2d(x, {1, 2})), (Doubles{2, 4}));
  EXPECT_EQ(doubles(adaptive_avg_pool2d(x, {1, 3})), (Doubles{1.5, 3, 4.5}));
  EXPECT_EQ(doubles(adaptive_avg_pool2d(x, {2, 1})), (Doubles{3, 3}));
}

TEST(AdaptiveAvgPool, GradientsAndTheirGradientsAgreeWithDifferences) {
  const std::vector<Tensor> inputs{shuffled({2, 1, 5, 4}, float64).requires_grad_()};
  const auto fn = [](const std::vector<Tensor>& in) {
    const Tensor y = adaptive_avg_pool2d(in[0], {3, 2});
    return y * y;
  };

  EXPECT_TRUE(gradcheck(fn, inputs));
  EXPECT_TRUE(gradgradcheck(fn, inputs));
}

// ---- kernels

std::vector<Doubles> all_pools(const Tensor& x) {
  const Tensor leaf = x.detach().requires_grad_();
  const std::vector<Tensor> outputs{
      max_pool2d(leaf, 2),
      max_pool2d(leaf, 3, {.stride = 2, .padding = 1}),
      max_pool2d(leaf, {2, 3}, {.stride = 1, .dilation = 2, .ceil_mode = true}),
      avg_pool2d(leaf, 2),
      avg_pool2d(leaf, 3, {.stride = 2, .padding = 1, .count_include_pad = false}),
      adaptive_avg_pool2d(leaf, {1, 3}),
  };
  std::vector<Doubles> results;
  for (const Tensor& y : outputs) {
    results.push_back(doubles(y));
    const Tensor dy = shuffled(y.shape(), y.dtype());
    results.push_back(doubles(grad({y}, {leaf}, {.grad_outputs = {dy}})[0]));
  }
  return results;
}

void expect_close(const std::vector<Doubles>& actual, const std::vector<Doubles>& expected,
                  double limit) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size());
    for (size_t j = 0; j < actual[i].size(); ++j)
      ASSERT_NEAR(actual[i][j], expected[i][j], limit) << "result " << i << " element " << j;
  }
}

TEST(Pool, KernelsAgreeOnAllDTypesAndStrides) {
  for (const DType dtype : {float64, float32, float16, bfloat16}) {
    SCOPED_TRACE(dtype_name(dtype));
    const Tensor x = shuffled({3, 8, 7, 5}, dtype);
    const Tensor turned = x.permute({3, 0, 2, 1});
    std::vector<std::vector<Doubles>> expected;
    {
      const eager::KernelGuard guard("reference");
      expected = {all_pools(x), all_pools(turned)};
    }

    expect_close(all_pools(x), expected[0], dtype == bfloat16 ? 1 : 0.1);
    expect_close(all_pools(turned), expected[1], dtype == bfloat16 ? 1 : 0.1);
  }
}

// The blocked output of a convolution is pooled without a conversion, including channels that fill
// no block.
TEST(Pool, BlockedInputsStayBlocked) {
  if (!ops::has_onednn()) GTEST_SKIP() << ops::onednn_description();
  const Tensor x = shuffled({3, 4, 9, 8});
  const Tensor weight = reshape(shuffled({21 * 4}), {21, 4, 1, 1});
  const Tensor h = conv2d(x, weight);
  ASSERT_NE(h.meta().blocked, nullptr);
  const bool stays_blocked =
      max_pool2d(h, 2).meta().blocked != nullptr && avg_pool2d(h, 3).meta().blocked != nullptr;
  const std::vector<Doubles> blocked = all_pools(h);

  const std::vector<Doubles> strided = all_pools(h.clone());

  EXPECT_TRUE(stays_blocked);
  expect_close(blocked, strided, 1e-2);
}

TEST(Pool, EmptyBatch) {
  const Tensor x = zeros({0, 2, 4, 4}).requires_grad_();

  const Tensor y = max_pool2d(x, 2);

  EXPECT_EQ(y.shape(), (Shape{0, 2, 2, 2}));
  EXPECT_EQ(grad({y.sum()}, {x})[0].shape(), x.shape());
  EXPECT_EQ(avg_pool2d(x, 2).shape(), (Shape{0, 2, 2, 2}));
}

// ---- errors

TEST(PoolErrors, SayWhatWasReceived) {
  const Tensor x = zeros({1, 2, 4, 4});

  EXPECT_NE(error_of([&] {
              max_pool2d(x, {2, 2, 2});
            }).find("kernel must be one number, or one for each"),
            std::string::npos);
  EXPECT_NE(error_of([&] { max_pool2d(x, 2, {.padding = 2}); }).find("more than half"),
            std::string::npos);
  EXPECT_NE(error_of([&] { max_pool2d(x, 5); }).find("the window does not fit"), std::string::npos);
  EXPECT_NE(error_of([&] { max_pool2d(x, 0); }).find("kernel is out of range; received 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              max_pool2d(zeros({4, 4}), 2);
            }).find("takes (N, C, H, W) or (C, H, W)"),
            std::string::npos);
  EXPECT_NE(error_of([&] { avg_pool2d(cast(x, int32), 2); }).find("floating"), std::string::npos);
  EXPECT_NE(error_of([&] { avg_pool2d(x, 2, {.divisor_override = 0}); }).find("divisor_override"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              avg_pool1d(zeros({1, 4}), 2, {.divisor_override = 2});
            }).find("[avg_pool1d]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { adaptive_avg_pool2d(x, -1); }).find("size is out of range"),
            std::string::npos);
}

// 0, 7, 14, 21, 4, … : all numbers below 24 in a mixed order.
Tensor volume() {
  const Tensor counting = arange(24, {.dtype = float64}) * 7;
  return reshape(remainder(counting, 24), {1, 1, 2, 3, 4});
}

// Values of PyTorch 2.
TEST(Pool, VolumesArePooledInAllThreeDims) {
  const Tensor x = volume();

  expect_values(max_pool3d(x, 2), {23, 21});
  expect_values(max_pool3d(x, {2, 3, 2}, {.stride = 1, .padding = {1, 1, 0}}),
                {11, 18, 21, 15, 22, 22, 15, 22, 22, 23, 23, 21, 23, 23,
                 22, 23, 23, 22, 23, 23, 13, 23, 23, 17, 23, 23, 17});
  expect_values(avg_pool3d(x, 2, {.padding = 1, .ceil_mode = true}),
                {0, 2.625, 2.625, 1.5, 8.25, 0.75, 1.5, 2.625, 1.125, 4.5, 5.25, 3.75});
  expect_values(avg_pool3d(x, 2, {.padding = 1, .count_include_pad = false}),
                {0, 10.5, 21, 6, 16.5, 3, 12, 10.5, 9, 18, 10.5, 15});
  expect_values(avg_pool3d(x, 2, {.divisor_override = 3}), {92.0 / 3, 28});
  EXPECT_EQ(max_pool3d(ones({3, 4, 4, 4}), 2).shape(), Shape({3, 2, 2, 2}));
  EXPECT_THROW(max_pool3d(ones({4, 4, 4}), 2), InvalidArgument);
}

TEST(Pool, VolumesOf16BitsAreDividedBeforeTheyAreRounded) {
  const Tensor x = full({1, 1, 2, 32, 32}, 100, {.dtype = float16});

  const Tensor y = avg_pool3d(x, {2, 32, 32}, {.divisor_override = 2048});

  EXPECT_EQ(y.dtype(), float16);
  expect_values(y, {100});
}

TEST(Pool, AdaptivePoolingsOfLinesAndVolumes) {
  const Tensor x = volume();

  expect_values(adaptive_avg_pool1d(x.reshape({1, 6, 4}).narrow(1, 0, 1), 3), {3.5, 10.5, 17.5});
  expect_values(adaptive_avg_pool3d(x, {1, 2, 3}), {11.5, 12.5, 10.5, 12.5, 13.5, 11.5});
  expect_values(adaptive_max_pool2d(x.reshape({1, 2, 3, 4}), {2, 3}),
                {11, 18, 21, 15, 22, 22, 23, 23, 13, 23, 23, 17});
  expect_values(adaptive_max_pool3d(x, 1), {23});
  expect_values(adaptive_max_pool1d(tensor({{1.0, 3.0, 2.0}}), 2), {3, 3});
  EXPECT_THROW(adaptive_max_pool2d(ones({2, 3}), 1), InvalidArgument);
  EXPECT_THROW(adaptive_avg_pool1d(ones({3}), 1), InvalidArgument);
}

// ---- back from maxima

TEST(MaxUnpool, PutsMaximaBackWhereTheyWere) {
  const Tensor x = plane({1, 5, 2, 0, 3, 4, 8, 1}, 4);
  const auto [values, indices] = max_pool2d_with_indices(x, 2);

  EXPECT_EQ(doubles(max_unpool2d(values, indices, 2)), (Doubles{0, 5, 0, 0, 0, 0, 8, 0}));
}

TEST(MaxUnpool, TheLaterOfTwoElementsStays) {
  const Tensor x = tensor({{1.f, 2.f}});
  const Tensor indices = tensor(Indices{3, 3}, {1, 2});

  EXPECT_EQ(doubles(max_unpool1d(x, indices, 2)), (Doubles{0, 0, 0, 2}));
}

TEST(MaxUnpool, SaysWhatDoesNotFit) {
  const Tensor x = ones({1, 2, 2});
  const Tensor indices = zeros({1, 2, 2}, {.dtype = int64});
  const auto says = [&](const std::string& part, const auto& f) {
    EXPECT_NE(error_of(f).find(part), std::string::npos) << error_of(f);
  };

  says("[max_unpool2d] index 16 is outside the 16 elements", [&] {
    max_unpool2d(x, full({1, 2, 2}, 16, {.dtype = int64}), 2);
  });
  says("[max_unpool2d] 2 elements cannot be unpooled to 6; give output_size between 3 and 5", [&] {
    max_unpool2d(x, indices, 2, {.output_size = {4, 6}});
  });
  says("[max_unpool2d] output_size has 2 numbers, or 3",
       [&] { max_unpool2d(x, indices, 2, {.output_size = {4}}); });
  says("[max_unpool2d] indices are int64", [&] { max_unpool2d(x, x, 2); });
  says("[max_unpool3d] takes floating tensors with 3 spatial dims",
       [&] { max_unpool3d(x, indices, 2); });
}

TEST(AdaptiveAvgPool, SizeZeroIsEmptyAndHasNoGradient) {
  const Tensor x = ones({1, 2, 3, 4}, {.requires_grad = true});
  const Tensor y = adaptive_avg_pool2d(x, {0, 2});

  EXPECT_EQ(y.shape(), Shape({1, 2, 0, 2}));
  y.sum().backward();
  EXPECT_EQ(doubles(x.grad()), Doubles(24, 0));
  EXPECT_EQ(adaptive_avg_pool1d(ones({2, 5}), 0).shape(), Shape({2, 0}));
  EXPECT_EQ(adaptive_avg_pool3d(ones({2, 3, 4, 5}), {2, 0, 2}).shape(), Shape({2, 2, 0, 2}));
}

TEST(MaxPool, IndicesOfABoxCountInIt) {
  const Tensor x = arange(1.0 * 2 * 3 * 4 * 5).reshape({2, 3, 4, 5});
  const auto [values, indices] = max_pool3d_with_indices(x, {2, 2, 3}, {.stride = 1});

  const Doubles largest = doubles(values);
  const Indices at = indices.to_vector<int64_t>();
  for (size_t i = 0; i < at.size(); ++i)
    EXPECT_EQ(at[i], static_cast<int64_t>(largest[i]) % 60);
}

}  // namespace
}  // namespace flow
