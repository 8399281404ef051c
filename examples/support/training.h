// Functions that the training examples share.
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "flow/flow.h"

namespace examples {

// The L2 norm of all gradients.
inline double gradient_norm(const std::vector<flow::Tensor>& parameters) {
  double sum = 0;
  for (const flow::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) sum += flow::square(parameter.grad()).sum().item<double>();
  }
  return std::sqrt(sum);
}

// Writes the message to stderr and returns the exit status: 65 for a damaged file, 73 for lack of
// memory, 74 for other file errors, 1 for all other errors.
inline int report_error(const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  if (dynamic_cast<const flow::OutOfMemory*>(&error) != nullptr) return 73;
  if (dynamic_cast<const flow::BadFile*>(&error) != nullptr) return 65;
  if (dynamic_cast<const flow::IoError*>(&error) != nullptr) return 74;
  return 1;
}

// Runs `body`, and turns errors into one line and an exit status. With several ranks errors leave
// main unchanged: the wrapper that flow::flow puts around main tells the other ranks and sets the
// exit status for the launcher.
template <class Body>
int run_main(Body body) {
  try {
    body();
    return 0;
  } catch (const std::exception& error) {
    if (flow::env::world_size() > 1) throw;
    return report_error(error);
  }
}

}  // namespace examples
