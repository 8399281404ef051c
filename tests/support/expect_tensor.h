// Expectations on tensors, whose elements are read as doubles.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

// Expects all elements, in row-major order, to be within `tolerance` of the expected ones; NaN
// equals NaN.
void expect_values(const Tensor& actual, const std::vector<double>& expected,
                   double tolerance = 1e-6);

// Like expect_values, for rows of `columns` elements: the error of each element may be at most
// `tolerance` times the largest magnitude in its row.
void expect_rows(const Tensor& actual, const std::vector<double>& expected, int64_t columns,
                 double tolerance);

// The largest difference of two elements, whose shapes are expected to be equal; 0 if there are
// none.
double distance(const Tensor& a, const Tensor& b);

// Expects that `call` throws InvalidArgument with `text` in its message.
void expect_refused(const std::function<void()>& call, const std::string& text);

}  // namespace flow
