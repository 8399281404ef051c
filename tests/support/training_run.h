// The result of a training: its losses, and the weights at the end.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nn/flow.h"

namespace flow {

struct TrainingRun {
  std::vector<double> losses = {};
  std::vector<std::pair<std::string, std::vector<double>>> weights = {};

  void read_weights(const nn::ModuleBase& model);
};

// Expects losses within 1e-9, and weights within 1e-9 of their norm or 1e-15, because some are zero
// except for rounding.
void expect_near(const TrainingRun& got, const TrainingRun& want, const std::string& what);

// How far losses may be from the expected ones, and weights in the Euclidean norm.
struct RunLimits {
  std::vector<double> losses = {};
  std::vector<double> weights = {};
};

// The limits of expect_near().
RunLimits close_to(const TrainingRun& want);

// Limits for arithmetic in float32: ten times as far as any of `others` is from `want`, and 16
// roundings of the result itself. `others` are runs in float32 from slightly different weights.
RunLimits spread_of(const TrainingRun& want, const std::vector<TrainingRun>& others);

void expect_within(const TrainingRun& got, const TrainingRun& want, const RunLimits& limits,
                   const std::string& what);

}  // namespace flow
