// Layout ops on one rank. Tests in tests/boxing cover several ranks.
#include "boxing/redistribute.h"

#include "boxing/redistribute_op.h"
#include "core/dispatch.h"
#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

Tensor on_this_rank(const Tensor& x, Sbp sbp) {
  return x.to_global({.placement = Placement("cpu", {0}), .sbp = sbp});
}

}  // namespace

Samples redistribute_samples() {
  return {
      {"local_to_global",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { on_this_rank(x[0], sbp::split(0)); }},
      {"candidates_to_global",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { on_this_rank(x[0], sbp::partial_max); }},
      {"redistribute",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) {
         on_this_rank(x[0], sbp::broadcast).to_global({.sbp = sbp::split(1)});
       }},
      {"all_reduce_mean",
       {in({5, 2})},
       kFloats,
       [](const Inputs& x) {
         const Tensor addends = on_this_rank(x[0], sbp::partial_sum);
         dispatch(boxing::kAllReduceMean, {&addends}, Site::here());
       }},
      {"to_local",
       {in({5, 2})},
       kAllDTypes,
       [](const Inputs& x) { on_this_rank(x[0], sbp::split(0)).to_local(); }},
  };
}

}  // namespace flow::contract
