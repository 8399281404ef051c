#include "ops/linalg/tolerance.h"

#include <algorithm>

#include "core/error.h"

namespace flow::ops {

Tolerances tolerances(const Tensor& x, std::optional<double> atol, std::optional<double> rtol,
                      const char* function) {
  if ((atol && !(*atol >= 0)) || (rtol && !(*rtol >= 0))) {
    throw InvalidArgument(str("[", function, "] atol and rtol must not be negative; received ",
                              atol.value_or(0), " and ", rtol.value_or(0)));
  }
  if (x.dim() < 2) {
    throw InvalidArgument(str("[", function, "] takes matrices of at least two dims; received ",
                              x.meta(), "; reshape it"));
  }
  const double eps = x.dtype() == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
  const auto longest = static_cast<double>(std::max(x.size(-1), x.size(-2)));
  return {atol.value_or(0), rtol.value_or(atol.value_or(0) > 0 ? 0 : longest * eps)};
}

}  // namespace flow::ops
