// Rotary position embedding: positions as rotations of queries and keys (Su et al. 2021).
#pragma once

#include <cstdint>

#include "nn/module.h"

namespace flow::nn {

struct RotaryEmbeddingOptions {
  double base = 10000;
  // Which features form a pair: 2i and 2i + 1 if true (as in the paper), i and i + dim / 2 if false
  // (as in GPT-NeoX and Llama).
  bool interleaved = false;
};

// Rotates pair i of the features at position p by the angle p base^(-2i / dim): (a, b) becomes
// (a cos - b sin, a sin + b cos). So the product of a rotated query and a rotated key depends on
// the distance of their positions only. Has no parameters. Throws InvalidArgument unless dim is
// positive and even.
class RotaryEmbedding : public Module<RotaryEmbedding> {
 public:
  explicit RotaryEmbedding(int64_t dim, RotaryEmbeddingOptions options = {},
                           Site site = Site::here());

  // x: (…, T, dim), floating, at the positions offset, offset + 1, … → the same shape and dtype.
  Tensor forward(const Tensor& x, int64_t offset = 0);
  // At the given positions (T) of an integer dtype.
  Tensor forward(const Tensor& x, const Tensor& positions);

 private:
  Tensor rotated(const Tensor& x, const Tensor& positions) const;

  int64_t dim_;
  RotaryEmbeddingOptions options_;
};

}  // namespace flow::nn
