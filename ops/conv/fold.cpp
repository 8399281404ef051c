#include "ops/conv/fold.h"

#include <vector>

#include "core/error.h"
#include "ops/conv/window.h"
#include "ops/creation/copy.h"
#include "ops/elementwise/binary.h"
#include "ops/named_errors.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/slice_op.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

// The windows along the two spatial dims.
struct Windows {
  ops::WindowDim rows;
  ops::WindowDim columns;

  int64_t taps() const { return rows.kernel * columns.kernel; }

  int64_t positions() const { return rows.out * columns.out; }
};

Windows windows_of(const char* op, const TensorArg& x, int64_t height, int64_t width,
                   const Ints& kernel_size, const FoldOptions& options) {
  const auto kernel = ops::spatial_numbers(kernel_size, 2, 1, 1, op, "kernel_size");
  const auto stride = ops::spatial_numbers(options.stride, 2, 1, 1, op, "stride");
  const auto padding = ops::spatial_numbers(options.padding, 2, 0, 0, op, "padding");
  const auto dilation = ops::spatial_numbers(options.dilation, 2, 1, 1, op, "dilation");
  const auto along = [&](size_t i, int64_t size) {
    ops::WindowDim dim{size, 0, kernel[i], stride[i], dilation[i], padding[i]};
    dim.out = ops::count_windows(size + 2 * padding[i], dim.reach(), stride[i]);
    return dim;
  };
  const Windows windows{along(0, height), along(1, width)};
  if (windows.positions() == 0) {
    throw InvalidArgument(
        str("[", op, "] the kernel does not fit into (", height, ", ", width,
            ") with its padding; received ", x->meta(), "; pad more or take a smaller one"),
        x.site());
  }
  return windows;
}

// The elements that tap k reads at all positions along `dim`.
Tensor under_tap(const TensorArg& x, int64_t dim, const ops::WindowDim& window, int64_t k) {
  const int64_t start = k * window.dilation;
  return slice(x, dim, start, start + (window.out - 1) * window.stride + 1, window.stride);
}

// The inverse, zeros elsewhere.
Tensor at_tap(const TensorArg& x, int64_t dim, const ops::WindowDim& window, int64_t k) {
  return ops::unslice(x, dim, k * window.dilation, window.in + 2 * window.padding, window.stride);
}

void check_pixels(const char* op, const TensorArg& x, int64_t factor, bool is_valid) {
  if (is_valid) return;
  throw InvalidArgument(
      str("[", op, "] the factor ", factor,
          " does not divide the channels or sizes of (..., C, H, W); received ", x->meta()),
      x.site());
}

// Merges the dims before channels and pixels into one.
Tensor with_one_batch_dim(const TensorArg& x) {
  const int64_t ndim = x->dim();
  Shape shape{-1};
  for (int64_t i = ndim - 3; i < ndim; ++i)
    shape.push_back(x->shape()[i]);
  if (x->numel() == 0) shape[0] = 0;
  return reshape(x, shape);
}

Tensor with_batch_dims_of(const TensorArg& x, const Tensor& images) {
  Shape shape;
  for (int64_t i = 0; i < x->dim() - 3; ++i)
    shape.push_back(x->shape()[i]);
  for (int64_t i = 1; i < 4; ++i)
    shape.push_back(images.shape()[i]);
  return reshape({images, x.site()}, shape);
}

}  // namespace

Tensor unfold(const TensorArg& x, const Ints& kernel_size, const FoldOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (x->dim() != 3 && x->dim() != 4) {
      throw InvalidArgument(str("[unfold] takes (N, C, H, W) or (C, H, W); received ", x->meta()),
                            x.site());
    }
    const Site site = x.site();
    const Windows windows = windows_of("unfold", x, x->size(-2), x->size(-1), kernel_size, options);
    const auto [rows, columns] = windows;
    const Tensor images = x->dim() == 4 ? x.tensor() : unsqueeze(x, 0);
    const Tensor padded =
        pad({images, site}, {columns.padding, columns.padding, rows.padding, rows.padding});
    std::vector<Tensor> taps;
    for (int64_t i = 0; i < rows.kernel; ++i) {
      const Tensor strip = under_tap({padded, site}, 2, rows, i);
      for (int64_t k = 0; k < columns.kernel; ++k)
        taps.push_back(under_tap({strip, site}, 3, columns, k));
    }
    const Tensor stacked = stack({taps, site}, 2);
    const int64_t channels = images.shape()[1];
    const Tensor y = reshape({stacked, site},
                             {images.shape()[0], channels * windows.taps(), windows.positions()});
    return x->dim() == 4 ? y : squeeze({y, site}, 0);
  });
}

