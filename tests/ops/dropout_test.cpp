#include "ops/random/dropout.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/error.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "tests/support/expect_tensor.h"

namespace flow {
namespace {

TEST(Dropout, KeepsWhatTheElementRuleSays) {
  manual_seed(7);
  const auto y = dropout(ones({300}), {.p = 0.25}).to_vector<float>();

  for (uint64_t i = 0; i < 300; ++i) {
    const auto block = philox({.seed = 7, .stream = 0}, i / 4);
    const bool keeps = uniform_float(block[i % 4]) >= 0.25F;
    EXPECT_EQ(y[i], keeps ? 1 / 0.75F : 0.F) << i;
  }
}

TEST(Dropout, DropsAlikeInEveryDtype) {
  manual_seed(3);
  const auto floats = dropout(ones({100})).to_vector<double>();
  manual_seed(3);
  const auto doubles = dropout(ones({100}, {.dtype = float64})).to_vector<double>();

  EXPECT_EQ(floats, doubles);
}

TEST(Dropout, IsTheIdentityWhenNotTraining) {
  const Tensor x = ones({3});

  EXPECT_TRUE(dropout(x, {.training = false}).is_same(x));
  EXPECT_TRUE(dropout(x, {.p = 0}).is_same(x));
}

TEST(Dropout, OfProbabilityOneIsZero) {
  const Tensor x = ones({3}).requires_grad_();
  const Tensor y = dropout(x, {.p = 1});

  y.sum().backward();

  expect_values(y, {0, 0, 0});
  expect_values(x.grad(), {0, 0, 0});
}

TEST(Dropout, GradientGoesThroughTheSameMask) {
  const Tensor x = ones({1000}).requires_grad_();
  const Tensor y = dropout(x);

  y.sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), y.to_vector<float>());
}

TEST(Dropout, RefusesWhatIsNoProbability) {
  expect_refused([] { dropout(ones({2}), {.p = 1.5}); }, "[dropout] p is 1.5");
  expect_refused([] { dropout(ones({2}, {.dtype = int64})); }, "takes a floating dtype");
}

}  // namespace
}  // namespace flow
