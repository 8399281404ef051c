// Which numbers the dtypes hold.
#pragma once

#include "core/dtype.h"
#include "core/scalar.h"
#include "core/site.h"

namespace flow::ops {

// Returns true if `number` without its fraction is a value of `dtype`. Floating dtypes and bool
// accept every number.
bool holds_number(DType dtype, const Scalar& number);

// Returns true if `number` is an int64 without a fraction.
bool is_whole_number(double number);

// Throws InvalidArgument `[op] …` if an element of `dtype` cannot hold `number`: an integer out of
// range, or a finite number that would become infinite in a floating dtype. As in PyTorch, small
// negative numbers stand for large values of uint8: -1 means 255.
void check_fill_value(DType dtype, const Scalar& number, const char* op, Site site);

}  // namespace flow::ops
