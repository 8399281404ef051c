// How the programs of the first hour check what they compute: a wrong result ends them with an
// exception, so their status is not 0.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <flow/flow.h>

inline void expect(bool holds, const std::string& claim) {
  if (!holds) throw std::runtime_error("this does not hold: " + claim);
}

inline void expect_near(double value, double wanted, const std::string& what, double limit = 1e-5) {
  expect(std::abs(value - wanted) <= limit * std::max(1.0, std::abs(wanted)),
         what + " is " + std::to_string(value) + ", wanted " + std::to_string(wanted));
}

// Compares the logical values; a tensor that is global is gathered.
inline void expect_near(const flow::Tensor& tensor, const std::vector<double>& wanted,
                        const std::string& what, double limit = 1e-5) {
  const std::vector<double> values = tensor.full().to_vector<double>();
  expect(values.size() == wanted.size(), what + " has as many elements as wanted");
  for (size_t i = 0; i < values.size(); ++i)
    expect_near(values[i], wanted[i], what + " at " + std::to_string(i), limit);
}

// Gives a local module the logical values of a global one of the same structure.
inline void copy_values(const flow::nn::ModuleBase& global, const flow::nn::ModuleBase& local) {
  const flow::NoGradGuard no_grad;
  const auto from = global.parameters(), to = local.parameters();
  for (size_t i = 0; i < to.size(); ++i)
    to[i].copy_(from[i].full());
}
