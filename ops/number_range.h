// Which numbers the dtypes hold.
#pragma once

#include <cstdint>
#include <type_traits>

#include "core/dtype.h"
#include "core/scalar.h"
#include "core/site.h"

namespace flow::ops {

// Returns true if `number` without its fraction is a value of `dtype`. Floating dtypes and bool
// accept every number.
bool holds_number(DType dtype, const Scalar& number);

// Returns true if `number` is an int64 without a fraction.
bool is_whole_number(double number);

// A factor as a C. Integers take its part before the point, and small negative numbers stand for
// large values of uint8: -1 means 255. A direct conversion of those would not be defined.
template <class C>
C factor_as(double factor) {
  if constexpr (std::is_integral_v<C>) return static_cast<C>(static_cast<int64_t>(factor));
  return static_cast<C>(factor);
}

// Throws InvalidArgument `[op] …` if an element of `dtype` cannot hold `number`: an integer out of
// range, or a finite number that would become infinite in a floating dtype. As in PyTorch, small
// negative numbers stand for large values of uint8: -1 means 255.
void check_fill_value(DType dtype, const Scalar& number, const char* op, Site site);

}  // namespace flow::ops
