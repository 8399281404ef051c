#include "nn/layers/rearrange.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "nn/layers/checks.h"
#include "nn/layers/option_text.h"
#include "ops/shape/view.h"

namespace flow::nn {

using internal::tuple_text;

namespace {
void check_windows(const char* layer, const Ints& kernel_size, const FoldOptions& options,
                   Site site) {
  internal::check_numbers(layer, 2,
                          {{"kernel_size", kernel_size, 1},
                           {"stride", options.stride, 1},
                           {"padding", options.padding, 0},
                           {"dilation", options.dilation, 1}},
                          site);
}
}  // namespace

Fold::Fold(Ints output_size, Ints kernel_size, FoldOptions options, Site site)
    : output_size_(std::move(output_size)),
      kernel_size_(std::move(kernel_size)),
      options_(std::move(options)) {
  internal::check_numbers("Fold", 2, {{"output_size", output_size_, 0}}, site);
  check_windows("Fold", kernel_size_, options_, site);
}

Tensor Fold::forward(const Tensor& x) {
  return fold(x, output_size_, kernel_size_, options_);
}

Unfold::Unfold(Ints kernel_size, FoldOptions options, Site site)
    : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {
  check_windows("Unfold", kernel_size_, options_, site);
}

Tensor Unfold::forward(const Tensor& x) {
  return unfold(x, kernel_size_, options_);
}

PixelShuffle::PixelShuffle(int64_t upscale_factor, Site site) : upscale_factor_(upscale_factor) {
  internal::check_positive("PixelShuffle", {{"upscale_factor", upscale_factor}}, site);
  set_extra_repr(str("upscale_factor=", upscale_factor));
}

Tensor PixelShuffle::forward(const Tensor& x) {
  return pixel_shuffle(x, upscale_factor_);
}

PixelUnshuffle::PixelUnshuffle(int64_t downscale_factor, Site site)
    : downscale_factor_(downscale_factor) {
  internal::check_positive("PixelUnshuffle", {{"downscale_factor", downscale_factor}}, site);
  set_extra_repr(str("downscale_factor=", downscale_factor));
}

Tensor PixelUnshuffle::forward(const Tensor& x) {
  return pixel_unshuffle(x, downscale_factor_);
}

Flatten::Flatten(FlattenOptions options) : options_(options) {
  set_extra_repr(str("start_dim=", options_.start_dim, ", end_dim=", options_.end_dim));
}

Tensor Flatten::forward(const Tensor& x) {
  return x.flatten(options_.start_dim, options_.end_dim);
}

Unflatten::Unflatten(int64_t dim, Ints unflattened_size, Site site)
    : dim_(dim), unflattened_size_(std::move(unflattened_size)) {
  const auto is_size = [](int64_t size) { return size >= -1; };
  if (unflattened_size_.empty() ||
      !std::all_of(unflattened_size_.begin(), unflattened_size_.end(), is_size)) {
    throw InvalidArgument(str("[Unflatten] unflattened_size must have at least one size, and none "
                              "below -1; received ",
                              tuple_text(unflattened_size_, 1)),
                          site);
  }
  set_extra_repr(str("dim=", dim_, ", unflattened_size=", tuple_text(unflattened_size_, 1)));
}

Tensor Unflatten::forward(const Tensor& x) {
  const int64_t dim = normalize_dim(dim_, x.dim(), "Unflatten");
  // All other sizes are known here, so reshape can infer a -1 among the new ones.
  Shape shape;
  int64_t product = 1;
  bool is_open = false;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (d != dim) {
      shape.push_back(x.size(d));
      continue;
    }
    for (int64_t i = 0; i < unflattened_size_.size(); ++i) {
      shape.push_back(unflattened_size_[i]);
      is_open = is_open || unflattened_size_[i] == -1;
      if (unflattened_size_[i] != -1) product *= unflattened_size_[i];
    }
  }
  if (unflattened_size_.empty() ||
      (is_open ? product == 0 || x.size(dim) % product != 0 : product != x.size(dim))) {
    throw InvalidArgument(str("[Unflatten] the sizes do not fit the dim: they have ", product,
                              " elements", is_open ? " apart from -1" : "", ", dim ", dim, " of ",
                              x.meta(), " has ", x.size(dim),
                              "; give sizes whose product is that number"));
  }
  return reshape(x, shape);
}

}  // namespace flow::nn
