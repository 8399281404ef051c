// Computes the logical shape of a tensor from the parts that the ranks hold.
#pragma once

#include <span>

#include "boxing/layout.h"
#include "core/site.h"
#include "core/tensor.h"

namespace flow::boxing {

// Returns the logical shape whose balanced parts in `layout` are `parts`, one per position of the
// placement. Throws InvalidArgument, with a list of the parts, if there is no such shape.
Shape join_shapes(std::span<const Shape> parts, const Layout& layout);

struct JoinedParts {
  Shape shape;  // logical
  DType dtype = DType::kFloat32;
  bool requires_grad = false;  // whether a part of the placement does
};

// Calls join_shapes on the parts that the ranks of the placement pass, and tells every rank the
// result. Collective over the world; the tensors of ranks outside the placement are ignored. Throws
// InvalidArgument on all ranks if the dtypes differ or no logical shape matches.
JoinedParts join_parts(const Tensor& local, const Layout& layout, Site site);

}  // namespace flow::boxing
