#include "ops/norm/instance_norm.h"

#include "core/error.h"
#include "ops/elementwise/binary.h"
#include "ops/named_errors.h"
#include "ops/norm/batch_norm.h"
#include "ops/norm/norm.h"
#include "ops/norm/running_statistics.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// running = (1 - momentum) running + momentum * mean of `values` (N, C) over the samples.
void update(const Tensor& running, const Tensor& values, double momentum, Site site) {
  const Tensor fresh = mean({values, site}, 0);
  running.mul_(1 - momentum, site);
  running.add_({fresh.to(running.dtype()), site}, {.alpha = momentum});
}

}  // namespace

Tensor instance_norm(const TensorArg& x, const InstanceNormOptions& options) {
  return ops::named("instance_norm", x.site(), [&]() -> Tensor {
    const Tensor none;
    return instance_norm(x, {none, x.site()}, {none, x.site()}, options);
  });
}

Tensor instance_norm(const TensorArg& x, const TensorArg& running_mean,
                     const TensorArg& running_var, const InstanceNormOptions& options) {
  return ops::named("instance_norm", x.site(), [&]() -> Tensor {
    ops::check_statistics("instance_norm", x, running_mean, running_var);
    const bool has_statistics = running_mean.defined();
    if (!options.use_input_stats) {
      if (!has_statistics) {
        throw InvalidArgument(
            "[instance_norm] use_input_stats is false and no running statistics are given; give "
            "them",
            x.site());
      }
      return batch_norm(x, running_mean, running_var,
                        {.weight = options.weight, .bias = options.bias, .eps = options.eps});
    }
    const int64_t channels = x->size(1);
    const Shape rows{x->size(0), channels, -1};
    if (x->numel() <= x->size(0) * channels && x->numel() > 0) {
      throw InvalidArgument(
          str("[instance_norm] each channel of a sample needs more than one element; received ",
              x->meta(), "; use larger samples"),
          x.site());
    }
    if (x->numel() == 0) return reshape(x, x->shape());
    if (has_statistics) {
      const Tensor values = reshape({x->detach(), x.site()}, rows);
      update(running_mean, mean({values, x.site()}, 2), options.momentum, x.site());
      update(running_var, var({values, x.site()}, 2), options.momentum, x.site());
    }
    return group_norm(x, channels,
                      {.weight = options.weight, .bias = options.bias, .eps = options.eps});
  });
}

}  // namespace flow
