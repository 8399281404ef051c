// Definitions of the ops of ops/random/random.h and of the methods uniform_ and normal_.
#pragma once

#include "core/context.h"
#include "core/dispatch.h"
#include "ops/creation/creation_op.h"

namespace flow::ops {

// Uniform: [a, b). Normal: mean a, standard deviation b.
struct DrawAttrs : LayoutAttrs {
  double a = 0;
  double b = 1;

  static constexpr auto fields() {
    return std::tuple_cat(LayoutAttrs::fields(), std::tuple(value_field("a", &DrawAttrs::a),
                                                            value_field("b", &DrawAttrs::b)));
  }
};

struct RandintAttrs : LayoutAttrs {
  int64_t low = 0;
  int64_t high = 0;

  static constexpr auto fields() {
    return std::tuple_cat(LayoutAttrs::fields(),
                          std::tuple(value_field("low", &RandintAttrs::low),
                                     value_field("high", &RandintAttrs::high)));
  }
};

struct DrawInPlaceAttrs {
  double a = 0;
  double b = 1;

  static constexpr auto fields() {
    return std::tuple(value_field("a", &DrawInPlaceAttrs::a),
                      value_field("b", &DrawInPlaceAttrs::b));
  }
};

extern const OpDef kUniform, kNormal, kRandint, kRandperm;
// (target) -> target
extern const OpDef kUniformFill, kNormalFill;
// (probabilities) -> 0 or 1
extern const OpDef kBernoulli;
// (x) -> x; the kernels throw InvalidArgument unless x holds spreads of normal draws, or in each
// row of its last dim the weights of a multinomial draw. For traces, which have no values to look
// at.
extern const OpDef kCheckedSpreads, kCheckedWeights;

// Returns x after check_values(), or what `op` returns, which checks x when the trace runs. On CUDA
// nothing checks x in a trace. Collective for a global tensor.
template <class Check>
Tensor checked(const Tensor& x, const OpDef& op, Site site, const Check& check_values) {
  if (x.numel() == 0) return x;
  if (thread_state().trace == nullptr) {
    check_values();
    return x;
  }
  return x.device() == DeviceType::kCpu ? dispatch(op, {&x}, site) : x;
}

}  // namespace flow::ops
