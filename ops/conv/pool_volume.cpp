#include "ops/conv/pool_volume.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "ops/conv/window.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/shape/view.h"

// A volume is pooled over its planes and then over the depth that is left, because a maximum, a
// mean and their counts over a box are products of those over each dim.
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

// The same as pool_volume of maxima, with their positions in the box: d * H * W + h * W + w. The
// first plane among equal maxima contains the first of equal elements, because planes come before
// rows.
template <class Plane, class Depth>
ValuesIndices max_pool_volume(const char* op, const TensorArg& x, const Plane& plane,
                              const Depth& depth) {
  const Site site = x.site();
  Tensor in_plane;  // (volumes, D, M): position of the maximum in each plane
  Tensor indices;   // (volumes, D', M)
  const auto planes = [&](const TensorArg& slices) {
    ValuesIndices found = plane(slices);
    in_plane = std::move(found.indices);
    return std::move(found.values);
  };
  const auto lines = [&](const TensorArg& columns) {
    ValuesIndices found = depth(columns);
    const Shape& shape = columns->shape();
    const int64_t width = std::max<int64_t>(shape[2], 1);
    const Tensor d =
        div({clamp({found.indices, site}, {.min = 0}), site}, width, {.rounding_mode = "floor"});
    const Tensor of_planes = reshape({in_plane, site}, shape);
    const int64_t ndim = x->dim();
    const int64_t area = x->shape()[ndim - 2] * x->shape()[ndim - 1];
    indices = add({gather({of_planes, site}, 1, {d, site}), site}, {mul({d, site}, area), site});
    return std::move(found.values);
  };
  Tensor values = pool_volume(op, x, planes, lines);
  return {values, reshape({indices, site}, values.shape())};
}

MaxPoolOptions plane_options(const MaxPoolOptions& options, const Ints& kernel, const char* op) {
  const Ints& steps = options.stride.empty() ? kernel : options.stride;
  return {.stride = plane_of(ops::spatial_numbers(steps, 3, 1, 1, op, "stride")),
          .padding = plane_of(ops::spatial_numbers(options.padding, 3, 0, 0, op, "padding")),
          .dilation = plane_of(ops::spatial_numbers(options.dilation, 3, 1, 1, op, "dilation")),
          .ceil_mode = options.ceil_mode};
}

MaxPoolOptions depth_options(const MaxPoolOptions& options, const Ints& kernel, const char* op) {
  const Ints& steps = options.stride.empty() ? kernel : options.stride;
  return {.stride = {ops::spatial_numbers(steps, 3, 1, 1, op, "stride")[0], 1},
          .padding = {ops::spatial_numbers(options.padding, 3, 0, 0, op, "padding")[0], 0},
          .dilation = {ops::spatial_numbers(options.dilation, 3, 1, 1, op, "dilation")[0], 1},
          .ceil_mode = options.ceil_mode};
}

}  // namespace

Tensor max_pool3d(const TensorArg& x, const Ints& kernel, const MaxPoolOptions& options) {
  return ops::named("max_pool3d", x.site(), [&]() -> Tensor {
    constexpr const char* kName = "max_pool3d";
    const SpatialInts window = ops::spatial_numbers(kernel, 3, 1, 1, kName, "kernel");
    const MaxPoolOptions in_plane = plane_options(options, kernel, kName);
    const MaxPoolOptions along = depth_options(options, kernel, kName);
    const auto plane = [&](const TensorArg& slices) {
      return max_pool2d(slices, plane_of(window), in_plane);
    };
    const auto depth = [&](const TensorArg& lines) {
      return max_pool2d(lines, {window[0], 1}, along);
    };
    return pool_volume(kName, x, plane, depth);
  });
}

