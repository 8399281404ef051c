#include "ops/reduce/statistics.h"

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
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;
using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Ints64 = std::vector<int64_t>;

constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Statistics, VarianceAndDeviation) {
  const Tensor x = tensor({{1.f, 3.f}, {2.f, 6.f}});

  EXPECT_EQ(var(x, 1).to_vector<float>(), Floats({2, 8}));
  EXPECT_EQ(var(x, 1, {.unbiased = false}).to_vector<float>(), Floats({1, 4}));
  EXPECT_EQ(std(x, 1, {.unbiased = false, .keepdim = true}).shape(), Shape({2, 1}));
  EXPECT_EQ(std(x, 1, {.unbiased = false}).to_vector<float>(), Floats({1, 2}));
  EXPECT_FLOAT_EQ(var(x).item<float>(), 14.f / 3);
  EXPECT_TRUE(std::isnan(var(tensor({1.f})).item<float>()));
}

TEST(Statistics, WithTheMeanOfTheSameDims) {
  const Tensor x = tensor({{1.f, 3.f}, {2.f, 6.f}});

  const auto [var, mean] = var_mean(x, 1, {.unbiased = false, .keepdim = true});
  const auto [std, all] = std_mean(x, {}, {.correction = 0});

  EXPECT_EQ(var.shape(), Shape({2, 1}));
  EXPECT_EQ(var.to_vector<float>(), std::vector<float>({1, 4}));
  EXPECT_EQ(mean.shape(), Shape({2, 1}));
  EXPECT_EQ(mean.to_vector<float>(), std::vector<float>({2, 4}));
  EXPECT_FLOAT_EQ(std.item<float>(), 1.8708287f);
  EXPECT_EQ(all.item(), 3);
  EXPECT_FLOAT_EQ(var_mean(x).var.item<float>(), 4.6666667f);
  EXPECT_FLOAT_EQ(std_mean(x).std.item<float>(), 2.1602469f);
  EXPECT_THROW(var_mean(x, 2), InvalidArgument);
}

TEST(Statistics, NormsOfAllOrders) {
  const Tensor x = tensor({{3.f, -4.f}, {0.f, 0.f}});

  EXPECT_EQ(norm(x, {.dim = 1}).to_vector<float>(), Floats({5, 0}));
  EXPECT_EQ(norm(x, {.p = 1, .dim = 1}).to_vector<float>(), Floats({7, 0}));
  EXPECT_EQ(norm(x, {.p = 0, .dim = 1}).to_vector<float>(), Floats({2, 0}));
  EXPECT_EQ(norm(x, {.p = kInf}).item<float>(), 4);
  EXPECT_EQ(norm(x, {.p = -kInf, .dim = 1}).to_vector<float>(), Floats({3, 0}));
  EXPECT_FLOAT_EQ(norm(x, {.p = 3}).item<float>(), std::cbrt(91.f));
  EXPECT_EQ(norm(x, {.dim = {0, 1}, .keepdim = true}).shape(), Shape({1, 1}));
  EXPECT_EQ(norm(zeros({0})).item<float>(), 0);
  EXPECT_THROW(norm(zeros({0}), {.p = kInf}), InvalidArgument);
  EXPECT_THROW(norm(arange(3)), InvalidArgument);
}

TEST(Statistics, ZeroNormHasZeroGradient) {
  const Tensor x = zeros({3}, {.dtype = float64, .requires_grad = true});

  for (const double p : {1.0, 1.5, 2.0, 3.0}) {
    EXPECT_EQ(grad({norm(x, {.p = p})}, {x})[0].to_vector<double>(), Doubles({0, 0, 0})) << p;
  }
  EXPECT_EQ(grad({std(x)}, {x})[0].to_vector<double>(), Doubles({0, 0, 0}));
}

TEST(Statistics, LogsumexpNeitherOverflowsNorUnderflows) {
  const Tensor x = tensor({{1000.f, 1000.f}, {-1000.f, -1000.f}, {-kInf, -kInf}, {kInf, 0.f}});

  const auto y = logsumexp(x, 1).to_vector<float>();
  EXPECT_FLOAT_EQ(y[0], 1000 + std::log(2.f));
  EXPECT_FLOAT_EQ(y[1], -1000 + std::log(2.f));
  EXPECT_EQ(y[2], -kInf);
  EXPECT_EQ(y[3], kInf);
  EXPECT_EQ(logsumexp(zeros({0})).item<float>(), -kInf);
}

TEST(Statistics, GradientsAreRight) {
  const Tensor x = tensor(Doubles{2, 7, -3, 1, 0.5, 4}, {2, 3}, {.requires_grad = true});
  const auto fn = [](const Tensors& in) {
    const Tensor& v = in[0];
    return Tensors{var(v, 1) * v.sum(),
                   std(v),
                   norm(v),
                   norm(v, {.p = 1, .dim = 0}),
                   norm(v, {.p = 3, .dim = 1}),
                   norm(v, {.p = kInf, .dim = 1}),
                   logsumexp(v, 1),
                   logsumexp(v)};
  };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

TEST(Statistics, CorrectionReplacesUnbiased) {
  const Tensor x = tensor({1.f, 2.f, 4.f, 8.f});

  EXPECT_EQ(var(x, {}, {.correction = 0}).item<float>(), 7.1875f);
  EXPECT_EQ(var(x, {}, {.correction = 2}).item<float>(), 14.375f);
  EXPECT_TRUE(std::isinf(var(x, {}, {.correction = 5}).item<float>()));
  EXPECT_FLOAT_EQ(flow::std(x, 0, {.correction = 2}).item<float>(), 3.7914377f);
}

// The sum of squares, 131072, is not a float16 value.
TEST(Statistics, SpreadOfManyFloat16IsFinite) {
  const Tensor x = tensor({-1.f, 1.f}).to(float16).expand({65536, 2});

  EXPECT_EQ(var(x).item(), 1);
  EXPECT_EQ(flow::std(x * 300).item(), 300);
  EXPECT_EQ(var(x).dtype(), float16);
}

}  // namespace
}  // namespace flow
