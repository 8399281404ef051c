// The size below which singular values count as zero.
#pragma once

#include <optional>

#include "core/tensor.h"

namespace flow::ops {

struct Tolerances {
  double absolute = 0;
  double relative = 0;  // to the largest singular value
};

// PyTorch's defaults: atol is 0; rtol is the longer side of x times the spacing of its dtype at 1,
// or 0 if atol is positive. Throws InvalidArgument, which names `function`, for a negative one.
Tolerances tolerances(const Tensor& x, std::optional<double> atol, std::optional<double> rtol,
                      const char* function);

}  // namespace flow::ops
