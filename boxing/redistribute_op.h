// The ops that change layouts. Each call is one node of autograd and of a trace.
#pragma once

#include <tuple>

#include "core/attrs.h"
#include "core/op.h"

namespace flow::boxing {

struct RedistributeAttrs {
  Placement placement = {};
  NdSbp nd_sbp = {};
  NdSbp grad_sbp = {};

  static constexpr auto fields() {
    return std::tuple(key_field("placement", &RedistributeAttrs::placement),
                      key_field("nd_sbp", &RedistributeAttrs::nd_sbp),
                      key_field("grad_sbp", &RedistributeAttrs::grad_sbp));
  }
};

struct LocalToGlobalAttrs {
  Shape shape = {};  // logical
  Placement placement = {};
  NdSbp nd_sbp = {};
  // True if the first rank's data must replace the others along broadcast axes; false if the parts
  // are known to be equal.
  bool sends_first = true;

  static constexpr auto fields() {
    return std::tuple(key_field("shape", &LocalToGlobalAttrs::shape),
                      key_field("placement", &LocalToGlobalAttrs::placement),
                      key_field("nd_sbp", &LocalToGlobalAttrs::nd_sbp),
                      key_field("sends_first", &LocalToGlobalAttrs::sends_first));
  }
};

// (global) -> global
extern const OpDef kRedistribute;
// (global) -> global: the mean of the addends of a partial sum, on every rank. Data parallelism
// averages gradients with it (nn/parallel): the division is part of the transfer.
extern const OpDef kAllReduceMean;
// (local) -> global
extern const OpDef kLocalToGlobal;
// Like kLocalToGlobal, for parts that are candidates for a maximum or minimum. A separate op,
// because its gradient needs the values.
extern const OpDef kCandidatesToGlobal;
// (global) -> local: returns this rank's part
extern const OpDef kToLocal;

}  // namespace flow::boxing
