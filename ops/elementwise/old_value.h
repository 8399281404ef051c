// Gradients of in-place forms that read the value that was overwritten.
#pragma once

#include <functional>
#include <initializer_list>

#include "core/context.h"
#include "core/op.h"
#include "ops/creation/copy.h"

namespace flow::ops {

// Returns whether the gradient of op(inputs…), written over its first input, would read the old
// value of that input. The form then computes from a copy of it, as PyTorch does.
inline bool reads_old_value(const OpDef& op, std::initializer_list<const Tensor*> inputs) {
  if ((op.saved_inputs & 1) == 0 || !thread_state().grad_enabled) return false;
  for (const Tensor* input : inputs) {
    if (input->requires_grad()) return true;
  }
  return false;
}

// Writes compute(copy of x) over x, so that gradients read the copy.
template <class Compute>
const Tensor& write_from_copy(const TensorArg& x, const Compute& compute) {
  const Tensor old = clone(x);
  return x->copy_({compute(TensorArg(old, x.site())), x.site()});
}

// Writes compute(x) over x for the form `name`, such as "acos_". Gradients read a copy of the old
// value if x or one of `others` requires one. Throws InvalidArgument if the result has another
// shape than x or does not fit into its dtype.
const Tensor& write_over(const char* name, const TensorArg& x,
                         std::initializer_list<const Tensor*> others,
                         const std::function<Tensor(const TensorArg&)>& compute);

}  // namespace flow::ops
