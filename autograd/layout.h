// Gradients and the layouts of the tensors they belong to.
#pragma once

#include "core/tensor.h"

namespace flow::autograd {

// The gradient in the placement and SBP of a tensor like `target`; where the target is partial, in
// the dual, broadcast. Collective when the layout changes; of a local target: the gradient itself.
Tensor to_layout_of(const Tensor& gradient, const TensorMeta& target);

// A copy of `gradient` in memory of its own, laid out like `target` locally too, so that view ops
// which made a view of a tensor like `target` make one of it.
Tensor writable_copy(const Tensor& gradient, MetaPtr target);

// Whether nobody else can see the memory of `tensor`, the only handle of its own: writing to it or
// handing it on is safe.
bool is_exclusive(const Tensor& tensor);

// Gradients of value 1 and 0 for a tensor like `meta`.
Tensor ones_for(const TensorMeta& meta, Site site);
Tensor zeros_for(const TensorMeta& meta, Site site);

}  // namespace flow::autograd
