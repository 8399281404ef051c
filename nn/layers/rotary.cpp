#include "nn/layers/rotary.h"

#include <cmath>

#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/trigonometry.h"
#include "ops/elementwise/unary.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::nn {

RotaryEmbedding::RotaryEmbedding(int64_t dim, RotaryEmbeddingOptions options, Site site)
    : dim_(dim), options_(options) {
  const SiteScope scope(site);
  if (dim <= 0 || dim % 2 != 0) {
    throw InvalidArgument(str("[RotaryEmbedding] features are rotated in pairs; received dim ", dim,
                              "; give a positive even number"));
  }
  set_extra_repr(str("dim=", dim, ", base=", options_.base,
                     ", interleaved=", options_.interleaved ? "True" : "False"));
}

Tensor RotaryEmbedding::forward(const Tensor& x, int64_t offset) {
  const int64_t length = x.dim() < 2 ? 0 : x.size(-2);
  return rotated(x, arange(offset, offset + length, 1, ops::whole_like(x, int64)));
}

Tensor RotaryEmbedding::forward(const Tensor& x, const Tensor& positions) {
  return rotated(x, positions);
}

Tensor RotaryEmbedding::rotated(const Tensor& x, const Tensor& positions) const {
  if (x.dim() < 2 || x.size(-1) != dim_ || !is_floating(x.dtype())) {
    throw InvalidArgument(
        str("[RotaryEmbedding] takes a floating tensor (..., T, ", dim_, "); received ", x.meta()));
  }
  if (positions.dim() != 1 || positions.size(0) != x.size(-2) || !is_integral(positions.dtype())) {
    throw InvalidArgument(str("[RotaryEmbedding] positions are ", x.size(-2),
                              " integers; received ", positions.meta()));
  }
  // Angles of far positions need more digits than 16 bits have.
  const DType dtype = is_half(x.dtype()) ? float32 : x.dtype();
  const int64_t pairs = dim_ / 2;
  const Tensor exponents =
      arange(pairs, ops::whole_like(x, dtype)) * (-2.0 / static_cast<double>(dim_));
  const Tensor frequencies = exp(exponents * std::log(options_.base));
  const Tensor angles = unsqueeze(cast(positions, dtype), 1) * frequencies;  // (T, pairs)
  const Tensor cosines = cast(cos(angles), x.dtype()), sines = cast(sin(angles), x.dtype());
  if (options_.interleaved) {
    const Tensor both = x.unflatten(-1, {pairs, 2});
    const Tensor a = select(both, -1, 0), b = select(both, -1, 1);
    return flatten(stack({a * cosines - b * sines, a * sines + b * cosines}, -1), -2);
  }
  const Tensor a = narrow(x, -1, 0, pairs), b = narrow(x, -1, pairs, pairs);
  return cat({a * cosines - b * sines, a * sines + b * cosines}, -1);
}

}  // namespace flow::nn
