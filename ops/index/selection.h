// Elements chosen by value, by place or by chance, and tensors cut and joined by blocks; made of
// other functions.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.h"

namespace flow {

struct IsinOptions {
  bool assume_unique = false;  // the result is the same either way
  bool invert = false;
};

// Whether each element of x is one of `test`: bool.
Tensor isin(const TensorArg& x, const TensorArg& test, const IsinOptions& options = {});

// A copy of x with the slices at `index` along `dim` replaced by a number, by the slices of
// `source`.
Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value);
Tensor index_copy(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);

// A copy of x with the elements where mask (bool, broadcast to x) is true replaced by those of
// source, in order. source has at least as many.
Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source);

// The larger (smaller) one; the number where the other is NaN.
Tensor fmax(const TensorArg& a, const TensorArg& b);
Tensor fmin(const TensorArg& a, const TensorArg& b);

// `num_samples` positions drawn for each row of weights p (N, C) or (C), in proportion to them:
// int64 (N, num_samples) or (num_samples). Without replacement there must be as many positive
// weights.
Tensor multinomial(const TensorArg& p, int64_t num_samples, const MultinomialOptions& options = {});

// tensor_split along the second dim (of a vector: the first), the first, the third.
std::vector<Tensor> hsplit(const TensorArg& x, int64_t sections);
std::vector<Tensor> hsplit(const TensorArg& x, const std::vector<int64_t>& indices);
std::vector<Tensor> vsplit(const TensorArg& x, int64_t sections);
std::vector<Tensor> vsplit(const TensorArg& x, const std::vector<int64_t>& indices);
std::vector<Tensor> dsplit(const TensorArg& x, int64_t sections);
std::vector<Tensor> dsplit(const TensorArg& x, const std::vector<int64_t>& indices);

// Matrices along the diagonal of one, zeros elsewhere.  block_diag({a (2, 3), b (1, 1)}): (3, 4)
Tensor block_diag(const TensorListArg& tensors);

}  // namespace flow
