// From the parts that ranks hold to the logical shape.
#pragma once

#include <span>

#include "boxing/layout.h"
#include "core/site.h"
#include "core/tensor.h"

namespace flow::boxing {

// The logical shape whose balanced parts in `layout` are `parts`, one per position of the
// placement. Throws InvalidArgument listing the parts when there is none.
Shape join_shapes(std::span<const Shape> parts, const Layout& layout);

struct JoinedParts {
  Shape shape;  // logical
  DType dtype = DType::kFloat32;
  bool requires_grad = false;  // of the placement's first rank
};

// join_shapes of what every rank of the world passes, with what else all of them have to know of
// it; collective over the world. Ranks outside the placement pass anything. Throws InvalidArgument
// on all ranks when dtypes differ or no logical shape fits.
JoinedParts join_parts(const Tensor& local, const Layout& layout, Site site);

}  // namespace flow::boxing
