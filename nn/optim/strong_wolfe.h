// A line search that finds a step with the strong Wolfe conditions (Nocedal and Wright 2006,
// algorithms 3.5 and 3.6).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/tensor.h"

namespace flow::optim {

// The function at distance `step` along a direction.
struct LinePoint {
  double step = 0;
  double value = 0;
  double slope = 0;  // the derivative along the direction
  std::vector<Tensor> gradients = {};
};

// Searches from `start`, whose step is 0 and whose slope is negative. `evaluate` returns the point
// at a distance, `first_step` is the first one tried, and `direction_size` is the largest element
// of the direction. Ends without both conditions if no parameter is left to move by 1e-9, and after
// `max_iterations`, each of which may evaluate one more point; the result is then the lowest point.
LinePoint search_strong_wolfe(const std::function<LinePoint(double step)>& evaluate,
                              const LinePoint& start, double first_step, double direction_size,
                              int64_t max_iterations);

}  // namespace flow::optim
