// Changes the layout of tensors: to_global, to_local and full (declared in core/tensor.h), and the
// function with which the interpreters redistribute inputs.
#pragma once

#include "core/placement.h"
#include "core/sbp.h"
#include "core/tensor.h"

namespace flow {

// The arguments of Tensor::to_global.
//
// For a local tensor, each rank of the placement contributes its part. Along a split axis the parts
// are concatenated; their shapes must be those of the balanced split. Along a broadcast axis the
// first rank's data replaces the others. Along a partial axis each part is an addend, or a
// candidate for the maximum or minimum. Every rank of the world must call it, because all ranks
// learn the logical shape; the tensors of ranks outside the placement are ignored. If one part
// requires grad, the result does so on all ranks. The result shares memory with the input if no
// data moves.
//
// For a global tensor, any layout can become any other. The ranks of both placements carry out the
// change. If the layouts are equal, the tensor itself is returned.
//
//   auto x = flow::randn({8, 4}).to_global({.placement = p, .sbp = sbp::split(0)});
struct ToGlobalOptions {
  Placement placement = {};  // undefined: unchanged (global tensors only)
  NdSbp sbp = {};            // empty: unchanged (global tensors only)
  NdSbp grad_sbp = {};       // layout to which the gradient is redistributed; empty: S to S, P to B
};

// While an object of this class exists, an op of this thread throws InvalidArgument if its inputs
// would have to be redistributed. Explicit to_global calls are allowed.
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

// Returns the same logical tensor in another layout without recording the change for autograd;
// interpreters use it for inputs that must be redistributed. Collective over the ranks of both
// placements. Throws InvalidArgument under ForbidImplicitBoxing.
Tensor redistribute(const Tensor& tensor, const Placement& placement, const NdSbp& nd_sbp,
                    Site site);

}  // namespace boxing

}  // namespace flow
