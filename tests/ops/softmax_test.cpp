#include "ops/norm/softmax.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

TEST(Softmax, NormalisesAlongTheDim) {
  const Tensor x = tensor({{1.f, 2.f, 3.f}, {1.f, 2.f, 3.f}});

  expect_values(softmax(x, 1),
                {0.09003057, 0.24472847, 0.66524096, 0.09003057, 0.24472847, 0.66524096});
  expect_values(softmax(x, 0), {0.5, 0.5, 0.5, 0.5, 0.5, 0.5});
  expect_values(log_softmax(x.select(0, 0), -1), {-2.40760596, -1.40760596, -0.40760596});
}

TEST(Softmax, DoesNotOverflow) {
  expect_values(softmax(tensor({1e4f, 1e4f, -1e4f}), 0), {0.5, 0.5, 0});
  expect_values(log_softmax(tensor({1e4f, 1e4f}), 0), {-0.69314718, -0.69314718});
}

TEST(Softmax, TreatsInfinitiesAsPyTorch) {
  const float inf = INFINITY;

  expect_values(softmax(tensor({0.f, -inf}), 0), {1, 0});
  expect_values(softmax(tensor({-inf, -inf}), 0), {NAN, NAN});
  expect_values(softmax(tensor({inf, 0.f}), 0), {NAN, NAN});
}

TEST(Softmax, IsWithinAMillionthOfTheLargestElement) {
  constexpr int kRows = 37;
  for (const int columns : {8, 100, 512, 1031}) {
    std::vector<float> x;
    std::vector<double> exact;
    for (int row = 0; row < kRows; ++row) {
      double sum = 0;
      for (int i = 0; i < columns; ++i) {
        x.push_back(static_cast<float>((row + 1) * std::sin(0.7 * i * i + row)));
        sum += std::exp(static_cast<double>(x.back()));
      }
      for (int i = 0; i < columns; ++i)
        exact.push_back(std::exp(static_cast<double>(x[exact.size()])) / sum);
    }

    expect_rows(softmax(tensor(x, {kRows, columns}), 1), exact, columns, 1e-6);
  }
}

TEST(Softmax, OfAScalarIsOne) {
  expect_values(softmax(tensor(5.f), 0), {1});
  expect_values(log_softmax(tensor(5.f), -1), {0});
  EXPECT_EQ(softmax(ones({2, 0}), 1).shape(), (Shape{2, 0}));
}

TEST(Softmax, ReadsStridedInputs) {
  const Tensor x = tensor({{1.f, 5.f}, {2.f, 5.f}, {3.f, 5.f}});

  expect_values(softmax(x.t(), 1).select(0, 0), {0.09003057, 0.24472847, 0.66524096});
}

TEST(Softmax, RefusesIntegersAndDimsOutOfRange) {
  expect_refused([] { softmax(ones({2}, {.dtype = int64}), 0); },
                 "[softmax] takes a floating dtype");
  expect_refused([] { log_softmax(ones({2}), 1); }, "[log_softmax]");
}

TEST(Softmax, TakesADtype) {
  const Tensor x = tensor({0, 0});

  EXPECT_EQ(softmax(x, 0, {.dtype = float64}).to_vector<double>(), std::vector<double>({0.5, 0.5}));
  EXPECT_EQ(log_softmax(x, 0, {.dtype = float32}).dtype(), float32);
  EXPECT_THROW(softmax(x, 0, {}), InvalidArgument);
}

}  // namespace
}  // namespace flow
