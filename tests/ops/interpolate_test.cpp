#include "ops/conv/interpolate.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

void expect_near(const Tensor& y, const Shape& shape, const Doubles& wanted) {
  EXPECT_EQ(y.shape(), shape);
  expect_values(y, wanted, 1e-13);
}

Tensor line() {
  return tensor({{{1.0, 2.0, 4.0, 7.0}}}, {.dtype = float64});
}

Tensor plane() {
  return tensor({{{{1.0, 2.0, 3.0}, {5.0, 7.0, 11.0}}}}, {.dtype = float64});
}

// Values of PyTorch 2.
TEST(Interpolate, NearestTakesTheElementBelow) {
  expect_near(interpolate(line(), {.size = 7}), {1, 1, 7}, {1, 1, 2, 2, 4, 4, 7});
  expect_near(interpolate(line(), {.scale_factor = {0.6}}), {1, 1, 2}, {1, 2});
  expect_near(interpolate(line(), {.scale_factor = {2.6}}), {1, 1, 10},
              {1, 1, 1, 2, 2, 2, 4, 4, 7, 7});
  expect_near(interpolate(line(), {.scale_factor = {2.6}, .recompute_scale_factor = true}),
              {1, 1, 10}, {1, 1, 1, 2, 2, 4, 4, 4, 7, 7});
  expect_near(interpolate(plane(), {.size = {3, 2}}), {1, 1, 3, 2}, {1, 2, 1, 2, 5, 7});
  expect_near(interpolate(line(), {.size = 7, .mode = "nearest-exact"}), {1, 1, 7},
              {1, 1, 2, 4, 4, 7, 7});
}

TEST(Interpolate, LinearWeighsNeighbours) {
  expect_near(
      interpolate(line(), {.size = 7, .mode = "linear"}), {1, 1, 7},
      {1, 1.3571428571428572, 1.9285714285714284, 3, 4.2142857142857135, 5.928571428571429, 7});
  expect_near(interpolate(line(), {.scale_factor = {0.6}, .mode = "linear"}), {1, 1, 2},
              {1.3333333333333335, 4});
  expect_near(interpolate(line(), {.size = 7, .mode = "linear", .align_corners = true}), {1, 1, 7},
              {1, 1.5, 2, 3, 4, 5.5, 7});
  expect_near(interpolate(line(), {.size = 1, .mode = "linear", .align_corners = true}), {1, 1, 1},
              {1});
}

TEST(Interpolate, PlanesAreInterpolatedInBothDims) {
  expect_near(interpolate(plane(), {.scale_factor = {2}, .mode = "bilinear"}), {1, 1, 4, 6},
              {1, 1.25,   1.75,   2.25,   2.75,   3, 2, 2.3125, 2.9375, 3.6875, 4.5625, 5,
               4, 4.4375, 5.3125, 6.5625, 8.1875, 9, 5, 5.5,    6.5,    8,      10,     11});
  expect_near(interpolate(plane(), {.size = {3, 4}, .mode = "bicubic"}), {1, 1, 3, 4},
              {0.5872311062282997, 1.155648125542536, 1.9328087700737864, 2.358640882703995,
               2.892333984375, 3.684814453125, 5.565673828125, 7.179443359375, 5.197436862521703,
               6.213980780707466, 9.198538886176218, 12.00024583604601});
}

TEST(Interpolate, AreaAveragesWhatAnOutputCovers) {
  expect_near(interpolate(line(), {.size = 2, .mode = "area"}), {1, 1, 2}, {1.5, 5.5});
  expect_near(interpolate(line(), {.size = 3, .mode = "area"}), {1, 1, 3}, {1.5, 3, 5.5});
  expect_near(interpolate(plane(), {.scale_factor = {0.5, 1}, .mode = "area"}), {1, 1, 1, 3},
              {3, 4.5, 7});
  EXPECT_THROW(interpolate(line(), {.size = 2, .mode = "area", .align_corners = true}),
               InvalidArgument);
}

TEST(Interpolate, AntialiasAveragesWhatAnOutputStandsFor) {
  const Tensor x = arange(8, {.dtype = float32}).reshape({1, 1, 1, 8});
  const InterpolateOptions half{.size = {1, 4}, .mode = "bilinear", .antialias = true};

  // Tents of two elements on each side: 1/8, 3/8, 3/8, 1/8, truncated at the borders.
  const auto y = interpolate(x, half).to_vector<float>();
  ASSERT_EQ(y.size(), 4U);
  EXPECT_FLOAT_EQ(y[0], 5.F / 7);
  EXPECT_FLOAT_EQ(y[1], 2.5F);
  EXPECT_FLOAT_EQ(y[2], 4.5F);
  EXPECT_FLOAT_EQ(y[3], 7 - 5.F / 7);
  const InterpolateOptions same{.size = {1, 8}, .mode = "bicubic", .antialias = true};
  EXPECT_EQ(interpolate(x, same).to_vector<float>(), x.to_vector<float>());
  EXPECT_THROW(interpolate(x, {.size = {1, 4}, .antialias = true}), InvalidArgument);
}

TEST(Interpolate, GradientReturnsTheWeights) {
  const Tensor x = tensor({{{1.f, 2.f}}}, {.requires_grad = true});

  sum(interpolate(x, {.size = 4, .mode = "linear"}).narrow(2, 0, 2)).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), Floats({1.75, 0.25}));
}

TEST(Interpolate, KeepsTheLayoutOfGlobalTensors) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    const Tensor x = ones({5, 1, 2, 2}, {.placement = both, .sbp = sbp::split(0)});
    const Tensor y = interpolate(x, {.scale_factor = {2}, .mode = "bilinear"});

    EXPECT_EQ(y.sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(sum(y).item<float>(), 80);
  });
}

TEST(Interpolate, WrongOptionsAreRefused) {
  EXPECT_THROW(interpolate(line(), {}), InvalidArgument);
  EXPECT_THROW(interpolate(line(), {.size = 2, .scale_factor = {2}}), InvalidArgument);
  EXPECT_THROW(interpolate(line(), {.size = {2, 2}}), InvalidArgument);
  EXPECT_THROW(interpolate(line(), {.size = 0}), InvalidArgument);
  EXPECT_THROW(interpolate(line(), {.scale_factor = {0.1}}), InvalidArgument);
  EXPECT_THROW(interpolate(line(), {.size = 2, .mode = "bilinear"}), InvalidArgument);
  EXPECT_THROW(interpolate(line(), {.size = 2, .align_corners = true}), InvalidArgument);
  EXPECT_THROW(interpolate(ones({2, 3}), {.size = 2}), InvalidArgument);
}

TEST(Interpolate, TheSameSizeIsACopy) {
  const Tensor x = line();

  EXPECT_NE(interpolate(x, {.size = x.size(2)}).impl().storage.get(), x.impl().storage.get());
}

}  // namespace
}  // namespace flow
