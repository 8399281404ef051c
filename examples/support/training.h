// What the training examples share.
#pragma once

#include <cmath>
#include <cstdio>
#include <vector>

#include "flow/flow.h"

namespace examples {

// L2 norm over all gradients.
inline double gradient_norm(const std::vector<flow::Tensor>& parameters) {
  double sum = 0;
  for (const flow::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) sum += flow::square(parameter.grad()).sum().item<double>();
  }
  return std::sqrt(sum);
}

// Runs `body`, turning errors into one line and an exit status (74: files, as sysexits says).
template <class Body>
int run_main(Body body) {
  try {
    body();
    return 0;
  } catch (const flow::IoError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 74;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace examples
