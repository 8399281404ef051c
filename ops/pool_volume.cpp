// Poolings made of those over planes: a box is pooled over its planes, then over what is left of
// them, as a maximum, a mean and their counts are products of those of each dim.
#include <vector>

#include "core/error.h"
#include "ops/concat.h"
#include "ops/extrema.h"
#include "ops/pool.h"
#include "ops/slice.h"
#include "ops/view.h"
#include "ops/window.h"

namespace flow {

namespace {

using ops::SpatialInts;

// x: (N, C, D, H, W) or (C, D, H, W), pooled by `plane` (B, D, H, W) -> (B, D, H', W') and then by
// `depth` (B, D, M) -> (B, D', M).
template <class Plane, class Depth>
Tensor pool_volume(const char* op, const TensorArg& x, const Plane& plane, const Depth& depth) {
  const int64_t ndim = x->dim();
  if (ndim != 4 && ndim != 5) {
    throw InvalidArgument(str("[", op, "] takes (N, C, D, H, W) or (C, D, H, W); received ",
                              x->meta(), "; add a dim"),
                          x.site());
  }
  const Shape& in = x->shape();
  const int64_t volumes = ndim == 5 ? in[0] * in[1] : in[0];
  const Tensor slices = reshape(x, {volumes, in[ndim - 3], in[ndim - 2], in[ndim - 1]});
  const Tensor flat = plane(TensorArg(slices, x.site()));
  const int64_t height = flat.shape()[2];
  const int64_t width = flat.shape()[3];
  const Tensor lines = reshape({flat, x.site()}, {volumes, in[ndim - 3], height * width});
  const Tensor pooled = depth(TensorArg(lines, x.site()));
  Shape out;
  for (int64_t i = 0; i < ndim - 3; ++i)
    out.push_back(in[i]);
  for (const int64_t size : {pooled.shape()[1], height, width})
    out.push_back(size);
  return reshape({pooled, x.site()}, out);
}

Ints plane_of(const SpatialInts& numbers) {
  return {numbers[1], numbers[2]};
}

// The largest element of each of `out` windows along `dim`, the first of equal ones.
Tensor adaptive_max_along(const TensorArg& x, int64_t dim, int64_t out) {
  const int64_t in = x->shape()[dim];
  if (in == 0) {
    throw InvalidArgument(str("[adaptive_max_pool] dim ", dim, " is empty; received ", x->meta()),
                          x.site());
  }
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < out; ++i) {
    const int64_t begin = i * in / out;
    const int64_t end = ((i + 1) * in + out - 1) / out;
    const Tensor window = narrow(x, dim, begin, end - begin);
    parts.push_back(max({window, x.site()}, dim, {.keepdim = true}).values);
  }
  if (parts.empty()) return narrow(x, dim, 0, 0);
  return cat({parts, x.site()}, dim);
}

Tensor adaptive_max(const char* op, const TensorArg& x, const Ints& size, int64_t num_dims) {
  if (x->dim() != num_dims + 1 && x->dim() != num_dims + 2) {
    throw InvalidArgument(str("[", op, "] takes ", num_dims,
                              " spatial dims behind (N, C) or (C); received ", x->meta()),
                          x.site());
  }
  const SpatialInts out = ops::spatial_numbers(size, num_dims, 0, 1, op, "size");
  Tensor y = x;
  for (int64_t i = num_dims; i-- > 0;) {
    y = adaptive_max_along({y, x.site()}, x->dim() - num_dims + i, out[static_cast<size_t>(i)]);
  }
  return y;
}

}  // namespace

Tensor max_pool3d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options) {
  constexpr const char* kName = "max_pool3d";
  const Ints& steps = options.stride.empty() ? kernel : options.stride;
  const auto window = ops::spatial_numbers(kernel, 3, 1, 1, kName, "kernel");
  const auto stride = ops::spatial_numbers(steps, 3, 1, 1, kName, "stride");
  const auto padding = ops::spatial_numbers(options.padding, 3, 0, 0, kName, "padding");
  const auto dilation = ops::spatial_numbers(options.dilation, 3, 1, 1, kName, "dilation");
  const auto plane = [&](const TensorArg& slices) {
    return max_pool2d(slices, plane_of(window),
                      {.stride = plane_of(stride),
                       .padding = plane_of(padding),
                       .dilation = plane_of(dilation),
                       .ceil_mode = options.ceil_mode});
  };
  const auto depth = [&](const TensorArg& lines) {
    return max_pool2d(lines, {window[0], 1},
                      {.stride = {stride[0], 1},
                       .padding = {padding[0], 0},
                       .dilation = {dilation[0], 1},
                       .ceil_mode = options.ceil_mode});
  };
  return pool_volume(kName, x, plane, depth);
}

Tensor avg_pool3d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options) {
  constexpr const char* kName = "avg_pool3d";
  const Ints& steps = options.stride.empty() ? kernel : options.stride;
  const auto window = ops::spatial_numbers(kernel, 3, 1, 1, kName, "kernel");
  const auto stride = ops::spatial_numbers(steps, 3, 1, 1, kName, "stride");
  const auto padding = ops::spatial_numbers(options.padding, 3, 0, 0, kName, "padding");
  std::optional<int64_t> sums;
  if (options.divisor_override) sums = 1;
  const auto plane = [&](const TensorArg& slices) {
    return avg_pool2d(slices, plane_of(window),
                      {.stride = plane_of(stride),
                       .padding = plane_of(padding),
                       .ceil_mode = options.ceil_mode,
                       .count_include_pad = options.count_include_pad,
                       .divisor_override = sums});
  };
  const auto depth = [&](const TensorArg& lines) {
    return avg_pool2d(lines, {window[0], 1},
                      {.stride = {stride[0], 1},
                       .padding = {padding[0], 0},
                       .ceil_mode = options.ceil_mode,
                       .count_include_pad = options.count_include_pad,
                       .divisor_override = options.divisor_override});
  };
  return pool_volume(kName, x, plane, depth);
}

Tensor adaptive_avg_pool1d(const TensorArg& x, const Ints& size) {
  const auto out = ops::spatial_numbers(size, 1, 0, 1, "adaptive_avg_pool1d", "size");
  if (x->dim() != 2 && x->dim() != 3) {
    throw InvalidArgument(
        str("[adaptive_avg_pool1d] takes (N, C, L) or (C, L); received ", x->meta()), x.site());
  }
  const Tensor plane = unsqueeze(x, -2);
  return squeeze({adaptive_avg_pool2d({plane, x.site()}, {1, out[0]}), x.site()}, -2);
}

Tensor adaptive_avg_pool3d(const TensorArg& x, const Ints& size) {
  constexpr const char* kName = "adaptive_avg_pool3d";
  const auto out = ops::spatial_numbers(size, 3, 0, 1, kName, "size");
  const auto plane = [&](const TensorArg& slices) {
    return adaptive_avg_pool2d(slices, plane_of(out));
  };
  const auto depth = [&](const TensorArg& lines) {
    return adaptive_avg_pool2d(lines, {out[0], lines->shape()[2]});
  };
  return pool_volume(kName, x, plane, depth);
}

Tensor adaptive_max_pool1d(const TensorArg& x, const Ints& size) {
  return adaptive_max("adaptive_max_pool1d", x, size, 1);
}

Tensor adaptive_max_pool2d(const TensorArg& x, const Ints& size) {
  return adaptive_max("adaptive_max_pool2d", x, size, 2);
}

Tensor adaptive_max_pool3d(const TensorArg& x, const Ints& size) {
  return adaptive_max("adaptive_max_pool3d", x, size, 3);
}

}  // namespace flow
