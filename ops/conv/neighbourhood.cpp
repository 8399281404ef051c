#include "ops/conv/neighbourhood.h"

#include <cmath>

#include "core/error.h"
#include "ops/conv/pool.h"
#include "ops/conv/pool_volume.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using AvgPool = Tensor (*)(const TensorArg&, const Ints&, const AvgPoolOptions&);
using MaxPool = Tensor (*)(const TensorArg&, const Ints&, const MaxPoolOptions&);

// As in PyTorch, computes a window's mean times its full size, also if ceil_mode makes the window
// extend past the end.
Tensor lp_pool(const char* name, const TensorArg& x, double norm_type, const Ints& kernel,
               const LpPoolOptions& options, int64_t dims, AvgPool pool, MaxPool max_pool) {
  return ops::named(name, x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (norm_type == 0) {
      throw InvalidArgument(str("[", name, "] norm_type is 0; give another number"), site);
    }
    if (kernel.size() != 1 && kernel.size() != dims) {
      throw InvalidArgument(
          str("[", name, "] kernel_size must be one number, or one for each of the ", dims,
              " spatial dims; received ", kernel.size(), " numbers"),
          site);
    }
    if (std::isinf(norm_type)) {
      const MaxPoolOptions window{.stride = options.stride, .ceil_mode = options.ceil_mode};
      const Tensor size = abs(x);
      if (norm_type > 0) return max_pool({size, site}, kernel, window);
      return neg({max_pool({neg({size, site}), site}, kernel, window), site});
    }
    double cells = 1;
    for (int64_t i = 0; i < dims; ++i)
      cells *= static_cast<double>(kernel.size() == 1 ? kernel[0] : kernel[i]);
    const AvgPoolOptions window{.stride = options.stride, .ceil_mode = options.ceil_mode};
    const Tensor mean = pool({pow(x, norm_type), site}, kernel, window);
    const Tensor size = relu({abs({mean, site}), site});
    const Tensor total = mul({mul({sign({mean, site}), site}, size), site}, cells);
    return pow({total, site}, 1 / norm_type);
  });
}

}  // namespace

Tensor local_response_norm(const TensorArg& x, int64_t size,
                           const LocalResponseNormOptions& options) {
  return ops::named("local_response_norm", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() < 3 || size < 1) {
      throw InvalidArgument(str("[local_response_norm] takes (N, C, …) of at least 3 dims and a ",
                                "positive size; received ", x->meta(), ", size ", size),
                            site);
    }
    // Zeros before and after the channels.
    std::vector<int64_t> padding(static_cast<size_t>(2 * (x->dim() - 1)), 0);
    padding[padding.size() - 2] = size / 2;
    padding[padding.size() - 1] = (size - 1) / 2;
    const Tensor squares = pad({square(x), site}, padding);
    Tensor total;
    for (int64_t i = 0; i < size; ++i) {
      const Tensor shifted = narrow({squares, site}, 1, i, x->size(1));
      total = total.defined() ? add({total, site}, shifted) : shifted;
    }
    const Tensor spread = mul({total, site}, options.alpha / static_cast<double>(size));
    return div(x, pow({add({spread, site}, options.k), site}, options.beta));
  });
}

Tensor lp_pool1d(const TensorArg& x, double norm_type, const Ints& kernel,
                 const LpPoolOptions& options) {
  return lp_pool("lp_pool1d", x, norm_type, kernel, options, 1, avg_pool1d, max_pool1d);
}

Tensor lp_pool2d(const TensorArg& x, double norm_type, const Ints& kernel,
                 const LpPoolOptions& options) {
  return lp_pool("lp_pool2d", x, norm_type, kernel, options, 2, avg_pool2d, max_pool2d);
}

Tensor lp_pool3d(const TensorArg& x, double norm_type, const Ints& kernel,
                 const LpPoolOptions& options) {
  return lp_pool("lp_pool3d", x, norm_type, kernel, options, 3, avg_pool3d, max_pool3d);
}

Tensor channel_shuffle(const TensorArg& x, int64_t groups) {
  return ops::named("channel_shuffle", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (x->dim() < 3 || groups < 1 || x->size(1) % groups != 0) {
      throw InvalidArgument(str("[channel_shuffle] takes (N, C, …) with C a multiple of groups; ",
                                "received ", x->meta(), ", groups ", groups),
                            site);
    }
    Shape parts = x->shape();
    parts[1] = groups;
    parts.insert(2, x->size(1) / groups);
    const Tensor turned = transpose({reshape(x, parts), site}, 1, 2);
    return reshape({turned, site}, x->shape());
  });
}

}  // namespace flow
