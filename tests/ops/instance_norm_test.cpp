#include "ops/norm/instance_norm.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

void expect_near(const Tensor& y, const Shape& shape, const Doubles& wanted) {
  EXPECT_EQ(y.shape(), shape);
  expect_values(y, wanted, 1e-13);
}

Tensor example() {
  return reshape(pow(arange(16, {.dtype = float64}), 1.5), {2, 2, 4});
}

Tensor doubles(const TensorLiteral& values) {
  return tensor(values, {.dtype = float64});
}

// Values of PyTorch 2.
TEST(InstanceNorm, NormalisesEachChannelOfEachSample) {
  const Tensor mean = doubles({1, 2});
  const Tensor var = doubles({3, 4});

  const Tensor y =
      instance_norm(example(), mean, var, {.weight = doubles({1, 2}), .bias = doubles({0, 1})});

  expect_near(y, {2, 2, 4},
              {-1.1410077395703158, -0.6352743772255341, 0.2894222203747581, 1.4868598964210922,
               -1.5983690892362459, 0.022159241337222225, 1.8140267178428446, 3.7621831300561785,
               -1.317547893398264, -0.4710573180202725, 0.42386836402763906, 1.3647368473908983,
               -1.6496227083062671, 0.07216032404899529, 1.8615067675208348, 3.7159556167364327});
  expect_near(mean, {2}, {2.484470573012694, 4.941460963653519});
  expect_near(var, {2}, {4.739508604613599, 7.156643360213007});
}

TEST(InstanceNorm, UsesRunningStatisticsOnRequest) {
  const Tensor x = doubles({{{3.0, 5.0}}});
  const Tensor mean = doubles({1});
  const Tensor var = doubles({4});

  expect_near(instance_norm(x, mean, var, {.use_input_stats = false, .eps = 0}), {1, 1, 2}, {1, 2});
  expect_near(mean, {1}, {1});
}

TEST(InstanceNorm, NeedsNoParameters) {
  expect_near(instance_norm(doubles({{{1.0, 3.0}, {5.0, 9.0}}}), {.eps = 0}), {1, 2, 2},
              {-1, 1, -1, 1});
  EXPECT_EQ(instance_norm(ones({0, 2, 3})).shape(), Shape({0, 2, 3}));
}

TEST(InstanceNorm, WrongArgumentsAreRefused) {
  EXPECT_THROW(instance_norm(ones({3})), InvalidArgument);
  EXPECT_THROW(instance_norm(ones({3, 2, 1})), InvalidArgument);
  EXPECT_THROW(instance_norm(ones({3, 2, 4}), {.use_input_stats = false}), InvalidArgument);
  EXPECT_THROW(instance_norm(ones({3, 2, 4}), ones({2}), Tensor()), InvalidArgument);
}

TEST(InstanceNorm, StatisticsHaveOneElementForEachChannel) {
  const Tensor x = randn({2, 3, 2, 2});
  EXPECT_THROW(instance_norm(x, zeros({3, 3}), ones({3}), {}), InvalidArgument);
  EXPECT_THROW(instance_norm(x, zeros({3}), ones({1}), {}), InvalidArgument);
}

}  // namespace
}  // namespace flow
