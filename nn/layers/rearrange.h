// Layers that rearrange elements. The formulas are at the functions of ops/conv/fold.h. Sizes of
// kernels, strides, dilations and factors below 1 and negative paddings are InvalidArgument.
#pragma once

#include "nn/module.h"
#include "ops/conv/fold.h"

namespace flow::nn {

// The adjoint of Unfold: adds up the elements of all windows at each position. x: (N, C kh kw, L) →
// (N, C, output_size).
class Fold : public Module<Fold> {
 public:
  Fold(Ints output_size, Ints kernel_size, FoldOptions options = {}, Site site = Site::here());

  Tensor forward(const Tensor& x);

 private:
  Ints output_size_, kernel_size_;
  FoldOptions options_;
};

// Makes a column of the elements of each window. x: (N, C, H, W) → (N, C kh kw, L) with L windows
// of size (kh, kw).
class Unfold : public Module<Unfold> {
 public:
  explicit Unfold(Ints kernel_size, FoldOptions options = {}, Site site = Site::here());

  Tensor forward(const Tensor& x);

 private:
  Ints kernel_size_;
  FoldOptions options_;
};

// Moves blocks of r² channels to r × r pixels (Shi et al. 2016), r = upscale_factor. x: (…, C r²,
// H, W) → (…, C, H r, W r).
class PixelShuffle : public Module<PixelShuffle> {
 public:
  explicit PixelShuffle(int64_t upscale_factor, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  int64_t upscale_factor_;
};

// The inverse of PixelShuffle, r = downscale_factor. x: (…, C, H r, W r) → (…, C r², H, W).
class PixelUnshuffle : public Module<PixelUnshuffle> {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  int64_t downscale_factor_;
};

struct FlattenOptions {
  int64_t start_dim = 1;
  int64_t end_dim = -1;
};

// Joins the dims start_dim to end_dim of x, both included, into one. Negative dims count from the
// end.
class Flatten : public Module<Flatten> {
 public:
  explicit Flatten(FlattenOptions options = {});
  Tensor forward(const Tensor& x);

 private:
  FlattenOptions options_;
};

// The inverse of Flatten: replaces dim `dim` of x by dims of the given sizes, one of which may be
// -1 (inferred). Throws InvalidArgument if the sizes do not have the elements of the dim.
class Unflatten : public Module<Unflatten> {
 public:
  Unflatten(int64_t dim, Ints unflattened_size, Site site = Site::here());
  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
  Ints unflattened_size_;
};

}  // namespace flow::nn
