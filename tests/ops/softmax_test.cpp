#include "ops/softmax.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation.h"
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

}  // namespace
}  // namespace flow
