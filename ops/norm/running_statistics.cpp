#include "ops/norm/running_statistics.h"

#include "core/error.h"

namespace flow::ops {

void check_statistics(const char* op, const TensorArg& x, const Tensor& running_mean,
                      const Tensor& running_var) {
  if (x->dim() < 2 || !is_floating(x->dtype())) {
    throw InvalidArgument(
        str("[", op, "] takes (N, C, ...) of a floating dtype; received ", x->meta()), x.site());
  }
  if (running_mean.defined() != running_var.defined()) {
    throw InvalidArgument(
        str("[", op, "] only one of running_mean and running_var is defined; give both or none"),
        x.site());
  }
  for (const Tensor* statistic : {&running_mean, &running_var}) {
    if (!statistic->defined()) continue;
    if (!(statistic->shape() == Shape{x->size(1)}) || !is_floating(statistic->dtype())) {
      throw InvalidArgument(str("[", op, "] running statistics must have shape (", x->size(1),
                                ",), one element for each channel, and a floating dtype; received ",
                                statistic->meta()),
                            x.site());
    }
  }
}

}  // namespace flow::ops
