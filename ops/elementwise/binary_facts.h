// The facts of a row of a function with two or three operands, apart from its formula and its
// gradient. A number of the call, such as 3 in x + 3, is an operand too.
#pragma once

#include <cstdint>

#include "core/device/host_device.h"
#include "core/op.h"
#include "ops/elementwise/rows.h"
#include "ops/promotion.h"
#include "ops/sbp_rules.h"

namespace flow::ops {

// A function of two tensors, which not every row has. Under the undefined behaviour sanitizer GCC
// cannot compare the address of a function in a constant expression.
class PairFunction {
 public:
  using Function = Tensor (*)(const TensorArg& a, const TensorArg& b);

  constexpr PairFunction() = default;

  // NOLINTNEXTLINE(google-explicit-constructor): a row names the function
  constexpr PairFunction(Function function) : function_(function), is_given_(true) {}

  constexpr bool is_given() const { return is_given_; }

  Tensor operator()(const TensorArg& a, const TensorArg& b) const { return function_(a, b); }

 private:
  Function function_ = nullptr;
  bool is_given_ = false;
};

// A row of two tensors names all its functions. The row of an op of a tensor and a number has no
// `call`: it names the form that its samples try, with_number(x, number) or of_number(number, x).
struct BinaryFacts {
  const char* name;
  PairFunction call = {};
  Tensor (*with_number)(const TensorArg& a, const Scalar& b) = nullptr;
  Tensor (*of_number)(const Scalar& a, const TensorArg& b) = nullptr;
  const Tensor& (*in_place)(const TensorArg& x, const TensorArg& b) = nullptr;
  const Tensor& (*in_place_with_number)(const TensorArg& x, const Scalar& b) = nullptr;
  Takes takes = Takes::kAll;
  SbpFn sbp = elementwise_sbp;
  uint32_t reads = kReadsNothing;
  uint32_t loops = kLoopLibrary;
  RowSample a = kNearZero;
  RowSample b = kNearZero;
  int64_t number = 3;  // that samples try
  AutocastRule autocast = AutocastRule::kNone;
  bool gives_bools = false;    // no gradient and no in-place form
  bool refuses_zero = false;   // an integer divided by zero throws; devices, which cannot, give 0
  bool is_general = true;      // false: layouts may be right for the samples' values alone
  uint32_t without_slope = 0;  // bit i: the derivative by input i is not implemented

  static constexpr uint32_t masks = 0;
  static constexpr bool allows_in_place = true;

  constexpr int inputs() const { return call.is_given() ? 2 : 1; }
};

// The functions of these rows have options or overloads of their own, so their bindings and samples
// are written by hand.
struct TernaryFacts {
  const char* name;
  int num_inputs = 3;
  uint32_t masks = 0;  // bit i: input i is bool, whatever the dtype of the others
  Takes takes = Takes::kAll;
  SbpFn sbp = elementwise_sbp;
  uint32_t reads = kReadsNothing;
  uint32_t loops = kNoLoops;
  AutocastRule autocast = AutocastRule::kNone;
  bool allows_in_place = true;

  static constexpr bool gives_bools = false;
  static constexpr bool refuses_zero = false;
  static constexpr uint32_t without_slope = 0;

  constexpr int inputs() const { return num_inputs; }
};

// The base of a row of a tensor and a number with the formula of the row F of two tensors.
template <class F>
struct WithNumber {
  using Attrs = ScalarAttrs;

  template <class T>
  FLOW_HOST_DEVICE static auto apply(T x, T c) {
    return F::apply(x, c);
  }
};

template <class F>
struct OfNumber {
  using Attrs = ScalarAttrs;

  template <class T>
  FLOW_HOST_DEVICE static auto apply(T x, T c) {
    return F::apply(c, x);
  }
};

}  // namespace flow::ops