Tensor fold(const TensorArg& x, const Ints& output_size, const Ints& kernel_size,
            const FoldOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    const Site site = x.site();
    const auto size = ops::spatial_numbers(output_size, 2, 1, 1, "fold", "output_size");
    const Windows windows = windows_of("fold", x, size[0], size[1], kernel_size, options);
    const auto [rows, columns] = windows;
    const bool is_valid = (x->dim() == 2 || x->dim() == 3) && x->size(-2) % windows.taps() == 0 &&
                          x->size(-1) == windows.positions();
    if (!is_valid) {
      throw InvalidArgument(str("[fold] takes (N, C ", windows.taps(), ", ", windows.positions(),
                                ") for this kernel; received ", x->meta()),
                            site);
    }
    const int64_t samples = x->dim() == 3 ? x->size(0) : 1;
    const int64_t channels = x->size(-2) / windows.taps();
    const Tensor taps =
        reshape(x, {samples, channels, rows.kernel, columns.kernel, rows.out, columns.out});
    Tensor total;
    for (int64_t i = 0; i < rows.kernel; ++i) {
      Tensor strip;
      for (int64_t k = 0; k < columns.kernel; ++k) {
        const Tensor tap = select({select({taps, site}, 2, i), site}, 2, k);
        const Tensor placed = at_tap({tap, site}, 3, columns, k);
        strip = strip.defined() ? add({strip, site}, placed) : placed;
      }
      const Tensor placed = at_tap({strip, site}, 2, rows, i);
      total = total.defined() ? add({total, site}, placed) : placed;
    }
    total = narrow({total, site}, 2, rows.padding, rows.in);
    total = narrow({total, site}, 3, columns.padding, columns.in);
    return x->dim() == 3 ? total : squeeze({total, site}, 0);
  });
}

Tensor pixel_shuffle(const TensorArg& x, int64_t upscale_factor) {
  const int64_t r = upscale_factor;
  check_pixels("pixel_shuffle", x, r,
               x->dim() >= 3 && r > 0 && r <= INT32_MAX && x->size(-3) % (r * r) == 0);
  const Tensor images = with_one_batch_dim(x);
  const Shape& shape = images.shape();
  const int64_t channels = shape[1] / (r * r);
  const Tensor blocks = reshape({images, x.site()}, {shape[0], channels, r, r, shape[2], shape[3]});
  const Tensor apart = clone({permute({blocks, x.site()}, {0, 1, 4, 2, 5, 3}), x.site()});
  return with_batch_dims_of(
      x, reshape({apart, x.site()}, {shape[0], channels, shape[2] * r, shape[3] * r}));
}

Tensor pixel_unshuffle(const TensorArg& x, int64_t downscale_factor) {
  const int64_t r = downscale_factor;
  check_pixels("pixel_unshuffle", x, r,
               x->dim() >= 3 && r > 0 && x->size(-2) % r == 0 && x->size(-1) % r == 0);
  const Tensor images = with_one_batch_dim(x);
  const Shape& shape = images.shape();
  const int64_t height = shape[2] / r;
  const int64_t width = shape[3] / r;
  const Tensor blocks = reshape({images, x.site()}, {shape[0], shape[1], height, r, width, r});
  const Tensor apart = clone({permute({blocks, x.site()}, {0, 1, 3, 5, 2, 4}), x.site()});
  return with_batch_dims_of(
      x, reshape({apart, x.site()}, {shape[0], shape[1] * r * r, height, width}));
}

}  // namespace flow
