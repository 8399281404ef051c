// Functions that concatenate, repeat, reverse and pad tensors along dims.
#pragma once

#include <string>
#include <vector>

#include "core/tensor.h"

namespace flow {

// Concatenates tensors along `dim`. All other sizes must be equal, and dtypes are promoted to a
// common one. Tensors of shape (0) are skipped, as in PyTorch.  cat({a (2, 3), b (4, 3)}): (6, 3)
Tensor cat(const TensorListArg& tensors, int64_t dim = 0);
Tensor concat(const TensorListArg& tensors, int64_t dim = 0);
// Joins tensors of the same shape along a new dim.  stack({a (3), b (3)}, 1): (3, 2)
Tensor stack(const TensorListArg& tensors, int64_t dim = 0);

// Repeats x as a whole repeats[i] times along dim i. If `repeats` has more entries than x has dims,
// leading dims are added.
//   repeat(x (2), {3, 2}): (3, 4)
Tensor repeat(const TensorArg& x, const Ints& repeats);
// The same as repeat, but missing leading repeats are 1.
Tensor tile(const TensorArg& x, const Ints& repeats);

// Reverses the order of the elements along each of `dims`.
Tensor flip(const TensorArg& x, const Ints& dims);
// Moves the elements by `shifts` positions along `dims`; elements that pass the end return at the
// start. Without dims, the flattened x is rolled.
//   roll(x (3), 1): x[2], x[0], x[1]
Tensor roll(const TensorArg& x, const Ints& shifts, const Ints& dims = {});

struct PadOptions {
  std::string mode = "constant";
  double value = 0;  // used by mode "constant" only
};

// Pads x. `padding` holds the number of elements (before, after) for the last dim, then for the dim
// before it, and so on; a negative number removes elements. The modes are:
//   "constant"   fills with `value`
//   "reflect"    mirrors x at its first and last element without repeating them
//   "replicate"  repeats the first and last element
//   "circular"   continues with the elements from the other end
//   pad(x (2, 3), {1, 2}): (2, 6)
Tensor pad(const TensorArg& x, const Ints& padding, const PadOptions& options = {});

// Keep the elements of the last two dims on and below (tril) or on and above (triu) the given
// diagonal and set the others to zero. 0 is the main diagonal; positive numbers are above it.
Tensor tril(const TensorArg& x, int64_t diagonal = 0);
Tensor triu(const TensorArg& x, int64_t diagonal = 0);

}  // namespace flow
