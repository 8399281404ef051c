// Elements picked, replaced or found by position or value. They are composed of other functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow {

struct IsinOptions {
  bool assume_unique = false;  // the result is the same either way
  bool invert = false;
};

// Returns a bool tensor that is true where an element of x is one of `test`.
Tensor isin(const TensorArg& x, const TensorArg& test, const IsinOptions& options = {});

// Returns the elements of the flattened x at the positions in `index`. The result has the shape of
// `index`; negative positions count from the end.
Tensor take(const TensorArg& x, const TensorArg& index);
// The same as gather after x and indices are broadcast in all dims but `dim`. Without `dim`, both
// are flattened.
Tensor take_along_dim(const TensorArg& x, const TensorArg& indices,
                      std::optional<int64_t> dim = std::nullopt);

// Returns a copy of x in which alpha times slice i of `source` along `dim` is added to slice
// index[i], for every i.
Tensor index_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source,
                 double alpha = 1);

struct NonzeroStaticOptions {
  int64_t size = 0;         // the number of rows
  int64_t fill_value = -1;  // of the rows that are left over
};

// The first `size` rows of nonzero(x), (size, x.dim()), which a graph can trace. Missing rows hold
// fill_value.
Tensor nonzero_static(const TensorArg& x, const NonzeroStaticOptions& options);

// An alias of nonzero.
Tensor argwhere(const TensorArg& x);

// Return a copy of x in which the slices at `index` along `dim` are replaced by a number
// (index_fill) or by the slices of `source` (index_copy).
Tensor index_fill(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value);
Tensor index_copy(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& source);

// Returns a copy of x in which the elements at which mask (bool, broadcast to x) is true are
// replaced, in order, by the elements of source. Requires: source has at least as many elements.
Tensor masked_scatter(const TensorArg& x, const TensorArg& mask, const TensorArg& source);

// Returns a copy of x whose elements at the positions `index` of the flattened tensor are those of
// `source`, which has as many elements; x.put_(index, source) writes them.
Tensor put(const TensorArg& x, const TensorArg& index, const TensorArg& source,
           const IndexPutOptions& options = {});

// Returns a copy of x in which slice index[i] along `dim` is combined with slice i of `source`, for
// every i. `reduce`: "prod", "mean", "amax" or "amin", as in scatter_reduce.
Tensor index_reduce(const TensorArg& x, int64_t dim, const TensorArg& index,
                    const TensorArg& source, const std::string& reduce,
                    const ScatterReduceOptions& options = {});

}  // namespace flow
