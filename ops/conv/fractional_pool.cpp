#include "ops/conv/fractional_pool.h"

#include <functional>
#include <numeric>

#include "core/error.h"
#include "ops/conv/window.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/named_errors.h"
#include "ops/random/random.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using ops::SpatialInts;

// Where the windows along one dim begin, (N, C, out) int64, for random numbers u (N, C).
Tensor window_begins(const Tensor& u, int64_t in, int64_t kernel, int64_t out) {
  const Tensor count = arange(out, ops::whole_like(u, u.dtype()));
  const double step = out > 1 ? static_cast<double>(in - kernel) / static_cast<double>(out - 1) : 0;
  const Tensor own = unsqueeze(u, 2);
  const Tensor begins = cast(trunc((count + own) * step) - trunc(own * step), int64);
  return masked_fill(begins, eq(count, out - 1), in - kernel);
}

// The positions (N, C, windows, elements) of all elements of all windows of a box.
Tensor window_positions(const Tensor& u, const std::vector<int64_t>& in, const SpatialInts& kernel,
                        const std::vector<int64_t>& out) {
  Tensor positions;
  for (size_t d = 0; d < in.size(); ++d) {
    // The samples of planes are those of w and h, those of volumes in order.
    const auto sample = static_cast<int64_t>(in.size() == 2 ? 1 - d : d);
    const Tensor begins = window_begins(select(u, 2, sample), in[d], kernel[d], out[d]);
    const Tensor along = unsqueeze(begins, 3) + arange(kernel[d], ops::whole_like(begins, int64));
    if (d == 0) {
      positions = along;
      continue;
    }
    const Shape& before = positions.shape();
    const Tensor rows = reshape(positions, {before[0], before[1], before[2], 1, before[3], 1});
    const Tensor columns = reshape(along, {before[0], before[1], 1, out[d], 1, kernel[d]});
    positions = reshape(rows * in[d] + columns,
                        {before[0], before[1], before[2] * out[d], before[3] * kernel[d]});
  }
  return positions;
}

std::vector<int64_t> output_sizes(const char* op, const TensorArg& x,
                                  const std::vector<int64_t>& in,
                                  const FractionalMaxPoolOptions& options) {
  const size_t dims = in.size();
  const std::vector<double>& ratios = options.output_ratio;
  if (options.output_size.empty() == ratios.empty()) {
    throw InvalidArgument(str("[", op, "] needs output_size or output_ratio, and not both"),
                          x.site());
  }
  if (ratios.empty()) {
    const SpatialInts sizes = ops::spatial_numbers(options.output_size, static_cast<int64_t>(dims),
                                                   1, 1, op, "output_size");
    return {sizes.begin(), sizes.begin() + static_cast<int64_t>(dims)};
  }
  std::vector<int64_t> sizes;
  for (size_t d = 0; d < dims; ++d) {
    const double ratio = ratios.size() == 1 ? ratios[0] : d < ratios.size() ? ratios[d] : 0;
    if (!(ratio > 0 && ratio < 1) || (ratios.size() != 1 && ratios.size() != dims)) {
      throw InvalidArgument(str("[", op, "] output_ratio must be one number between 0 and 1, or ",
                                dims, " of them; received ", ratios.size(), " numbers, of which ",
                                ratio, " is used for spatial dim ", d),
                            x.site());
    }
    sizes.push_back(static_cast<int64_t>(static_cast<double>(in[d]) * ratio));
  }
  return sizes;
}

Tensor samples_of(const char* op, const TensorArg& x, const Shape& shape,
                  const FractionalMaxPoolOptions& options) {
  // Positions in 16 bits would be too coarse.
  const DType dtype = is_half(x->dtype()) ? float32 : x->dtype();
  const Tensor& given = options.random_samples;
  if (given.defined()) {
    if (!(given.shape() == shape) || !is_floating(given.dtype())) {
      throw InvalidArgument(str("[", op, "] random_samples must be floating of shape ", shape,
                                "; received ", given.meta()),
                            x.site());
    }
    return cast({given, x.site()}, dtype);
  }
  return rand(shape, ops::whole_like(x.tensor(), dtype), x.site());
}

ValuesIndices pool(const char* op, int64_t dims, const TensorArg& x, const Ints& kernel_size,
                   const FractionalMaxPoolOptions& options) {
  return ops::named(op, x.site(), [&]() -> ValuesIndices {
    const int64_t ndim = x->dim();
    if ((ndim != dims + 1 && ndim != dims + 2) || !is_floating(x->dtype())) {
      throw InvalidArgument(str("[", op, "] takes a floating tensor of ", dims + 1, " or ",
                                dims + 2, " dims; received ", x->meta()),
                            x.site());
    }
    const Shape& shape = x->shape();
    const SpatialInts kernel = ops::spatial_numbers(kernel_size, dims, 1, 1, op, "kernel_size");
    const int64_t channels = shape[ndim - dims - 1], batch = ndim == dims + 2 ? shape[0] : 1;
    const std::vector<int64_t> in(shape.end() - dims, shape.end());
    const std::vector<int64_t> out = output_sizes(op, x, in, options);
    for (size_t d = 0; d < in.size(); ++d) {
      if (out[d] >= 1 && out[d] + kernel[d] - 1 <= in[d]) continue;
      throw InvalidArgument(
          str("[", op, "] spatial dim ", d, " of size ", in[d], " has no room for ", out[d],
              " windows of ", kernel[d], "; make the output or the kernel smaller"),
          x.site());
    }
    const Tensor u = samples_of(op, x, {batch, channels, dims}, options);
    const Tensor positions = window_positions(u, in, kernel, out);
    const int64_t windows = positions.size(2), elements = positions.size(3);
    const int64_t points = std::accumulate(in.begin(), in.end(), int64_t{1}, std::multiplies<>());
    const Tensor flat = reshape({x.tensor(), x.site()}, {batch, channels, points});
    const Tensor seen =
        reshape(gather(flat, 2, reshape(positions, {batch, channels, windows * elements})),
                {batch, channels, windows, elements});
    const ValuesIndices found = max(seen, 3);
    const Tensor indices = gather(positions, 3, unsqueeze(found.indices, 3));
    Shape result(std::vector<int64_t>(shape.begin(), shape.end() - dims));
    for (const int64_t size : out)
      result.push_back(size);
    return {reshape(found.values, result), reshape(indices, result)};
  });
}

}  // namespace

Tensor fractional_max_pool2d(const TensorArg& x, const Ints& kernel,
                             const FractionalMaxPoolOptions& options) {
  return pool("fractional_max_pool2d", 2, x, kernel, options).values;
}

Tensor fractional_max_pool3d(const TensorArg& x, const Ints& kernel,
                             const FractionalMaxPoolOptions& options) {
  return pool("fractional_max_pool3d", 3, x, kernel, options).values;
}

ValuesIndices fractional_max_pool2d_with_indices(const TensorArg& x, const Ints& kernel,
                                                 const FractionalMaxPoolOptions& options) {
  return pool("fractional_max_pool2d", 2, x, kernel, options);
}

ValuesIndices fractional_max_pool3d_with_indices(const TensorArg& x, const Ints& kernel,
                                                 const FractionalMaxPoolOptions& options) {
  return pool("fractional_max_pool3d", 3, x, kernel, options);
}

}  // namespace flow
