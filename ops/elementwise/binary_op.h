// What the functions of ops/elementwise/binary.h and their in-place forms share. Their ops are rows
// of ops/elementwise/arithmetic_rows.h.
#pragma once

#include <string>
#include <tuple>

#include "core/op.h"
#include "ops/number_range.h"
#include "ops/promotion.h"

namespace flow::ops {

struct AddAttrs {
  double alpha = 1;

  template <class C>
  C number() const {
    return factor_as<C>(alpha);
  }

  static constexpr auto fields() { return std::tuple(value_field("alpha", &AddAttrs::alpha)); }
};

// a / b rounded towards zero.
Tensor trunc_divide(const TensorArg& a, const TensorArg& b);
Tensor trunc_divide(const TensorArg& a, const Scalar& b);

// Throws InvalidArgument if alpha is fractional and the tensors are integers; PyTorch does not
// round it either.
void check_alpha(double alpha, const Tensor& a, const Tensor& b, const char* op, Site site);
// Returns the op that the rounding mode names. Throws InvalidArgument for any other word.
const OpDef& rounded_division(const std::string& rounding_mode, const OpDef& trunc,
                              const OpDef& floor, Site site);
[[noreturn]] void throw_division_by_zero();
// Throws InvalidArgument for a negative power of integers.
void check_exponent(const Tensor& base, const Scalar& exponent, Site site);

}  // namespace flow::ops
