#include "ops/conv/interpolate.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "ops/conv/pool.h"
#include "ops/conv/pool_volume.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/index/index.h"

namespace flow {

namespace {

enum class Mode { kNearest, kNearestExact, kLinear, kCubic };

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

// One dim: its sizes, and the distance between two samples.
struct Axis {
  int64_t in;
  int64_t out;
  double step;
  bool align_corners;

  // Where output i is sampled.
  double position(int64_t i) const {
    const auto at = static_cast<double>(i);
    return align_corners ? step * at : step * (at + 0.5) - 0.5;
  }

  int64_t clamped(int64_t i) const { return std::clamp<int64_t>(i, 0, in - 1); }
};

// What each output reads: y[i] = sum over taps of weights[i] x[positions[i]]; undefined weights are
// 1.
struct Tap {
  std::vector<int64_t> positions;
  std::vector<double> weights;
};

// In float, as PyTorch rounds positions.
Tap nearest_tap(const Axis& axis, bool is_exact) {
  Tap tap;
  const auto step = static_cast<float>(axis.step);
  for (int64_t i = 0; i < axis.out; ++i) {
    const float at = (static_cast<float>(i) + (is_exact ? 0.5F : 0.0F)) * step;
    tap.positions.push_back(axis.clamped(static_cast<int64_t>(std::floor(at))));
  }
  return tap;
}

std::vector<Tap> linear_taps(const Axis& axis) {
  std::vector<Tap> taps(2);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double at = std::max(0.0, axis.position(i));
    const auto left = static_cast<int64_t>(at);
    const double weight = std::clamp(at - static_cast<double>(left), 0.0, 1.0);
    for (int64_t k = 0; k < 2; ++k)
      taps[static_cast<size_t>(k)].positions.push_back(axis.clamped(left + k));
    taps[0].weights.push_back(1 - weight);
    taps[1].weights.push_back(weight);
  }
  return taps;
}

// The weight of a sample at distance d.
double cubic_weight(double d) {
  constexpr double kA = -0.75;
  d = std::abs(d);
  if (d <= 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
}

std::vector<Tap> cubic_taps(const Axis& axis) {
  std::vector<Tap> taps(4);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double at = axis.position(i);
    const double left = std::floor(at);
    for (int64_t k = -1; k <= 2; ++k) {
      Tap& tap = taps[static_cast<size_t>(k + 1)];
      tap.positions.push_back(axis.clamped(static_cast<int64_t>(left) + k));
      tap.weights.push_back(cubic_weight(at - left - static_cast<double>(k)));
    }
  }
  return taps;
}

// The weights of the smoothing kernels at distance d: a tent, and Keys's cubic with a = -1/2.
double smooth_weight(double d, Mode mode) {
  d = std::abs(d);
  if (mode == Mode::kLinear) return std::max(0.0, 1 - d);
  constexpr double kA = -0.5;
  if (d < 1) return ((kA + 2) * d - (kA + 3)) * d * d + 1;
  return d < 2 ? (((d - 5) * d + 8) * d - 4) * kA : 0;
}

// The neighbours that an output reads, beginning with `first`.
struct Window {
  int64_t first;
  std::vector<double> weights;
};

// The kernel of a dim that shrinks is widened by the distance between samples. The weights inside
// the input are scaled so that they sum to 1.
Window smooth_window(const Axis& axis, int64_t i, Mode mode) {
  const double stretch = std::max(1.0, axis.step);
  const double reach = (mode == Mode::kLinear ? 1 : 2) * stretch;
  const double center = axis.step * (static_cast<double>(i) + 0.5);
  Window window{std::max<int64_t>(static_cast<int64_t>(std::floor(center - reach + 0.5)), 0), {}};
  const auto end = std::min(static_cast<int64_t>(std::floor(center + reach + 0.5)), axis.in);
  double sum = 0;
  for (int64_t k = window.first; k < end; ++k) {
    const double distance = (static_cast<double>(k) - center + 0.5) / stretch;
    sum += window.weights.emplace_back(smooth_weight(distance, mode));
  }
  for (double& weight : window.weights)
    weight /= sum;
  return window;
}

// An output with fewer taps than others repeats its last one with weight 0.
std::vector<Tap> smooth_taps(const Axis& axis, Mode mode) {
  std::vector<Window> windows;
  size_t most = 0;
  for (int64_t i = 0; i < axis.out; ++i) {
    windows.push_back(smooth_window(axis, i, mode));
    most = std::max(most, windows.back().weights.size());
  }
  std::vector<Tap> taps(most);
  for (const Window& window : windows) {
    for (size_t k = 0; k < most; ++k) {
      const size_t at = std::min(k, window.weights.size() - 1);
      taps[k].positions.push_back(window.first + static_cast<int64_t>(at));
      taps[k].weights.push_back(at == k ? window.weights[k] : 0);
    }
  }
  return taps;
}

std::vector<Tap> taps_of(const Axis& axis, Mode mode, bool antialias) {
  if (antialias) return smooth_taps(axis, mode);
  switch (mode) {
    case Mode::kNearest:
    case Mode::kNearestExact:
      return {nearest_tap(axis, mode == Mode::kNearestExact)};
    case Mode::kLinear:
      return linear_taps(axis);
    case Mode::kCubic:
      break;
  }
  return cubic_taps(axis);
}

// The options for constants that are combined with x: every rank that holds a part of x holds them
// whole, in the given dtype.
TensorOptions constants_like(const TensorArg& x, DType dtype) {
  TensorOptions options = options_like(x);
  options.dtype = dtype;
  options.sbp = {};
  return options;
}

Tensor sampled(const TensorArg& x, int64_t dim, const std::vector<Tap>& taps) {
  Tensor y;
  for (const Tap& tap : taps) {
    const auto count = static_cast<int64_t>(tap.positions.size());
    const Tensor positions = tensor(tap.positions, {count}, constants_like(x, int64), x.site());
    Tensor part = index_select(x, dim, {positions, x.site()});
    if (!tap.weights.empty()) {
      Shape shape = Shape::filled(x->dim() - dim, 1);
      shape[0] = count;
      const Tensor weights = tensor(tap.weights, shape, constants_like(x, x->dtype()), x.site());
      part = mul({part, x.site()}, weights);
    }
    y = y.defined() ? add({y, x.site()}, part) : part;
  }
  return y;
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
  const int64_t out = scale ? static_cast<int64_t>(std::floor(static_cast<double>(in) * *scale))
                            : pick(options.size, dim - 2);
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

}  // namespace

Tensor interpolate(const TensorArg& x, const InterpolateOptions& options) {
  const bool averages = options.mode == "area" && x->dim() >= 3 && x->dim() <= 5;
  const Mode mode = averages ? Mode::kLinear : parse_mode(x, options.mode);
  check_options(x, options);
  check_antialias(x, options);
  if (averages) return averaged(x, options);
  Tensor y = x;
  for (int64_t dim = x->dim() - 1; dim >= 2; --dim) {
    const int64_t in = x->shape()[dim];
    const std::optional<double> scale = scale_of(options, dim);
    const int64_t out = output_size(x, options, dim);
    Axis axis{in, out, 0, options.align_corners};
    if (options.align_corners) {
      axis.step = out > 1 ? static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    } else if (scale && !options.recompute_scale_factor) {
      axis.step = 1 / *scale;
    } else {
      axis.step = static_cast<double>(in) / static_cast<double>(out);
    }
    if (in == out && (axis.step == 1 || keeps_equal_sizes(mode, options.antialias))) continue;
    y = sampled({y, x.site()}, dim, taps_of(axis, mode, options.antialias));
  }
  return y.is_same(x) ? clone(x) : y;
}

}  // namespace flow
