// Resampling along one dim: y = A x for a sparse matrix A with a row for each output.
#include <algorithm>
#include <cmath>

#include "core/dispatch.h"
#include "ops/conv/resample_op.h"

namespace flow::ops {

namespace {

using Axis = ResampleAttrs;
using Mode = SampleMode;

// Where output i is sampled.
double position(const Axis& axis, int64_t i) {
  const auto at = static_cast<double>(i);
  return axis.align_corners ? axis.step * at : axis.step * (at + 0.5) - 0.5;
}

int64_t clamped(const Axis& axis, int64_t i) {
  return std::clamp<int64_t>(i, 0, axis.in - 1);
}

// In float, as PyTorch rounds positions.
Tap nearest_tap(const Axis& axis, bool is_exact) {
  Tap tap;
  tap.positions.reserve(static_cast<size_t>(axis.out));
  const auto step = static_cast<float>(axis.step);
  for (int64_t i = 0; i < axis.out; ++i) {
    const float at = (static_cast<float>(i) + (is_exact ? 0.5F : 0.0F)) * step;
    tap.positions.push_back(clamped(axis, static_cast<int64_t>(std::floor(at))));
  }
  return tap;
}

// Taps with room for all outputs.
std::vector<Tap> empty_taps(const Axis& axis, size_t count) {
  std::vector<Tap> taps(count);
  for (Tap& tap : taps) {
    tap.positions.reserve(static_cast<size_t>(axis.out));
    tap.weights.reserve(static_cast<size_t>(axis.out));
  }
  return taps;
}

std::vector<Tap> linear_taps(const Axis& axis) {
  std::vector<Tap> taps = empty_taps(axis, 2);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double at = std::max(0.0, position(axis, i));
    const auto left = static_cast<int64_t>(at);
    const double weight = std::clamp(at - static_cast<double>(left), 0.0, 1.0);
    for (int64_t k = 0; k < 2; ++k)
      taps[static_cast<size_t>(k)].positions.push_back(clamped(axis, left + k));
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
  std::vector<Tap> taps = empty_taps(axis, 4);
  for (int64_t i = 0; i < axis.out; ++i) {
    const double at = position(axis, i);
    const double left = std::floor(at);
    for (int64_t k = -1; k <= 2; ++k) {
      Tap& tap = taps[static_cast<size_t>(k + 1)];
      tap.positions.push_back(clamped(axis, static_cast<int64_t>(left) + k));
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
  windows.reserve(static_cast<size_t>(axis.out));
  size_t most = 0;
  for (int64_t i = 0; i < axis.out; ++i) {
    windows.push_back(smooth_window(axis, i, mode));
    most = std::max(most, windows.back().weights.size());
  }
  std::vector<Tap> taps = empty_taps(axis, most);
  for (const Window& window : windows) {
    for (size_t k = 0; k < most; ++k) {
      const size_t at = std::min(k, window.weights.size() - 1);
      taps[k].positions.push_back(window.first + static_cast<int64_t>(at));
      taps[k].weights.push_back(at == k ? window.weights[k] : 0);
    }
  }
  return taps;
}

}  // namespace

std::vector<Tap> taps_of(const ResampleAttrs& attrs) {
  if (attrs.antialias) return smooth_taps(attrs, attrs.mode);
  switch (attrs.mode) {
    case Mode::kNearest:
    case Mode::kNearestExact:
      return {nearest_tap(attrs, attrs.mode == Mode::kNearestExact)};
    case Mode::kLinear:
      return linear_taps(attrs);
    case Mode::kCubic:
      break;
  }
  return cubic_taps(attrs);
}

namespace {

Shape resized(const Shape& shape, int64_t dim, int64_t size) {
  Shape result = shape;
  result[dim] = size;
  return result;
}

void infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ResampleAttrs>();
  ctx.check(is_floating(ctx.input(0).dtype), "takes a floating dtype; cast the input");
  ctx.check(ctx.input(0).shape[attrs.dim] == attrs.in, "the dim has not the size ", attrs.in);
  ctx.add_output(resized(ctx.input(0).shape, attrs.dim, attrs.out), ctx.input(0).dtype);
}

void infer_backward(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ResampleAttrs>();
  ctx.check(is_floating(ctx.input(0).dtype), "takes a floating dtype; cast the gradient");
  ctx.check(ctx.input(0).shape[attrs.dim] == attrs.out, "the dim has not the size ", attrs.out);
  ctx.add_output(resized(ctx.input(0).shape, attrs.dim, attrs.in), ctx.input(0).dtype);
}

// A linear map along one dim; lines along it are independent.
void sbp_linear(SbpContext& ctx) {
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (i != ctx.attrs<ResampleAttrs>().dim) ctx.add({sbp::split(i)}, {sbp::split(i)});
  }
  ctx.add({sbp::partial_sum}, {sbp::partial_sum});
}

bool is_nearest(const ResampleAttrs& attrs) {
  return attrs.mode == Mode::kNearest || attrs.mode == Mode::kNearestExact;
}

void add_extrema(SbpContext& ctx) {
  for (const Sbp side : {sbp::partial_max, sbp::partial_min})
    ctx.add({side}, {side});
}

// The nearest modes only move elements.
void sbp(SbpContext& ctx) {
  sbp_linear(ctx);
  if (is_nearest(ctx.attrs<ResampleAttrs>())) add_extrema(ctx);
}

// Gradients are moved too if no two outputs read the same input.
void sbp_backward(SbpContext& ctx) {
  sbp_linear(ctx);
  const auto& attrs = ctx.attrs<ResampleAttrs>();
  const double last = (static_cast<double>(attrs.out) - 0.5) * attrs.step;
  if (is_nearest(attrs) && attrs.step >= 1 && last < static_cast<double>(attrs.in))
    add_extrema(ctx);
}

// y = A x:  dx = A^T dy
template <const OpDef& kAdjoint>
void grad(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  ctx.set(0, dispatch(kAdjoint, {&ctx.dy()}, ctx.attrs<ResampleAttrs>(), Site::here()));
}

}  // namespace

const OpDef kResample{.name = "resample",
                      .attrs = attrs_def<ResampleAttrs>(),
                      .infer = infer,
                      .sbp = sbp,
                      .grad = grad<kResampleBackward>,
                      .autocast = AutocastRule::kFloat32};

const OpDef kResampleBackward{.name = "resample_backward",
                              .attrs = attrs_def<ResampleAttrs>(),
                              .infer = infer_backward,
                              .sbp = sbp_backward,
                              .grad = grad<kResample>};

void register_resample(OpTable& table);

void register_resample(OpTable& table) {
  table.add(kResample);
  table.add(kResampleBackward);
}

}  // namespace flow::ops
