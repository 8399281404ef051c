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

}  // namespace flow
