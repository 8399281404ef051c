// Op definitions of resampling along one dim, for kernels and interpolate.
#pragma once

#include <tuple>
#include <vector>

#include "core/op.h"

namespace flow::ops {

enum class SampleMode : int64_t { kNearest, kNearestExact, kLinear, kCubic };

// One dim: its logical sizes, and how outputs are sampled.
struct ResampleAttrs {
  int64_t dim = 0;
  int64_t in = 1;
  int64_t out = 1;
  SampleMode mode = SampleMode::kNearest;
  double step = 1;  // the distance between two samples
  bool align_corners = false;
  bool antialias = false;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &ResampleAttrs::dim), key_field("in", &ResampleAttrs::in),
                      key_field("out", &ResampleAttrs::out),
                      key_field("mode", &ResampleAttrs::mode),
                      key_field("step", &ResampleAttrs::step),
                      key_field("align_corners", &ResampleAttrs::align_corners),
                      key_field("antialias", &ResampleAttrs::antialias));
  }
};

// What each output reads: y[i] = sum over taps of weights[i] x[positions[i]]; undefined weights are
// 1.
struct Tap {
  std::vector<int64_t> positions;
  std::vector<double> weights;
};

std::vector<Tap> taps_of(const ResampleAttrs& attrs);

// x -> y, a linear map along one dim, and dy -> dx, its adjoint.
extern const OpDef kResample;
extern const OpDef kResampleBackward;

}  // namespace flow::ops
