// Changing the layout of tensors: to_global, to_local and full (declared in core/tensor.h), and
// what the interpreters use for inputs that must lie otherwise.
#pragma once

#include "core/placement.h"
#include "core/sbp.h"
#include "core/tensor.h"

namespace flow {

// Arguments of Tensor::to_global.
//
// Of a local tensor, each rank of the placement gives its part: along a split axis the parts are
// concatenated (their shapes must be those of the balanced split), along a broadcast axis the data
// of the first rank counts, along a partial axis each part is an addend (or candidate of the
// maximum, minimum). Every rank of the world calls it, as all learn the logical shape; what ranks
// outside the placement pass is not looked at. Memory is shared where no data moves.
//
// Of a global tensor, any layout becomes any other; carried out by the ranks of both placements.
// Equal layouts give the tensor itself.
//
//   auto x = flow::randn({8, 4}).to_global({.placement = p, .sbp = sbp::split(0)});
struct ToGlobalOptions {
  Placement placement = {};  // undefined: as it is (global tensors only)
  NdSbp sbp = {};            // empty: as it is (global tensors only)
  NdSbp grad_sbp = {};       // the layout the gradient is brought to; empty: S to S, P to B
};

// While it lives, an op of this thread whose inputs would have to be redistributed raises
// InvalidArgument instead. to_global stays allowed.
class [[nodiscard]] ForbidImplicitBoxing {
 public:
  ForbidImplicitBoxing();
  ~ForbidImplicitBoxing();
  ForbidImplicitBoxing(const ForbidImplicitBoxing&) = delete;
  ForbidImplicitBoxing& operator=(const ForbidImplicitBoxing&) = delete;

 private:
  bool outer_;
};

namespace boxing {

// The same logical tensor in another layout, unrecorded: how an interpreter brings an input to
// where its op needs it. Collective over the ranks of both placements. Throws InvalidArgument under
// ForbidImplicitBoxing.
Tensor redistribute(const Tensor& tensor, const Placement& placement, const NdSbp& nd_sbp,
                    Site site);

}  // namespace boxing

}  // namespace flow
