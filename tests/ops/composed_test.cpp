// Functions that are composed of ops, with PyTorch's numbers (2.15, float64): windows, positions,
// slices that are combined, integrals, gamma functions.
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/gradcheck.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/creation/windows.h"
#include "ops/elementwise/special.h"
#include "ops/index/positions.h"
#include "ops/index/selection.h"
#include "ops/linear/vector_algebra.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;
using Ints64 = std::vector<int64_t>;

const TensorOptions kF64{.dtype = DType::kFloat64};

void expect_near(const Tensor& x, const Doubles& expected) {
  const Doubles values = x.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-12) << i;
}

TEST(Windows, HaveTheWeightsOfPyTorch) {
  const WindowOptions mirrored{.periodic = false};
  expect_near(bartlett_window(5, {}, kF64), {0, 0.4, 0.8, 0.8, 0.4});
  expect_near(bartlett_window(5, mirrored, kF64), {0, 0.5, 1, 0.5, 0});
  expect_near(hann_window(5, {}, kF64),
              {0, 0.3454915028125263, 0.9045084971874737, 0.9045084971874737, 0.3454915028125264});
  expect_near(hann_window(5, mirrored, kF64), {0, 0.5, 1, 0.5, 0});
  expect_near(hamming_window(5, {}, kF64), {0.08, 0.3978521825875242, 0.9121478174124757,
                                            0.912147817412476, 0.3978521825875243});
  expect_near(blackman_window(5, {}, kF64), {0, 0.20077014326253045, 0.8492298567374694,
                                             0.8492298567374696, 0.20077014326253056});
  expect_near(blackman_window(5, mirrored, kF64), {0, 0.34, 1, 0.34, 0});
}

TEST(Windows, OfOneOrNoElementAndOfWrongArguments) {
  EXPECT_EQ(hann_window(0).numel(), 0);
  EXPECT_EQ(hann_window(1).item<double>(), 1);
  EXPECT_EQ(bartlett_window(1, {.periodic = false}).item<double>(), 1);
  EXPECT_EQ(hann_window(3).dtype(), DType::kFloat32);
  EXPECT_THROW(hann_window(-1), InvalidArgument);
  EXPECT_THROW(hann_window(4, {}, {.dtype = DType::kInt64}), InvalidArgument);
}

TEST(Positions, OfTriangles) {
  const auto values = [](const Tensor& x) { return x.to_vector<int64_t>(); };
  EXPECT_EQ(values(tril_indices(3, 2, -1)), Ints64({1, 2, 2, 0, 0, 1}));
  EXPECT_EQ(values(triu_indices(3, 4, 1)), Ints64({0, 0, 0, 1, 1, 2, 1, 2, 3, 2, 3, 3}));
  EXPECT_EQ(values(tril_indices(2, 4, 1)), Ints64({0, 0, 1, 1, 1, 0, 1, 0, 1, 2}));
  EXPECT_EQ(tril_indices(0, 3).shape(), Shape({2, 0}));
  EXPECT_THROW(triu_indices(-1, 3), InvalidArgument);
}

TEST(Positions, OfFlatIndices) {
  const auto places = unravel_index(tensor({{7, 0}, {23, 13}}), {2, 3, 4});
  ASSERT_EQ(places.size(), 3);
  EXPECT_EQ(places[0].to_vector<int64_t>(), Ints64({0, 0, 1, 1}));
  EXPECT_EQ(places[1].to_vector<int64_t>(), Ints64({1, 0, 2, 0}));
  EXPECT_EQ(places[2].to_vector<int64_t>(), Ints64({3, 0, 3, 1}));
  EXPECT_THROW(unravel_index(tensor({1.0}), {2}), InvalidArgument);

  const auto far = unravel_index(tensor({7, 200}).to(uint8), {4, 256});
  EXPECT_EQ(far[0].dtype(), int64);
  EXPECT_EQ(far[0].to_vector<int64_t>(), (std::vector<int64_t>{0, 0}));
  EXPECT_EQ(far[1].to_vector<int64_t>(), (std::vector<int64_t>{7, 200}));
}

