// The number of writes to a tensor's memory.
#pragma once

#include <cstdint>

#include "core/context.h"
#include "core/dispatch.h"
#include "core/tensor_impl.h"

namespace flow::autograd {

// While a trace runs, writes to a tensor from outside are recorded and change nothing yet, so the
// trace counts them.
inline uint32_t current_version(const Tensor& tensor) {
  const ThreadState& state = thread_state();
  if (state.trace == nullptr) [[likely]]
    return tensor.impl().version();
  return state.interpreter->version_of(tensor);
}

}  // namespace flow::autograd
