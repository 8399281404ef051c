#include "ops/conv/interpolate.h"

#include <cmath>
#include <optional>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/conv/pool.h"
#include "ops/conv/pool_volume.h"
#include "ops/conv/resample_op.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"
#include "ops/named_errors.h"

namespace flow {

namespace {

using Mode = ops::SampleMode;
using ops::ResampleAttrs;
using ops::Tap;

Mode parse_mode(const TensorArg& x, const std::string& name) {
  if (name == "nearest") return Mode::kNearest;
  if (name == "nearest-exact") return Mode::kNearestExact;
  const std::vector<std::string> by_dims{"linear", "bilinear", "trilinear"};
  const bool has_sizes = x->dim() >= 3 && x->dim() <= 5;
  if (has_sizes && name == by_dims[static_cast<size_t>(x->dim() - 3)]) return Mode::kLinear;
  if (name == "bicubic" && x->dim() == 4) return Mode::kCubic;
  throw InvalidArgument(
      str("[interpolate] mode '", name, "' does not fit a tensor of shape ", x->shape(),
          "; use nearest, nearest-exact, area, linear (N, C, L), bilinear or bicubic "
          "(N, C, H, W), trilinear (N, C, D, H, W)"),
      x.site());
}

// The options for constants that are combined with x: every rank that holds a part of x holds them
// whole, in the given dtype.
TensorOptions constants_like(const TensorArg& x, DType dtype) {
  TensorOptions options = options_like(x);
  options.dtype = dtype;
  options.sbp = {};
  return options;
}

// Elements that are read at once, tap by tap: for integers, and for devices without a kernel.
Tensor sum_of_taps(const TensorArg& x, const ResampleAttrs& attrs) {
  Tensor y;
  for (const Tap& tap : ops::taps_of(attrs)) {
    const auto count = static_cast<int64_t>(tap.positions.size());
    const Tensor positions = tensor(tap.positions, {count}, constants_like(x, int64), x.site());
    Tensor part = index_select(x, attrs.dim, {positions, x.site()});
    if (!tap.weights.empty()) {
      Shape shape = Shape::filled(x->dim() - attrs.dim, 1);
      shape[0] = count;
      const Tensor weights = tensor(tap.weights, shape, constants_like(x, x->dtype()), x.site());
      part = mul({part, x.site()}, weights);
    }
    y = y.defined() ? add({y, x.site()}, part) : part;
  }
  return y;
}

Tensor sampled(const TensorArg& x, const ResampleAttrs& attrs) {
  const bool has_kernel = x->device() == DeviceType::kCpu && is_floating(x->dtype());
  if (!has_kernel) return sum_of_taps(x, attrs);
  return dispatch(ops::kResample, {&x.tensor()}, attrs, x.site());
}

// Returns the number for spatial dim i: the only one, or the i-th of several.
template <class List>
auto pick(const List& list, int64_t i) {
  const auto size = static_cast<int64_t>(list.size());
  return *(list.begin() + (size == 1 ? 0 : i));
}

void check_options(const TensorArg& x, const InterpolateOptions& options) {
  const int64_t spatial = x->dim() - 2;
  const auto scales = static_cast<int64_t>(options.scale_factor.size());
  const int64_t given = options.size.size() + scales;
  bool is_valid = spatial >= 1 && spatial <= 3 && (given == 1 || given == spatial) &&
                  (options.size.empty() || scales == 0);
  for (const int64_t size : options.size)
    is_valid &= size > 0;
  for (const double scale : options.scale_factor)
    is_valid &= scale > 0;
  if (!is_valid) {
    throw InvalidArgument(str("[interpolate] give either size or scale_factor, positive, one "
                              "number or one for each spatial dim of (N, C, ...); received ",
                              x->meta()),
                          x.site());
  }
  const bool is_nearest = options.mode == "nearest" || options.mode == "nearest-exact";
  if (!is_nearest && !is_floating(x->dtype())) {
    throw InvalidArgument(str("[interpolate] mode '", options.mode, "' needs a floating dtype; ",
                              "received ", x->meta(), "; cast first"),
                          x.site());
  }
  if (((is_nearest || options.mode == "area") && options.align_corners) ||
      (options.recompute_scale_factor && !options.size.empty())) {
    throw InvalidArgument(str("[interpolate] align_corners has no meaning for mode '", options.mode,
                              "', recompute_scale_factor none for a given size; leave them out"),
                          x.site());
  }
}

void check_antialias(const TensorArg& x, const InterpolateOptions& options) {
  if (!options.antialias || options.mode == "bilinear" || options.mode == "bicubic") return;
  throw InvalidArgument(str("[interpolate] antialias is for modes bilinear and bicubic; received '",
                            options.mode, "'; leave it out"),
                        x.site());
}

std::optional<double> scale_of(const InterpolateOptions& options, int64_t dim) {
  if (options.scale_factor.empty()) return std::nullopt;
  return pick(options.scale_factor, dim - 2);
}

int64_t output_size(const TensorArg& x, const InterpolateOptions& options, int64_t dim) {
  const int64_t in = x->shape()[dim];
  const std::optional<double> scale = scale_of(options, dim);
  constexpr double kMost = 1e18;  // a larger double may be no int64_t
  const double scaled = scale ? std::floor(static_cast<double>(in) * *scale) : 0;
  if (scaled > kMost) {
    throw InvalidArgument(str("[interpolate] dim ", dim, " of size ", in, " would get size ",
                              scaled, "; give a smaller scale_factor"),
                          x.site());
  }
  const int64_t out = scale ? static_cast<int64_t>(scaled) : pick(options.size, dim - 2);
  if (in == 0 || out == 0) {
    throw InvalidArgument(str("[interpolate] dim ", dim, " of size ", in, " would get size ", out,
                              "; both must be positive"),
                          x.site());
  }
  return out;
}

// Means over the part of the input that each output covers.
Tensor averaged(const TensorArg& x, const InterpolateOptions& options) {
  std::vector<int64_t> size;
  for (int64_t dim = 2; dim < x->dim(); ++dim)
    size.push_back(output_size(x, options, dim));
  if (x->dim() == 3) return adaptive_avg_pool1d(x, size);
  return x->dim() == 4 ? adaptive_avg_pool2d(x, size) : adaptive_avg_pool3d(x, size);
}

// True if a dim whose size does not change is copied, also if its factor is not 1.
bool keeps_equal_sizes(Mode mode, bool antialias) {
  return mode == Mode::kLinear || antialias;
}

// Resamples one spatial dim after the other, beginning with the last.
Tensor resampled(const TensorArg& x, const InterpolateOptions& options, Mode mode) {
  Tensor y = x;
  for (int64_t dim = x->dim() - 1; dim >= 2; --dim) {
    const int64_t in = x->shape()[dim];
    const std::optional<double> scale = scale_of(options, dim);
    const int64_t out = output_size(x, options, dim);
    ResampleAttrs axis{.dim = dim,
                       .in = in,
                       .out = out,
                       .mode = mode,
                       .align_corners = options.align_corners,
                       .antialias = options.antialias};
    if (options.align_corners) {
      axis.step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    } else if (scale && !options.recompute_scale_factor) {
      axis.step = 1 / *scale;
    } else {
      axis.step = static_cast<double>(in) / static_cast<double>(out);
    }
    if (in == out && (axis.step == 1 || keeps_equal_sizes(mode, options.antialias))) continue;
    y = sampled({y, x.site()}, axis);
  }
  return y.is_same(x) ? clone(x) : y;
}

}  // namespace

Tensor interpolate(const TensorArg& x, const InterpolateOptions& options) {
  const bool averages = options.mode == "area" && x->dim() >= 3 && x->dim() <= 5;
  const Mode mode = averages ? Mode::kLinear : parse_mode(x, options.mode);
  check_options(x, options);
  check_antialias(x, options);
  return ops::named("interpolate", x.site(), [&]() -> Tensor {
    return averages ? averaged(x, options) : resampled(x, options, mode);
  });
}

}  // namespace flow
