// What the training examples share.
#pragma once

#include <cmath>
#include <cstdio>
#include <exception>
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

// Runs `body`, turning errors into one line and an exit status (73: memory, 74: files). With
// several ranks they leave main as they are: what flow::flow puts around main tells the others and
// gives the status that a launcher understands.
template <class Body>
int run_main(Body body) {
  const auto report = [](const std::exception& error, int status) {
    if (flow::env::world_size() > 1) throw;
    std::fprintf(stderr, "%s\n", error.what());
    return status;
  };
  try {
    body();
    return 0;
  } catch (const flow::OutOfMemory& error) {
    return report(error, 73);
  } catch (const flow::BadFile& error) {
    return report(error, 65);
  } catch (const flow::IoError& error) {
    return report(error, 74);
  } catch (const std::exception& error) {
    return report(error, 1);
  }
}

}  // namespace examples
