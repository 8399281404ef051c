// The trainings of training.json, whose weights and data come from a formula.
#pragma once

#include <string>

#include "nn/layers/container.h"
#include "tests/parity/golden.h"

namespace flow::parity {

// The training of this id.
Json training_spec(const std::string& id);

// Its model with the weights it starts from.
nn::AnyModule make_trained_model(const Json& spec);

// Batches of inputs and targets, stacked.
struct TrainingData {
  Tensor x, y;
};

TrainingData make_training_data(const Json& spec);

// |a - b| within 1e-9 of b.
bool is_golden(double a, double b);

}  // namespace flow::parity
