#include "ops/reduce/extrema.h"

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Ints64 = std::vector<int64_t>;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Extrema, OverAllAndSomeDims) {
  const Tensor x = tensor({{1.f, 5.f, 3.f}, {4.f, 2.f, 6.f}});

  EXPECT_EQ(max(x).item<float>(), 6);
  EXPECT_EQ(x.min().item<float>(), 1);
  EXPECT_EQ(amax(x, 0).to_vector<float>(), Floats({4, 5, 6}));
  EXPECT_EQ(amin(x, {0, 1}, {.keepdim = true}).shape(), Shape({1, 1}));
  EXPECT_EQ(amin(x, -1).to_vector<float>(), Floats({1, 2}));
  EXPECT_EQ(amax(tensor(std::vector<int32_t>{-3, -1}, {2})).item<int32_t>(), -1);
}

TEST(Extrema, WithTheirPositions) {
  const Tensor x = tensor({{1.f, 5.f, 5.f}, {4.f, 2.f, 2.f}});

  const auto [values, indices] = max(x, 1);
  EXPECT_EQ(values.to_vector<float>(), Floats({5, 4}));
  EXPECT_EQ(indices.to_vector<int64_t>(), Ints64({1, 0}));
  EXPECT_EQ(min(x, 1).indices.to_vector<int64_t>(), Ints64({0, 1}));
  EXPECT_EQ(min(x, 0, {.keepdim = true}).values.shape(), Shape({1, 3}));
  EXPECT_EQ(argmax(x).item<int64_t>(), 1);
  EXPECT_EQ(argmax(x.t()).item<int64_t>(), 2);
  EXPECT_EQ(x.argmax(1).to_vector<int64_t>(), Ints64({1, 0}));
  EXPECT_EQ(argmin(x, 0).to_vector<int64_t>(), Ints64({0, 1, 1}));
  EXPECT_EQ(argmax(x, 0, {.keepdim = true}).shape(), Shape({1, 3}));
  EXPECT_EQ(argmax(full({}, 3.0)).item<int64_t>(), 0);
}

TEST(Extrema, BothAtOnce) {
  const Tensor x = tensor({{1.f, 5.f, 3.f}, {4.f, 2.f, 6.f}});

  const auto [min, max] = aminmax(x);
  const auto [low, high] = x.aminmax({.dim = -1, .keepdim = true});

  EXPECT_EQ(min.item(), 1);
  EXPECT_EQ(max.item(), 6);
  EXPECT_EQ(low.shape(), Shape({2, 1}));
  EXPECT_EQ(low.to_vector<float>(), Floats({1, 2}));
  EXPECT_EQ(high.to_vector<float>(), Floats({5, 6}));
  EXPECT_THROW(x.aminmax({.dim = 2}), InvalidArgument);
  EXPECT_THROW(aminmax(zeros({0})), InvalidArgument);
}

TEST(Extrema, NanWins) {
  const Tensor x = tensor({{1.f, kNan, 3.f}, {kInf, 2.f, -kInf}});

  EXPECT_TRUE(std::isnan(max(x).item<float>()));
  EXPECT_TRUE(std::isnan(min(x).item<float>()));
  EXPECT_TRUE(std::isnan(amax(x, 1)[0].item<float>()));
  EXPECT_EQ(amin(x, 1)[1].item<float>(), -kInf);
  EXPECT_EQ(argmax(x, 1).to_vector<int64_t>(), Ints64({1, 0}));
  EXPECT_EQ(argmin(x).item<int64_t>(), 1);
  EXPECT_TRUE(std::isnan(max(x, 1).values[0].item<float>()));
}

TEST(Extrema, NanIsFoundAnywhereInARowOrColumn) {
  for (const int64_t n : {3, 17, 100, 3000}) {
    for (const int64_t at : {int64_t{0}, n / 2, n - 1}) {
      std::vector<float> values(static_cast<size_t>(n), 1.f);
      values[static_cast<size_t>(at)] = kNan;
      const Tensor x = tensor(values, {n});

      EXPECT_TRUE(std::isnan(max(x).item<float>())) << n << " at " << at;
      EXPECT_TRUE(std::isnan(amin(reshape(x, {n, 1}).expand({n, 40}), 0)[39].item<float>()));
      EXPECT_EQ(max(tensor(Floats(static_cast<size_t>(n), -2.f), {n})).item<float>(), -2);
    }
  }
}

TEST(Extrema, NothingHasNoExtremum) {
  const Tensor x = zeros({0, 3});

  EXPECT_THROW(max(x), InvalidArgument);
  EXPECT_THROW(amin(x, 0), InvalidArgument);
  EXPECT_THROW(argmax(x, 0), InvalidArgument);
  EXPECT_EQ(amax(x, 1).shape(), Shape({0}));
  EXPECT_EQ(argmax(x, 1).shape(), Shape({0}));
}

TEST(Extrema, TiesShareTheGradientOfAmaxOnly) {
  const Tensor x = tensor(Doubles{2, 7, 7, 1}, {4}, {.requires_grad = true});

  EXPECT_EQ(grad({amax(x)}, {x})[0].to_vector<double>(), Doubles({0, 0.5, 0.5, 0}));
  EXPECT_EQ(grad({max(x)}, {x})[0].to_vector<double>(), Doubles({0, 0.5, 0.5, 0}));
  EXPECT_EQ(grad({max(x, 0).values}, {x})[0].to_vector<double>(), Doubles({0, 1, 0, 0}));
}

TEST(Extrema, NanTakesTheGradientOfAnExtremumOfEverything) {
  const auto slopes = [](const Floats& values, Tensor (*of)(const TensorArg&)) {
    const Tensor x = tensor(values).requires_grad_();
    return grad({of(x)}, {x})[0].to_vector<float>();
  };

  EXPECT_EQ(slopes({1, kNan, 2}, max), Floats({0, 1, 0}));
  EXPECT_EQ(slopes({kNan, 1, kNan}, min), Floats({0.5, 0, 0.5}));
  EXPECT_EQ(slopes({1, 2, 2}, max), Floats({0, 0.5, 0.5}));
}

TEST(Extrema, NanSpreadsInItsLineOnly) {
  const Tensor x = tensor({{1.f, kNan}, {3.f, 2.f}}).requires_grad_();

  const Floats dx = grad({sum(amax(x, 1))}, {x})[0].to_vector<float>();

  EXPECT_TRUE(std::isnan(dx[0]) && std::isnan(dx[1]));
  EXPECT_EQ(Floats(dx.begin() + 2, dx.end()), Floats({1, 0}));
}

TEST(Extrema, GradientsAreRight) {
  const Tensor x = tensor(Doubles{2, 7, -3, 1, 0.5, 4}, {2, 3}, {.requires_grad = true});
  const auto fn = [](const Tensors& in) {
    return Tensors{amax(in[0], 1) * 2, amin(in[0]) * in[0], max(in[0], 0).values,
                   min(in[0], 1, {.keepdim = true}).values * in[0]};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

}  // namespace
}  // namespace flow