ValuesIndices max_pool3d_with_indices(const TensorArg& x, const Ints& kernel,
                                      const MaxPoolOptions& options) {
  return ops::named("max_pool3d_with_indices", x.site(), [&]() -> ValuesIndices {
    constexpr const char* kName = "max_pool3d_with_indices";
    const SpatialInts window = ops::spatial_numbers(kernel, 3, 1, 1, kName, "kernel");
    const MaxPoolOptions in_plane = plane_options(options, kernel, kName);
    const MaxPoolOptions along = depth_options(options, kernel, kName);
    const auto plane = [&](const TensorArg& slices) {
      return max_pool2d_with_indices(slices, plane_of(window), in_plane);
    };
    const auto depth = [&](const TensorArg& lines) {
      return max_pool2d_with_indices(lines, {window[0], 1}, along);
    };
    return max_pool_volume(kName, x, plane, depth);
  });
}

Tensor avg_pool3d(const TensorArg& x, const Ints& kernel, const AvgPoolOptions& options) {
  return ops::named("avg_pool3d", x.site(), [&]() -> Tensor {
    constexpr const char* kName = "avg_pool3d";
    if (!is_floating(x->dtype())) {  // integers would be rounded twice
      throw InvalidArgument(
          str("[avg_pool3d] takes floating dtypes; received ", x->meta(), "; cast the input"),
          x.site());
    }
    const Ints& steps = options.stride.empty() ? kernel : options.stride;
    const auto window = ops::spatial_numbers(kernel, 3, 1, 1, kName, "kernel");
    const auto stride = ops::spatial_numbers(steps, 3, 1, 1, kName, "stride");
    const auto padding = ops::spatial_numbers(options.padding, 3, 0, 0, kName, "padding");
    std::optional<int64_t> sums;
    if (options.divisor_override) sums = 1;
    // The sum of a plane may be larger than any number of 16 bits.
    const Tensor volume = sums ? ops::widened(x) : x.tensor();
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
    const Tensor pooled = pool_volume(kName, {volume, x.site()}, plane, depth);
    return cast({pooled, x.site()}, x->dtype());
  });
}

Tensor adaptive_avg_pool3d(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_avg_pool3d", x.site(), [&]() -> Tensor {
    constexpr const char* kName = "adaptive_avg_pool3d";
    const auto out = ops::spatial_numbers(size, 3, 0, 1, kName, "size");
    const auto plane = [&](const TensorArg& slices) {
      return adaptive_avg_pool2d(slices, plane_of(out));
    };
    const auto depth = [&](const TensorArg& lines) {
      return adaptive_avg_pool2d(lines, {out[0], lines->shape()[2]});
    };
    return pool_volume(kName, x, plane, depth);
  });
}

Tensor adaptive_max_pool3d(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_max_pool3d", x.site(), [&]() -> Tensor {
    constexpr const char* kName = "adaptive_max_pool3d";
    const SpatialInts out = ops::spatial_numbers(size, 3, 0, 1, kName, "size");
    const auto plane = [&](const TensorArg& slices) {
      return adaptive_max_pool2d(slices, plane_of(out));
    };
    const auto depth = [&](const TensorArg& lines) {
      return adaptive_max_pool2d(lines, {out[0], lines->shape()[2]});
    };
    return pool_volume(kName, x, plane, depth);
  });
}

ValuesIndices adaptive_max_pool3d_with_indices(const TensorArg& x, const Ints& size) {
  return ops::named("adaptive_max_pool3d_with_indices", x.site(), [&]() -> ValuesIndices {
    constexpr const char* kName = "adaptive_max_pool3d_with_indices";
    const SpatialInts out = ops::spatial_numbers(size, 3, 0, 1, kName, "size");
    const auto plane = [&](const TensorArg& slices) {
      return adaptive_max_pool2d_with_indices(slices, plane_of(out));
    };
    const auto depth = [&](const TensorArg& lines) {
      return adaptive_max_pool2d_with_indices(lines, {out[0], lines->shape()[2]});
    };
    return max_pool_volume(kName, x, plane, depth);
  });
}

}  // namespace flow