TEST(IndexReduce, TakesASliceForEachPosition) {
  const Tensor x = tensor({{1.0, 2.0}, {3.0, 4.0}});
  const Tensor place = tensor({1});

  EXPECT_THROW(index_reduce(x, 0, place, tensor({{5.0, 6.0}, {7.0, 8.0}}), "prod"),
               InvalidArgument);
  EXPECT_THROW(index_reduce(x, 0, place, tensor({{5.0}}), "prod"), InvalidArgument);
  EXPECT_THROW(index_reduce(tensor(2.0), 0, place, tensor({3.0}), "prod"), InvalidArgument);
  EXPECT_EQ(index_reduce(tensor(2.0), 0, tensor({0}), tensor(3.0), "prod").item(), 6);
}

TEST(IndexReduce, HasTheNumbersOfPyTorch) {
  const Tensor x = arange(1.0, 13.0, 1.0, kF64).reshape({4, 3});
  const Tensor index = tensor({0, 2, 0});
  const Tensor source = tensor({{2.0, 3.0, 4.0}, {5.0, 6.0, 7.0}, {8.0, -9.0, 1.0}}, kF64);
  const auto reduced = [&](const std::string& how, bool include_self) {
    return index_reduce(x, 0, index, source, how, {.include_self = include_self});
  };
  expect_near(reduced("prod", true), {16, -54, 12, 4, 5, 6, 35, 48, 63, 10, 11, 12});
  expect_near(reduced("prod", false), {16, -27, 4, 4, 5, 6, 5, 6, 7, 10, 11, 12});
  expect_near(reduced("mean", true), {11.0 / 3, -4.0 / 3, 8.0 / 3, 4, 5, 6, 6, 7, 8, 10, 11, 12});
  expect_near(reduced("mean", false), {5, -3, 2.5, 4, 5, 6, 5, 6, 7, 10, 11, 12});
  expect_near(reduced("amax", true), {8, 3, 4, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_near(reduced("amin", false), {2, -9, 1, 4, 5, 6, 5, 6, 7, 10, 11, 12});
  EXPECT_THROW(reduced("median", true), InvalidArgument);
  EXPECT_TRUE(gradcheck(
      [&](const std::vector<Tensor>& in) { return index_reduce(in[0], 0, index, in[1], "mean"); },
      {x.clone().requires_grad_(), source.clone().requires_grad_()}));
}

TEST(Put, WritesOrAddsAtFlatPositions) {
  const Tensor x = zeros({2, 2});
  const Tensor index = tensor({{3, 0}, {3, 1}});
  const Tensor source = tensor({{1.0, 2.0}, {4.0, 8.0}});
  EXPECT_EQ(put(x, index, source, {.accumulate = true}).to_vector<float>(),
            std::vector<float>({2, 8, 0, 5}));
  EXPECT_EQ(put(x, tensor({-1}), tensor({5.0})).to_vector<float>(),
            std::vector<float>({0, 0, 0, 5}));
  EXPECT_EQ(x.to_vector<float>(), std::vector<float>(4, 0));
  EXPECT_THROW(put(x, index, tensor({1.0})), InvalidArgument);
}

TEST(Integrals, AddUp) {
  const Tensor y = tensor({{1.0, 2.0, 4.0}, {3.0, 1.0, 5.0}}, kF64);
  expect_near(cumulative_trapezoid(y, {.dx = 0.5}), {0.75, 2.25, 1, 2.5});
  expect_near(cumulative_trapezoid(y, {.x = tensor({0.0, 1.0, 3.0}, kF64)}), {1.5, 7.5, 2, 8});
  expect_near(trapezoid(y, {.x = tensor({0.0, 1.0, 3.0}, kF64)}), {7.5, 8});
  expect_near(trapezoid(y, {.dim = 0}), {2, 1.5, 4.5});
}

TEST(SpecialFunctions, OfSignsAndExponents) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(signbit(tensor({-1.0, -0.0, 0.0, 2.0, -kNan})).to_vector<bool>(),
            std::vector<bool>({true, true, false, false, true}));
  EXPECT_EQ(signbit(tensor({-1, 0, 1})).to_vector<bool>(), std::vector<bool>({true, false, false}));
  expect_near(ldexp(tensor({1.5, -3.0}, kF64), tensor({3, -1})), {12, -1.5});
  expect_near(mvlgamma(tensor({2.5, 4.0}, kF64), 3), {1.8809954616117743, 5.402975080909175});
  EXPECT_THROW(mvlgamma(tensor({2.5}), 0), InvalidArgument);
}

}  // namespace
}  // namespace flow
