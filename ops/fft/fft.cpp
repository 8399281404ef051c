#include "ops/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/default_dtype.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/fft/fft_op.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow::fft {

namespace {

// The factor of a transform of n points in the direction in which `norm` gives it the factor 1 / n
// if its word is `divided`.
double scale_of(const std::string& norm, int64_t n, bool is_inverse, const char* function) {
  const auto points = static_cast<double>(n);
  if (norm == "ortho") return 1 / std::sqrt(points);
  if (norm == "backward") return is_inverse ? 1 / points : 1;
  if (norm == "forward") return is_inverse ? 1 : 1 / points;
  throw InvalidArgument(
      str("[", function, "] norm is \"", norm, "\"; give \"backward\", \"ortho\" or \"forward\""));
}

// The dims of the numbers of x; those of complex ones do not count the two parts.
int64_t num_dims(const Tensor& x, bool is_complex, const char* function) {
  const int64_t count = x.dim() - (is_complex ? 1 : 0);
  if (is_complex && (x.dim() < 1 || x.shape().back() != 2)) {
    throw InvalidArgument(str("[", function,
                              "] takes complex numbers as real tensors (…, 2); "
                              "received ",
                              x.meta(), "; fft::complex makes them of real and imaginary parts"));
  }
  if (count < 1) {
    throw InvalidArgument(
        str("[", function, "] needs at least one dim of numbers; received ", x.meta()));
  }
  return count;
}

// x cut or continued with zeros to `size` elements along `dim`.
Tensor resized(const Tensor& x, int64_t dim, int64_t size) {
  const int64_t own = x.size(dim);
  if (own == size) return x;
  if (own > size) return narrow(x, dim, 0, size);
  std::vector<int64_t> padding(static_cast<size_t>(2 * (x.dim() - dim)), 0);
  padding.back() = size - own;
  return pad(x, padding);
}

// One transform along a dim >= 0 of x.
struct Step {
  const OpDef& op;
  const char* function;
  int64_t dim;
  int64_t points;
  bool inverse;  // the sign of the exponent is +
  double scale;
};

Tensor transform(const Tensor& x, const Step& step, Site site) {
  if (step.points < 1) {
    throw InvalidArgument(str("[", step.function, "] needs at least one point along dim ", step.dim,
                              "; received ", step.points, " for ", x.meta()));
  }
  const bool is_half = &step.op == &ops::kFftC2r;
  const Tensor own = resized(x, step.dim, is_half ? step.points / 2 + 1 : step.points);
  return dispatch(
      step.op, {&own},
      ops::FftAttrs{
          .dim = step.dim, .points = step.points, .inverse = step.inverse, .scale = step.scale},
      site);
}

// A function of one dim. `inverse` is the sign, `divides` the direction that norm speaks of.
Tensor along_one(const OpDef& op, const char* function, const TensorArg& x,
                 const FftOptions& options, bool inverse, bool divides) {
  return ops::named(function, x.site(), [&]() -> Tensor {
    const bool is_complex = &op != &ops::kFftR2c;
    const Tensor signal = ops::as_floating(x);
    const int64_t dim =
        normalize_dim(options.dim, num_dims(signal, is_complex, function), function);
    const int64_t size = signal.size(dim);
    const int64_t points = options.n.value_or(&op == &ops::kFftC2r ? 2 * (size - 1) : size);
    const double scale = scale_of(options.norm, std::max<int64_t>(1, points), divides, function);
    return transform(signal, {op, function, dim, points, inverse, scale}, x.site());
  });
}

struct Extents {
  std::vector<int64_t> dims, points;
};

// The dims of a function of several dims, and the points along each.
Extents extents(const Tensor& x, const FftnOptions& options, int64_t count, const char* function) {
  Extents result;
  const int64_t given = options.s ? options.s->size() : -1;
  if (options.dim) {
    for (const int64_t dim : *options.dim)
      result.dims.push_back(normalize_dim(dim, count, function));
    if (given >= 0 && given != options.dim->size()) {
      throw InvalidArgument(str("[", function, "] s has ", given, " entries and dim ",
                                options.dim->size(), "; give one for each"));
    }
  } else {
    if (given > count) {
      throw InvalidArgument(
          str("[", function, "] s has ", given, " entries, but the input has ", count, " dims"));
    }
    for (int64_t dim = given < 0 ? 0 : count - given; dim < count; ++dim)
      result.dims.push_back(dim);
  }
  if (result.dims.empty()) {
    throw InvalidArgument(str("[", function, "] needs at least one dim; dim or s is empty"));
  }
  for (size_t i = 0; i < result.dims.size(); ++i) {
    if (std::count(result.dims.begin(), result.dims.end(), result.dims[i]) > 1)
      throw InvalidArgument(str("[", function, "] dim ", result.dims[i], " is named twice"));
    const int64_t points = given < 0 ? -1 : (*options.s)[static_cast<int64_t>(i)];
    result.points.push_back(points == -1 ? x.size(result.dims[i]) : points);
  }
  return result;
}

Tensor along_several(const OpDef& last, const char* function, const TensorArg& x,
                     const FftnOptions& options, bool inverse) {
  return ops::named(function, x.site(), [&]() -> Tensor {
    const bool is_complex = &last != &ops::kFftR2c;
    Tensor y = ops::as_floating(x);
    const int64_t count = num_dims(y, is_complex, function);
    Extents over = extents(y, options, count, function);
    const bool infers_last =
        &last == &ops::kFftC2r && (!options.s || (*options.s)[options.s->size() - 1] == -1);
    if (infers_last) over.points.back() = 2 * (over.points.back() - 1);
    const auto step = [&](const OpDef& op, size_t i) -> Step {
      const double scale =
          scale_of(options.norm, std::max<int64_t>(1, over.points[i]), inverse, function);
      return {op, function, over.dims[i], over.points[i], inverse, scale};
    };
    const size_t end = over.dims.size() - 1;
    // A real result comes last, and a real signal goes first.
    if (&last != &ops::kFftC2r) y = transform(y, step(last, end), x.site());
    for (size_t i = end; i-- > 0;)
      y = transform(y, step(ops::kFftC2c, i), x.site());
    if (&last == &ops::kFftC2r) y = transform(y, step(last, end), x.site());
    return y;
  });
}

FftnOptions of_two(const Fft2Options& options) {
  return {.s = options.s, .dim = options.dim, .norm = options.norm};
}

TensorOptions frequency_options(const char* function, int64_t n, double d, TensorOptions options,
                                Site site) {
  if (n < 1 || d == 0) {
    throw InvalidArgument(str("[", function,
                              "] needs n >= 1 and a distance d that is not 0; "
                              "received ",
                              n, " and ", d),
                          site);
  }
  if (!options.dtype.has_value()) options.dtype = default_dtype();
  if (!is_floating(*options.dtype)) {
    throw InvalidArgument(str("[", function, "] needs a floating dtype; received ", *options.dtype),
                          site);
  }
  return options;
}

// The frequencies number(i) / (d n) of the places i < count, which are computed in double.
template <class Number>
Tensor frequencies(const char* function, int64_t count, int64_t n, double d,
                   const TensorOptions& options, Site site, const Number& number) {
  return ops::named(function, site, [&]() -> Tensor {
    const TensorOptions layout = frequency_options(function, n, d, options, site);
    std::vector<double> values(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      values[static_cast<size_t>(i)] =
          static_cast<double>(number(i)) / (d * static_cast<double>(n));
    return tensor(values, {count}, layout, site);
  });
}

Tensor shifted(const char* function, const TensorArg& x, const ShiftOptions& options,
               bool is_back) {
  return ops::named(function, x.site(), [&]() -> Tensor {
    const int64_t count = num_dims(*x.operator->(), options.is_complex, function);
    std::vector<int64_t> dims, shifts;
    if (options.dim) {
      for (const int64_t dim : *options.dim)
        dims.push_back(normalize_dim(dim, count, function));
    } else {
      for (int64_t dim = 0; dim < count; ++dim)
        dims.push_back(dim);
    }
    if (dims.empty()) return roll(x, 0, 0);
    for (const int64_t dim : dims)
      shifts.push_back(is_back ? (x->size(dim) + 1) / 2 : x->size(dim) / 2);
    return roll(x, shifts, dims);
  });
}

}  // namespace

Tensor fft(const TensorArg& x, const FftOptions& options) {
  return along_one(ops::kFftC2c, "fft", x, options, false, false);
}

Tensor ifft(const TensorArg& x, const FftOptions& options) {
  return along_one(ops::kFftC2c, "ifft", x, options, true, true);
}

Tensor rfft(const TensorArg& x, const FftOptions& options) {
  return along_one(ops::kFftR2c, "rfft", x, options, false, false);
}

Tensor irfft(const TensorArg& x, const FftOptions& options) {
  return along_one(ops::kFftC2r, "irfft", x, options, true, true);
}

Tensor hfft(const TensorArg& x, const FftOptions& options) {
  return along_one(ops::kFftC2r, "hfft", x, options, false, false);
}

Tensor ihfft(const TensorArg& x, const FftOptions& options) {
  return along_one(ops::kFftR2c, "ihfft", x, options, true, true);
}

Tensor fftn(const TensorArg& x, const FftnOptions& options) {
  return along_several(ops::kFftC2c, "fftn", x, options, false);
}

Tensor ifftn(const TensorArg& x, const FftnOptions& options) {
  return along_several(ops::kFftC2c, "ifftn", x, options, true);
}

Tensor rfftn(const TensorArg& x, const FftnOptions& options) {
  return along_several(ops::kFftR2c, "rfftn", x, options, false);
}

Tensor irfftn(const TensorArg& x, const FftnOptions& options) {
  return along_several(ops::kFftC2r, "irfftn", x, options, true);
}

Tensor hfftn(const TensorArg& x, const FftnOptions& options) {
  return along_several(ops::kFftC2r, "hfftn", x, options, false);
}

Tensor ihfftn(const TensorArg& x, const FftnOptions& options) {
  return along_several(ops::kFftR2c, "ihfftn", x, options, true);
}

Tensor fft2(const TensorArg& x, const Fft2Options& options) {
  return along_several(ops::kFftC2c, "fft2", x, of_two(options), false);
}

Tensor ifft2(const TensorArg& x, const Fft2Options& options) {
  return along_several(ops::kFftC2c, "ifft2", x, of_two(options), true);
}

Tensor rfft2(const TensorArg& x, const Fft2Options& options) {
  return along_several(ops::kFftR2c, "rfft2", x, of_two(options), false);
}

Tensor irfft2(const TensorArg& x, const Fft2Options& options) {
  return along_several(ops::kFftC2r, "irfft2", x, of_two(options), true);
}

Tensor hfft2(const TensorArg& x, const Fft2Options& options) {
  return along_several(ops::kFftC2r, "hfft2", x, of_two(options), false);
}

Tensor ihfft2(const TensorArg& x, const Fft2Options& options) {
  return along_several(ops::kFftR2c, "ihfft2", x, of_two(options), true);
}

Tensor fftfreq(int64_t n, double d, const TensorOptions& options, Site site) {
  return frequencies("fftfreq", n, n, d, options, site,
                     [n](int64_t i) { return i < n - n / 2 ? i : i - n; });
}

Tensor rfftfreq(int64_t n, double d, const TensorOptions& options, Site site) {
  return frequencies("rfftfreq", n / 2 + 1, n, d, options, site, [](int64_t i) { return i; });
}

Tensor fftshift(const TensorArg& x, const ShiftOptions& options) {
  return shifted("fftshift", x, options, false);
}

Tensor ifftshift(const TensorArg& x, const ShiftOptions& options) {
  return shifted("ifftshift", x, options, true);
}

}  // namespace flow::fft
