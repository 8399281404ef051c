#include "ops/norm/norm.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/norm/instance_norm.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

TEST(Norm, LayerNormUsesTheBiasedVariance) {
  const Tensor x = tensor({{1.f, 2.f, 3.f, 4.f}});

  expect_values(layer_norm(x, {4}), {-1.34163542, -0.44721181, 0.44721181, 1.34163542});
  expect_values(layer_norm(x, {4}, {.weight = tensor({1.f, 2.f, 1.f, 2.f}), .bias = ones({4})}),
                {-0.34163542, 0.10557639, 1.44721181, 3.68327084});
  expect_values(layer_norm(x.reshape({1, 2, 2}), {2, 2}),
                {-1.34163542, -0.44721181, 0.44721181, 1.34163542});
}

TEST(Norm, LayerNormIsWithinAMillionthOfTheLargestElement) {
  constexpr int kRows = 37;
  constexpr double kEps = 1e-5;
  for (const int columns : {8, 100, 512, 1031}) {
    std::vector<float> x;
    std::vector<double> exact;
    for (int row = 0; row < kRows; ++row) {
      double mean = 0;
      for (int i = 0; i < columns; ++i) {
        x.push_back(static_cast<float>(0.3 * row + 2 * std::sin(0.7 * i * i + row)));
        mean += static_cast<double>(x.back()) / columns;
      }
      double variance = 0;
      for (size_t i = exact.size(); i < x.size(); ++i)
        variance += std::pow(static_cast<double>(x[i]) - mean, 2) / columns;
      for (int i = 0; i < columns; ++i)
        exact.push_back((static_cast<double>(x[exact.size()]) - mean) / std::sqrt(variance + kEps));
    }

    expect_rows(layer_norm(tensor(x, {kRows, columns}), {columns}, {.eps = kEps}), exact, columns,
                1e-6);
  }
}

TEST(Norm, LayerNormIsExactForLargeMeans) {
  const Tensor x = tensor({{100001.f, 100002.f, 100003.f, 100004.f}});

  expect_values(layer_norm(x, {4}), {-1.34163542, -0.44721181, 0.44721181, 1.34163542}, 1e-5);
}

TEST(Norm, RmsNormDoesNotCentre) {
  expect_values(rms_norm(tensor({{1.f, 2.f, 3.f, 4.f}}), {4}),
                {0.36514813, 0.73029626, 1.09544438, 1.46059251});
}

TEST(Norm, GroupNormTakesEachSamplesGroups) {
  const Tensor x = tensor({{{1.f, 2.f}, {3.f, 4.f}, {10.f, 10.f}, {10.f, 10.f}}});

  expect_values(group_norm(x, 2, {.bias = tensor({0.f, 0.f, 5.f, 6.f})}),
                {-1.34163542, -0.44721181, 0.44721181, 1.34163542, 5, 5, 6, 6});
}

TEST(Norm, OfNothingIsNothing) {
  EXPECT_EQ(layer_norm(ones({0, 4}), {4}).shape(), (Shape{0, 4}));
  EXPECT_EQ(layer_norm(ones({3, 0}), {0}).shape(), (Shape{3, 0}));
}

TEST(Norm, RefusesShapesThatDoNotEndTheInputs) {
  expect_refused(
      [] {
        layer_norm(ones({2, 4}), {2});
      },
      "[layer_norm] normalized_shape (2,) does not end the input's shape");
  expect_refused(
      [] {
        layer_norm(ones({2, 4}), {4}, {.weight = ones({2})});
      },
      "weight and bias must have the normalised dims' shape (4,)");
  expect_refused([] { group_norm(ones({1, 3}), 2); }, "must divide into 2 groups");
  expect_refused(
      [] {
        group_norm(ones({2, 4, 3}), 2, {.weight = ones({4, 1})});
      },
      "one element for each of the 4 channels");
  expect_refused([] { group_norm(ones({1, 3}), 3); }, "a group of one value has no statistics");
  EXPECT_EQ(group_norm(ones({2, 3}), 3).shape(), Shape({2, 3}));
}

// PyTorch 2.15 gives 1 and 0.9995.
TEST(Norm, RmsNormOfSixteenBitsHasTheEpsilonOfFloat32) {
  for (const DType dtype : {bfloat16, float16}) {
    const Tensor x = tensor({{0.05f}, {0.01f}}).to(dtype);
    EXPECT_GE(rms_norm(x, {1}).to(float32).min().item(), 0.999) << dtype;
  }
}

// As PyTorch's, the results have the dtype of the input, and gradients those of their tensors.
TEST(Norm, SixteenBitsMayHaveFloat32Parameters) {
  for (const DType dtype : {bfloat16, float16}) {
    const Tensor x = randn({4, 8}).to(dtype).requires_grad_();
    const Tensor w = rand({8}).requires_grad_();
    const Tensor b = randn({8}).requires_grad_();

    const Tensor layer = layer_norm(x, {8}, {.weight = w, .bias = b});
    const Tensor rms = rms_norm(x, {8}, {.weight = w});
    const Tensor group = group_norm(x, 2, {.weight = w, .bias = b});
    const Tensor image = x.detach().reshape({1, 8, 4});
    const Tensor instance = instance_norm(image, {.weight = w, .bias = b});
    (layer + rms + group).sum().backward();

    const Tensor wide = x.detach().to(float32);
    EXPECT_TRUE(layer.equal(layer_norm(wide, {8}, {.weight = w, .bias = b}).to(dtype))) << dtype;
    EXPECT_TRUE(rms.equal(rms_norm(wide, {8}, {.weight = w}).to(dtype))) << dtype;
    EXPECT_TRUE(group.equal(group_norm(wide, 2, {.weight = w, .bias = b}).to(dtype))) << dtype;
    EXPECT_TRUE(
        instance.equal(instance_norm(image.to(float32), {.weight = w, .bias = b}).to(dtype)))
        << dtype;
    EXPECT_EQ(x.grad().dtype(), dtype);
    EXPECT_EQ(w.grad().dtype(), float32);
    EXPECT_EQ(b.grad().to_vector<float>(), std::vector<float>(8, 8)) << dtype;
  }
  EXPECT_THROW(layer_norm(ones({2, 3}), {3}, {.weight = ones({3}, {.dtype = bfloat16})}),
               InvalidArgument);
}

}  // namespace
}  // namespace flow
