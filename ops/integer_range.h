// What integer dtypes can hold.
#pragma once

#include "core/dtype.h"
#include "core/scalar.h"
#include "core/site.h"

namespace flow::ops {

// Whether `number`, a fraction cut off, is one of `dtype`'s values. Floating dtypes and bool take
// every number.
bool holds_number(DType dtype, const Scalar& number);

// Throws InvalidArgument `[op] …` where an element of `dtype` cannot become `number`. As in
// PyTorch, small negative numbers stand for large ones of uint8: -1 for 255.
void check_fill_value(DType dtype, const Scalar& number, const char* op, Site site);

}  // namespace flow::ops
