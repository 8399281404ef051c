#include "tests/support/training_run.h"

#include <cmath>

#include <gtest/gtest.h>

namespace flow {

void TrainingRun::read_weights(const nn::ModuleBase& model) {
  for (const auto& [name, tensor] : model.state_dict())
    weights.emplace_back(name, tensor.to(float64).to_vector<double>());
}

void expect_near(const TrainingRun& got, const TrainingRun& want, const std::string& what) {
  ASSERT_EQ(got.losses.size(), want.losses.size()) << what;
  ASSERT_EQ(got.weights.size(), want.weights.size()) << what;
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], 1e-9) << what << ", step " << i;
  for (size_t i = 0; i < want.weights.size(); ++i) {
    double distance = 0, norm = 0;
    for (size_t j = 0; j < want.weights[i].second.size(); ++j) {
      const double w = want.weights[i].second[j];
      distance += std::pow(got.weights[i].second[j] - w, 2);
      norm += w * w;
    }
    EXPECT_LE(std::sqrt(distance), 1e-9 * std::sqrt(norm) + 1e-15)
        << what << ", " << want.weights[i].first;
  }
}

}  // namespace flow
