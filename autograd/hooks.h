// Hooks in addition to Tensor::register_hook: on leaves after accumulation (used for data-parallel
// buckets), on nodes after their rule, and at the end of backward. remove_hook(handle) removes a
// tensor's hook.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "core/tensor.h"

namespace flow {

// `hook` is called with the leaf each time backward has added to its grad(), which is once per
// backward. The leaf must require grad. Returns a handle for leaf.remove_hook.
int64_t register_post_accumulate_grad_hook(const Tensor& leaf,
                                           std::function<void(const Tensor&)> hook);

// `hook` is called after the gradient rule of the op that made `tensor` has run. `dx` holds the
// gradients of the op's inputs and `dy` those of its outputs; undefined ones are zero or unwanted.
// The tensor must be the result of a recorded op. Returns a handle for tensor.remove_hook.
int64_t register_node_hook(
    const Tensor& tensor,
    std::function<void(std::span<const Tensor> dx, std::span<const Tensor> dy)> hook);

// The number of the backward that is running on this thread (of the outermost one if they are
// nested). No two backward passes of a thread have the same number, so a caller can detect that an
// earlier one did not finish. Throws InvalidArgument outside backward.
uint64_t backward_number();

// Calls `callback` once, when the backward that is running on this thread (the outermost one if
// they are nested) has finished without an error. Throws InvalidArgument outside backward.
void call_after_backward(std::function<void()> callback);

}  // namespace flow
