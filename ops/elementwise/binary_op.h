// Definitions of the ops of ops/elementwise/binary.h. "_scalar" has a host number on the right,
// "r…_scalar" on the left.
#pragma once

#include <string>
#include <tuple>

#include "core/op.h"
#include "ops/promotion.h"

namespace flow::ops {

struct AddAttrs {
  double alpha = 1;

  static constexpr auto fields() { return std::tuple(value_field("alpha", &AddAttrs::alpha)); }
};

extern const OpDef kAdd, kSub, kMul, kDiv;
extern const OpDef kAddScalar, kSubScalar, kRsubScalar, kMulScalar, kDivScalar, kRdivScalar;
extern const OpDef kPow, kPowScalar, kRpowScalar;
extern const OpDef kFloorDivide, kTruncDivide, kFmod, kRemainder;
extern const OpDef kFloorDivideScalar, kTruncDivideScalar, kFmodScalar, kRemainderScalar;
extern const OpDef kMaximum, kMinimum, kLogaddexp, kXlogy, kHypot;

// Throws InvalidArgument if alpha is fractional and the tensors are integers; PyTorch does not
// round it either.
void check_alpha(double alpha, const Tensor& a, const Tensor& b, const char* op);
// Returns the op that the rounding mode names. Throws InvalidArgument for any other word.
const OpDef& rounded_division(const std::string& rounding_mode, const OpDef& trunc,
                              const OpDef& floor);
// Throws InvalidArgument for a negative power of integers.
void check_exponent(const Tensor& base, const Scalar& exponent, Site site);

}  // namespace flow::ops
