// Expectations on tensors, read as doubles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

// All elements in row-major order, each within `tolerance` of the expected; NaN equals NaN.
void expect_values(const Tensor& actual, const std::vector<double>& expected,
                   double tolerance = 1e-6);

// As expect_values, for rows of `columns` elements: no element of a row is off by more than
// `tolerance` times the row's largest magnitude.
void expect_rows(const Tensor& actual, const std::vector<double>& expected, int64_t columns,
                 double tolerance);

// `call` throws InvalidArgument with `text` in its message.
void expect_refused(const std::function<void()>& call, const std::string& text);

}  // namespace flow
