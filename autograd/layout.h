// The layouts of gradients.
#pragma once

#include "core/tensor.h"

namespace flow::autograd {

// Returns the gradient in the placement and SBP of a tensor like `target`; partial axes of the
// target become broadcast, their dual. Collective if the layout changes. If the target is local,
// the gradient itself is returned.
Tensor to_layout_of(const Tensor& gradient, const TensorMeta& target);

// Returns a copy of `gradient` with its own memory and the local strides of `target`, so that the
// view ops that made a view of a tensor like `target` also make a view of the copy.
Tensor writable_copy(const Tensor& gradient, MetaPtr target);

// True if no other handle refers to the memory of `tensor`, and no base follows writes to it
// (core/view_link.h), so that writing to it or giving it away is safe.
bool is_exclusive(const Tensor& tensor);

// Gradients of all ones and of all zeros for a tensor like `meta`.
Tensor ones_for(const TensorMeta& meta, Site site);
Tensor zeros_for(const TensorMeta& meta, Site site);

}  // namespace flow::autograd
