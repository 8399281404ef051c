// Op definitions of discrete Fourier transforms along one dim, for their kernels. A complex tensor
// is a real one of float32 or float64 whose last dim, of size 2, holds real and imaginary parts.
#pragma once

#include <cstdint>

#include "core/op.h"

namespace flow::ops {

// y[k] = scale sum over j of x[j] exp(∓2 π i j k / points); the sign is + if `inverse`.
struct FftAttrs {
  int64_t dim = 0;
  int64_t points = 0;
  bool inverse = false;
  double scale = 1;
  // Only for real signals: a factor of the frequencies that stand for two, which are all but 0 and
  // points / 2.
  double paired = 1;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &FftAttrs::dim), key_field("points", &FftAttrs::points),
                      key_field("inverse", &FftAttrs::inverse),
                      key_field("scale", &FftAttrs::scale), key_field("paired", &FftAttrs::paired));
  }
};

// Complex (…, points, …, 2) -> the same shape.
extern const OpDef kFftC2c;
// Real (…, points, …) -> complex (…, points / 2 + 1, …, 2): the frequencies that are not conjugates
// of others.
extern const OpDef kFftR2c;
// Complex (…, points / 2 + 1, …, 2) -> real (…, points, …): the transform of the frequencies and of
// their conjugates. The imaginary parts of frequencies 0 and points / 2 are not read.
extern const OpDef kFftC2r;
// The sums of squares of window weights that istft divides by -> the same. Throws InvalidArgument
// if one of them is 0.
extern const OpDef kCheckedOverlap;

}  // namespace flow::ops
