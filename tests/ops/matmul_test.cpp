#include "ops/linear/matmul.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

// As the products of single integers do.
TEST(Matmul, IntegersWrapAround) {
  const Tensor x = full({1, 2}, std::numeric_limits<int64_t>::max());
  EXPECT_EQ(matmul(x, tensor({{3}, {5}})).to_vector<int64_t>(), std::vector<int64_t>({-8}));
}

TEST(Matmul, FollowsTheShapesOfPyTorch) {
  const Tensor vector = ones({3});
  const Tensor matrix = ones({3, 4});
  const Tensor batches = ones({5, 2, 3});

  EXPECT_EQ(matmul(vector, vector).shape(), Shape());
  EXPECT_EQ(matmul(vector, matrix).shape(), (Shape{4}));
  EXPECT_EQ(matmul(batches, vector).shape(), (Shape{5, 2}));
  EXPECT_EQ(matmul(batches, matrix).shape(), (Shape{5, 2, 4}));
  EXPECT_EQ(matmul(vector, ones({7, 3, 4})).shape(), (Shape{7, 4}));
  EXPECT_EQ(matmul(ones({6, 1, 2, 3}), ones({5, 3, 4})).shape(), (Shape{6, 5, 2, 4}));
}

TEST(Matmul, MultipliesRowsByColumns) {
  const Tensor a = tensor({{1.f, 2.f}, {3.f, 4.f}});
  const Tensor b = tensor({{5.f, 6.f}, {7.f, 8.f}});

  expect_values(matmul(a, b), {19, 22, 43, 50});
  expect_values(matmul(a.t(), b), {26, 30, 38, 44});
  expect_values(matmul(a, b.t()), {17, 23, 39, 53});
  expect_values(matmul(a, tensor({1.f, 10.f})), {21, 43});
  expect_values(matmul(tensor({1.f, 10.f}), a), {31, 42});
}

TEST(Matmul, ReadsExpandedAndSlicedOperands) {
  const Tensor row = tensor({{1.f, 2.f, 3.f}});
  const Tensor wide = tensor({{1.f, 2.f, 3.f, 4.f}, {5.f, 6.f, 7.f, 8.f}});

  expect_values(matmul(row.expand({2, 3}), ones({3, 1})), {6, 6});
  expect_values(matmul(wide.narrow(1, 1, 2), tensor({1.f, 1.f})), {5, 13});
}

// Sizes around those at which rows or columns are divided among threads, in all storage orders.
TEST(Matmul, CutForThreadsIsTheWholeProduct) {
  manual_seed(3);

  struct Sizes {
    int64_t m, n, k;
  };

  for (const auto& [m, n, k] : {Sizes{131, 37, 700}, Sizes{67, 517, 131}, Sizes{100, 90, 1500},
                                Sizes{517, 3, 300}, Sizes{3, 700, 1100}, Sizes{2049, 65, 40}}) {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    const Tensor a = randn({m, k});
    const Tensor b = randn({k, n});
    const Tensor bias = randn({n});
    const Tensor wanted = matmul(a.to(float64), b.to(float64));
    const auto error = [&](const Tensor& product) {
      return (product.to(float64) - wanted).abs().max().item();
    };
    const double tolerance = 3e-5 * std::sqrt(static_cast<double>(k));
    const Tensor a_by_columns = a.t().contiguous().t();
    const Tensor b_by_columns = b.t().contiguous().t();
    for (const Tensor& left : {a, a_by_columns}) {
      EXPECT_LT(error(matmul(left, b)), tolerance);
      EXPECT_LT(error(matmul(left, b_by_columns)), tolerance);
      EXPECT_LT(error(linear(left, b.t(), bias) - bias), tolerance);
      EXPECT_LT(error(linear(left, b_by_columns.t(), bias) - bias), tolerance);
    }
  }
}

TEST(Matmul, OfIntegersWraps) {
  const Tensor a = tensor({{100}}, {.dtype = int8});

  expect_values(matmul(a, a), {16});  // 10000 mod 256
  EXPECT_EQ(matmul(a, a).dtype(), int8);
}

TEST(Matmul, AccumulatesHalvesInFloat) {
  const Tensor row = full({1, 4096}, 1, {.dtype = bfloat16});
  const Tensor column = full({4096, 1}, 1, {.dtype = bfloat16});

  EXPECT_EQ(matmul(row, column).item(), 4096);  // stops at 256 in bfloat16 steps of 1
}

