// Definitions of norm and logsumexp. var and std are composed of other ops.
#pragma once

#include <tuple>

#include "ops/reduce/reduce_op.h"

namespace flow::ops {

struct VectorNormAttrs {
  Shape dims;
  bool keepdim = false;
  double p = 2;

  static constexpr auto fields() {
    return std::tuple(key_field("dims", &VectorNormAttrs::dims),
                      key_field("keepdim", &VectorNormAttrs::keepdim),
                      key_field("p", &VectorNormAttrs::p));
  }
};

// kLogsumexp takes ReduceAttrs.
extern const OpDef kNorm, kLogsumexp;

}  // namespace flow::ops
