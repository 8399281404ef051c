// Reductions of the values that are scattered to one element.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/tensor.h"

namespace flow {

// The same as scatter (ops/index/gather.h), but an element that is written becomes the "sum",
// "prod", "mean" (rounded down for integers), "amax" or "amin" of the values written to it. Equal
// extrema share their gradient evenly.
//   scatter_reduce(x, 0, index, src, "amax", {.include_self = false})
Tensor scatter_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src,
                      const std::string& reduce, const ScatterReduceOptions& options = {});

struct SegmentReduceOptions {
  // One of both says which elements a segment has: how many, (…, S), or where it begins and the
  // last one ends, (…, S + 1). The dims in front are those of the data.
  Tensor lengths = {};
  Tensor offsets = {};
  int64_t axis = 0;                    // the last dim of lengths
  bool unsafe = false;                 // do not check that the lengths add up to the axis
  std::optional<double> initial = {};  // takes part in each reduction
};

// The "sum", "mean", "max" (or "amax"), "min" or "prod" of consecutive segments of `data` along
// `axis`: S in place of its size. An empty segment gives `initial`, or 0, NaN, -infinity, infinity
// and 1. Floating only. The check of the lengths is left out in a graph.
//   segment_reduce(data (5), "sum", {.lengths = tensor({2, 3})}): (2)
Tensor segment_reduce(const TensorArg& data, const std::string& reduce,
                      const SegmentReduceOptions& options);

}  // namespace flow
