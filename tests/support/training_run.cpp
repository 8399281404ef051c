#include "tests/support/training_run.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace flow {

void TrainingRun::read_weights(const nn::ModuleBase& model) {
  for (const auto& [name, tensor] : model.state_dict())
    weights.emplace_back(name, tensor.to(float64).to_vector<double>());
}

namespace {

using Values = std::vector<double>;

double norm(const Values& values) {
  double sum = 0;
  for (const double value : values)
    sum += value * value;
  return std::sqrt(sum);
}

double distance(const Values& a, const Values& b) {
  Values difference = a;
  for (size_t i = 0; i < a.size(); ++i)
    difference[i] -= b[i];
  return norm(difference);
}

}  // namespace

RunLimits close_to(const TrainingRun& want) {
  RunLimits limits{.losses = Values(want.losses.size(), 1e-9)};
  for (const auto& [name, values] : want.weights)
    limits.weights.push_back(1e-9 * norm(values) + 1e-15);
  return limits;
}

RunLimits spread_of(const TrainingRun& want, const std::vector<TrainingRun>& others) {
  constexpr double kRounding = 0x1p-24;
  RunLimits limits;
  for (const double loss : want.losses)
    limits.losses.push_back(16 * kRounding * std::abs(loss));
  for (const auto& [name, values] : want.weights)
    limits.weights.push_back(16 * kRounding * norm(values));
  for (const TrainingRun& other : others) {
    for (size_t i = 0; i < want.losses.size(); ++i)
      limits.losses[i] =
          std::max(limits.losses[i], 10 * std::abs(other.losses[i] - want.losses[i]));
    for (size_t i = 0; i < want.weights.size(); ++i)
      limits.weights[i] = std::max(limits.weights[i],
                                   10 * distance(other.weights[i].second, want.weights[i].second));
  }
  return limits;
}

void expect_near(const TrainingRun& got, const TrainingRun& want, const std::string& what) {
  expect_within(got, want, close_to(want), what);
}

void expect_within(const TrainingRun& got, const TrainingRun& want, const RunLimits& limits,
                   const std::string& what) {
  ASSERT_EQ(got.losses.size(), want.losses.size()) << what;
  ASSERT_EQ(got.weights.size(), want.weights.size()) << what;
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], limits.losses[i]) << what << ", step " << i;
  for (size_t i = 0; i < want.weights.size(); ++i) {
    const auto& [name, values] = want.weights[i];
    ASSERT_EQ(got.weights[i].first, name) << what;
    ASSERT_EQ(got.weights[i].second.size(), values.size()) << what << ", " << name;
    EXPECT_LE(distance(got.weights[i].second, values), limits.weights[i]) << what << ", " << name;
  }
}

}  // namespace flow
