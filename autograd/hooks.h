// Hooks beyond Tensor::register_hook: on leaves after accumulation (data parallel buckets), on
// nodes after their rule, and at the end of backward. Hooks of a tensor end with
// remove_hook(handle).
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/tensor.h"

namespace flow {

// Called with the leaf each time backward has added to its grad(): once per backward. The leaf must
// require grad. Returns a number for leaf.remove_hook.
int64_t register_post_accumulate_grad_hook(const Tensor& leaf,
                                           std::function<void(const Tensor&)> hook);

// Called after the gradient rule of the op that made `tensor` has run: `dx` are the gradients of
// the op's inputs, `dy` those of its outputs; undefined ones are zero or unwanted. The tensor must
// be the result of a recorded op. Returns a number for tensor.remove_hook.
int64_t register_node_hook(
    const Tensor& tensor,
    std::function<void(std::span<const Tensor> dx, std::span<const Tensor> dy)> hook);

// Of the backward that is running on this thread, or the outermost of nested ones: no two of a
// thread are equal, so that one can tell whether the last has failed. InvalidArgument outside
// backward.
uint64_t backward_number();

// Called once when the backward that is running on this thread, or the outermost of nested ones,
// has finished without an error. InvalidArgument outside backward.
void call_after_backward(std::function<void()> callback);

}  // namespace flow