TEST(Matmul, OverNothingIsZero) {
  expect_values(matmul(ones({2, 0}), ones({0, 2})), {0, 0, 0, 0});
  expect_values(linear(ones({2, 0}), ones({1, 0}), tensor({3.f})), {3, 3});
  EXPECT_EQ(matmul(ones({0, 3}), ones({3, 2})).shape(), (Shape{0, 2}));
}

TEST(Matmul, RefusesShapesThatDoNotMatch) {
  expect_refused(
      [] {
        matmul(ones({4, 3}), ones({5, 2}));
      },
      "[matmul] inner sizes differ: 3 and 5; the last dim of the first operand must "
      "equal the second-last dim of the second; received (4, 3) float32, (5, 2)");
  expect_refused(
      [] {
        matmul(ones({2, 4, 3}), ones({3, 3, 2}));
      },
      "[matmul] batch sizes 2 and 3 do not broadcast");
  expect_refused([] { matmul(ones({}), ones({2})); }, "at least one dim");
  expect_refused([] { matmul(ones({2}), ones({2}, {.dtype = float64})); },
                 "different dtypes, float32 and float64");
  expect_refused([] { mm(ones({2}), ones({2})); }, "[mm] takes a tensor of 2 and one of 2 dims");
  expect_refused([] { bmm(ones({2, 1, 1}), ones({3, 1, 1})); }, "[bmm] batch sizes differ");
}

TEST(Matmul, GradientsAreProductsToo) {
  const Tensor a = tensor({{1.f, 2.f}, {3.f, 4.f}}).requires_grad_();
  const Tensor b = tensor({{5.f, 6.f}, {7.f, 8.f}}).requires_grad_();

  matmul(a, b).sum().backward();

  expect_values(a.grad(), {11, 15, 11, 15});
  expect_values(b.grad(), {4, 4, 6, 6});
}

TEST(Linear, AddsTheBiasToEveryRow) {
  const Tensor x = tensor({{1.f, 2.f}, {3.f, 4.f}});
  const Tensor weight = tensor({{1.f, 0.f}, {0.f, 1.f}, {1.f, 1.f}});
  const Tensor bias = tensor({10.f, 20.f, 30.f});

  expect_values(linear(x, weight, bias), {11, 22, 33, 13, 24, 37});
  expect_values(linear(x, weight), {1, 2, 3, 3, 4, 7});
  expect_values(linear(x, tensor({1.f, -1.f})), {-1, -1});
}

TEST(Linear, SumsParameterGradientsOverLeadingDims) {
  const Tensor x = ones({2, 3, 4});
  const Tensor weight = zeros({5, 4}).requires_grad_();
  const Tensor bias = zeros({5}).requires_grad_();

  linear(x, weight, bias).sum().backward();

  expect_values(weight.grad(), std::vector<double>(20, 6));
  expect_values(bias.grad(), std::vector<double>(5, 6));
}

TEST(Addmm, IntegersStayIntegers) {
  const Tensor input = tensor({1, 2});
  const Tensor a = tensor({{1, 1}});
  const Tensor b = tensor({{1, 2}, {3, 4}});

  const Tensor y = addmm(input, a, b, {.beta = 2, .alpha = 10});
  EXPECT_EQ(y.dtype(), int64);
  expect_values(y, {42, 64});
  EXPECT_EQ(addmm(input, a, b, {.beta = 0, .alpha = 3}).dtype(), int64);
  EXPECT_THROW(addmm(input, a, b, {.beta = 0.5}), InvalidArgument);
}

TEST(Addmm, ScalesBothTerms) {
  const Tensor input = tensor({1.f, 2.f});
  const Tensor a = tensor({{1.f, 1.f}});
  const Tensor b = tensor({{1.f, 2.f}, {3.f, 4.f}});

  expect_values(addmm(input, a, b), {5, 8});
  expect_values(addmm(input, a, b, {.beta = 2, .alpha = 10}), {42, 64});
  expect_values(addmm(full({2}, NAN), a, b, {.beta = 0}), {4, 6});
  expect_values(baddbmm(input, a.unsqueeze(0), b.unsqueeze(0)), {5, 8});
}

}  // namespace
}  // namespace flow
