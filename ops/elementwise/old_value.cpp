#include "ops/elementwise/old_value.h"

#include "core/calls/autocast_scope.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"

namespace flow::ops {

const Tensor& write_over(const char* name, const TensorArg& x,
                         std::initializer_list<const Tensor*> others,
                         const std::function<Tensor(const TensorArg&)>& compute) {
  return named(name, x.site(), [&]() -> const Tensor& {
    bool recorded = x->requires_grad();
    for (const Tensor* other : others)
      recorded |= other->requires_grad();
    // In-place forms keep the dtype of their tensor, so autocast does not apply inside them.
    const AutocastScope without_autocast(nullptr);
    const bool keeps_old = recorded && thread_state().grad_enabled;
    const Tensor old = keeps_old ? clone(x) : x.tensor();
    const Tensor result = compute(TensorArg(old, x.site()));
    if (!fits(result.dtype(), x->dtype())) {
      throw_unfit(name, result.dtype(), x->dtype(), x.site());
    }
    if (result.shape() != x->shape()) {
      throw InvalidArgument(str("[", name, "] the result has the shape ", result.shape(),
                                ", and the tensor has ", x->shape()),
                            x.site());
    }
    return x->copy_({result, x.site()});
  });
}

}  // namespace flow::ops
