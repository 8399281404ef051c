#include "ops/optimizer/update.h"

#include <cmath>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/optimizer/adaptive_update.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

Tensor doubles(const Doubles& values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}

void expect_near(const Tensor& actual, const Doubles& expected) {
  const Doubles values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-12) << i;
}

TEST(Update, PlainSgdSubtractsTheScaledGradient) {
  const Tensor param = doubles({1, 2});

  sgd_update(param, doubles({0.5, -1}), Tensor(), {.lr = 0.1, .weight_decay = 0.01});

  expect_near(param, {1 - 0.1 * (0.5 + 0.01), 2 - 0.1 * (-1 + 0.02)});
}

TEST(Update, MaximizeFlipsTheGradientBeforeTheDecay) {
  const Tensor param = doubles({1});

  sgd_update(param, doubles({0.5}), Tensor(), {.lr = 0.1, .weight_decay = 0.01, .maximize = true});

  expect_near(param, {1 - 0.1 * (-0.5 + 0.01)});
}

TEST(Update, FirstMomentumStepTakesTheGradientUndamped) {
  const Tensor param = doubles({1});
  const Tensor buffer = doubles({std::nan("")});
  SgdUpdateOptions options{.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .is_first = true};

  sgd_update(param, doubles({2}), buffer, options);
  expect_near(buffer, {2});
  expect_near(param, {0.8});

  options.is_first = false;
  sgd_update(param, doubles({1}), buffer, options);
  expect_near(buffer, {0.9 * 2 + 0.5 * 1});
  expect_near(param, {0.8 - 0.1 * 2.3});
}

TEST(Update, NesterovLooksAhead) {
  const Tensor param = doubles({1});
  const Tensor buffer = doubles({4});

  sgd_update(param, doubles({2}), buffer, {.lr = 0.1, .momentum = 0.9, .nesterov = true});

  const double b = 0.9 * 4 + 2;
  expect_near(buffer, {b});
  expect_near(param, {1 - 0.1 * (2 + 0.9 * b)});
}

// The formulas of Kingma and Ba, with eps added after the bias correction.
struct AdamReference {
  double p, m = 0, v = 0, largest = 0;

  void step(double g, int t, bool decoupled, bool amsgrad) {
    constexpr double kLr = 0.01, kB1 = 0.9, kB2 = 0.99, kEps = 1e-8, kDecay = 0.1;
    if (decoupled) {
      p -= kLr * kDecay * p;
    } else {
      g += kDecay * p;
    }
    m += (g - m) * (1 - kB1);
    v = kB2 * v + (1 - kB2) * g * g;
    largest = std::max(largest, v);
    const double used = amsgrad ? largest : v;
    const double denominator = std::sqrt(used) / std::sqrt(1 - std::pow(kB2, t)) + kEps;
    p -= kLr / (1 - std::pow(kB1, t)) * m / denominator;
  }
};

TEST(Update, AdamFollowsItsFormulasForSeveralSteps) {
  for (const bool decoupled : {false, true}) {
    for (const bool amsgrad : {false, true}) {
      AdamReference reference{.p = 1.5};
      const Tensor param = doubles({1.5}), m = doubles({0}), v = doubles({0});
      AdamUpdateOptions options{.lr = 0.01, .beta1 = 0.9, .beta2 = 0.99, .weight_decay = 0.1};
      if (amsgrad) options.max_exp_avg_sq = doubles({0});
      for (int t = 1; t <= 5; ++t) {
        const double g = t == 2 ? 3.0 : -0.25 * t;
        reference.step(g, t, decoupled, amsgrad);
        options.step = t;
        (decoupled ? adamw_update : adam_update)(param, doubles({g}), m, v, options);
      }
      expect_near(param, {reference.p});
      expect_near(m, {reference.m});
      expect_near(v, {reference.v});
    }
  }
}

