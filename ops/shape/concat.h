// Joining, repeating and rearranging along dims.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

// Tensors one after the other along `dim`; their other sizes agree. Dtypes are promoted. Tensors of
// shape (0) are skipped, as in PyTorch.  cat({a (2, 3), b (4, 3)}): (6, 3)
Tensor cat(const TensorListArg& tensors, int64_t dim = 0);
Tensor concat(const TensorListArg& tensors, int64_t dim = 0);
// Tensors of one shape along a new dim.  stack({a (3), b (3)}, 1): (3, 2)
Tensor stack(const TensorListArg& tensors, int64_t dim = 0);

// x laid out repeats[i] times along dim i; more repeats than dims add leading dims.
//   repeat(x (2), {3, 2}): (3, 4)
Tensor repeat(const TensorArg& x, const Ints& repeats);
// As repeat, where missing leading repeats are 1.
Tensor tile(const TensorArg& x, const Ints& repeats);

// The order of the elements reversed along each of `dims`.
Tensor flip(const TensorArg& x, const Ints& dims);
// Elements moved by `shifts` along `dims` and around the end; without dims, of the flattened x.
//   roll(x (3), 1): x[2], x[0], x[1]
Tensor roll(const TensorArg& x, const Ints& shifts, const Ints& dims = {});

struct PadOptions {
  std::string mode = "constant";
  double value = 0;  // of mode constant only
};

// `padding` holds (before, after) for the last dim, then for the one before it, …; negative numbers
// cut. Modes: "constant"; "reflect" about the first and last element, without repeating them;
// "replicate" of these; "circular" from the other end.  pad(x (2, 3), {1, 2}): (2, 6)
Tensor pad(const TensorArg& x, const Ints& padding, const PadOptions& options = {});

// The elements of the last two dims on and below (tril) or above (triu) diagonal `diagonal`
// (0 the main one, positive ones above it), zeros elsewhere.
Tensor tril(const TensorArg& x, int64_t diagonal = 0);
Tensor triu(const TensorArg& x, int64_t diagonal = 0);

}  // namespace flow
