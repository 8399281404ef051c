// From the parts that ranks hold to the logical shape.
#pragma once

#include <span>

#include "boxing/layout.h"
#include "core/site.h"
#include "core/tensor_meta.h"

namespace flow::boxing {

// The logical shape whose balanced parts in `layout` are `parts`, one per position of the
// placement. Throws InvalidArgument listing the parts when there is none.
Shape join_shapes(std::span<const Shape> parts, const Layout& layout);

// join_shapes of what every rank of the world passes; collective over the world. Ranks outside the
// placement pass anything. Throws InvalidArgument on all ranks when dtypes differ or no logical
// shape fits.
Shape logical_shape(const TensorMeta& local, const Layout& layout, Site site);

}  // namespace flow::boxing