TEST(Update, LearningRateStepAndMomentumMayBeTensors) {
  const Tensor a = doubles({1}), b = doubles({1});
  const Tensor m = doubles({0}), v = doubles({0}), m2 = doubles({0}), v2 = doubles({0});
  adam_update(a, doubles({2}), m, v, {.lr = 0.5, .step = 3});

  adam_update(b, doubles({2}), m2, v2,
              {.lr = 7,
               .lr_tensor = tensor(0.5, {.dtype = float64}),
               .step_tensor = tensor(3.0, {.dtype = float64})});

  expect_near(b, a.to_vector<double>());

  const Tensor buffer = doubles({2}), buffer2 = doubles({2});
  sgd_update(a, doubles({3}), buffer, {.lr = 0.5, .momentum = 0.75});
  sgd_update(b, doubles({3}), buffer2,
             {.lr = 0.5, .momentum = 0.1, .momentum_tensor = tensor(0.75, {.dtype = float64})});
  expect_near(b, a.to_vector<double>());
  expect_near(buffer2, buffer.to_vector<double>());
}

TEST(Update, StridedAndSixteenBitTensorsAreUpdated) {
  const Tensor param = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}).t();
  const Tensor grad = ones({3, 2});
  sgd_update(param, grad, Tensor(), {.lr = 0.5});
  EXPECT_EQ(param.to_vector<float>(), std::vector<float>({0.5, 3.5, 1.5, 4.5, 2.5, 5.5}));

  const Tensor half = ones({3}, {.dtype = bfloat16});
  sgd_update(half, ones({3}, {.dtype = bfloat16}), Tensor(), {.lr = 0.25});
  EXPECT_EQ(half.to_vector<float>(), std::vector<float>({0.75, 0.75, 0.75}));
}

TEST(Update, MismatchedShapesAndNumbersAreRefused) {
  EXPECT_THROW(sgd_update(ones({2}), ones({3}), Tensor(), {}), InvalidArgument);
  EXPECT_THROW(sgd_update(ones({2}), ones({2}, {.dtype = float64}), Tensor(), {}), InvalidArgument);
  EXPECT_THROW(adam_update(ones({2}), ones({2}), ones({2}), ones({2}), {.beta1 = 1}),
               InvalidArgument);
  EXPECT_THROW(adam_update(ones({2}), ones({2}), ones({2}), ones({2}), {.step = 0}),
               InvalidArgument);
}

TEST(Update, LambTakesTheRateAsItIsWhereANormIsZero) {
  const Tensor param = doubles({0, 0}), m = doubles({0, 0}), v = doubles({0, 0});
  lamb_update(param, doubles({1, -2}), m, v, {.lr = 0.5, .eps = 0});
  expect_near(param, {-0.5, 0.5});

  const Tensor still = doubles({3, 4}), m2 = doubles({0, 0}), v2 = doubles({0, 0});
  lamb_update(still, doubles({0, 0}), m2, v2, {.lr = 0.5});
  expect_near(still, {3, 4});
}

TEST(Update, LambNormsAreThoseOfTheWholeParameter) {
  const auto step = [](const TensorOptions& layout) {
    const Tensor param = tensor({3.f, 4.f, 12.f}, layout), grad = tensor({1.f, -2.f, 3.f}, layout);
    const Tensor m = zeros_like(param), v = zeros_like(param);
    lamb_update(param, grad, m, v, {.lr = 0.5, .weight_decay = 0.1});
    return param.to_vector<float>();
  };
  const std::vector<float> whole = step({});
  run_ranks(2, [&] {
    const auto split = step({.placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_FLOAT_EQ(split[i], whole[i]);
  });
}

TEST(Update, AdamaxKeepsNaN) {
  const Tensor param = doubles({1, 1}), m = doubles({0, 0}), u = doubles({0, NAN});
  adamax_update(param, doubles({NAN, 1}), m, u, {});
  for (const double value : u.to_vector<double>())
    EXPECT_TRUE(std::isnan(value));
}

TEST(Update, SplitTensorsAreUpdatedPartByPart) {
  run_ranks(2, [] {
    const TensorOptions split{.placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)};
    const Tensor param = tensor({1.f, 2.f, 3.f}, split);

    sgd_update(param, tensor({2.f, 4.f, 6.f}, split), Tensor(), {.lr = 0.5});

    EXPECT_EQ(param.to_vector<float>(), std::vector<float>({0, 0, 0}));
    EXPECT_EQ(param.sbp(), NdSbp(sbp::split(0)));
  });
}

}  // namespace
}  // namespace flow
