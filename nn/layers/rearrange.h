// Layers that move elements; the formulas stand at the functions of ops/fold.h.
#pragma once

#include "nn/module.h"
#include "ops/fold.h"

namespace flow::nn {

// x: (N, C kh kw, L) → (N, C, output_size), elements of the same place added up.
class Fold : public Module<Fold> {
 public:
  Fold(Ints output_size, Ints kernel_size, FoldOptions options = {})
      : output_size_(std::move(output_size)),
        kernel_size_(std::move(kernel_size)),
        options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  Ints output_size_, kernel_size_;
  FoldOptions options_;
};

// x: (N, C, H, W) → (N, C kh kw, L).
class Unfold : public Module<Unfold> {
 public:
  explicit Unfold(Ints kernel_size, FoldOptions options = {})
      : kernel_size_(std::move(kernel_size)), options_(std::move(options)) {}

  Tensor forward(const Tensor& x);

 private:
  Ints kernel_size_;
  FoldOptions options_;
};

// x: (…, C r², H, W) → (…, C, H r, W r).
class PixelShuffle : public Module<PixelShuffle> {
 public:
  explicit PixelShuffle(int64_t upscale_factor) : upscale_factor_(upscale_factor) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t upscale_factor_;
};

// x: (…, C, H r, W r) → (…, C r², H, W).
class PixelUnshuffle : public Module<PixelUnshuffle> {
 public:
  explicit PixelUnshuffle(int64_t downscale_factor) : downscale_factor_(downscale_factor) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t downscale_factor_;
};

struct FlattenOptions {
  int64_t start_dim = 1;
  int64_t end_dim = -1;
};

// Joins the dims start_dim to end_dim of x, both included, into one. Either may be negative.
class Flatten : public Module<Flatten> {
 public:
  explicit Flatten(FlattenOptions options = {}) : options_(options) {}

  Tensor forward(const Tensor& x);

 private:
  FlattenOptions options_;
};

// Dim `dim` of x as several dims of the given sizes, one of which may be -1: the inverse of
// Flatten.
class Unflatten : public Module<Unflatten> {
 public:
  Unflatten(int64_t dim, Ints unflattened_size)
      : dim_(dim), unflattened_size_(std::move(unflattened_size)) {}

  Tensor forward(const Tensor& x);

 private:
  int64_t dim_;
  Ints unflattened_size_;
};

}  // namespace flow::nn
