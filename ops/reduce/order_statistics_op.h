// Definitions of the ops of ops/reduce/order_statistics.h.
#pragma once

#include <cstdint>
#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct RankAttrs {
  int64_t k = 0;  // of kthvalue; counts from 1
  int64_t dim = 0;
  bool keepdim = false;

  static constexpr auto fields() {
    return std::tuple(key_field("k", &RankAttrs::k), key_field("dim", &RankAttrs::dim),
                      key_field("keepdim", &RankAttrs::keepdim));
  }
};

// These ops reduce one dim and return values and indices.
extern const OpDef kKthvalue, kMedian, kNanmedian, kMode;
// These ops reduce all elements to a scalar.
extern const OpDef kMedianOfAll, kNanmedianOfAll;

// The dtype in which quantiles compute ranks among `size` elements: that of the elements, whose
// rounding PyTorch shares, unless the numbers up to `size` are not all values of float32.
DType rank_dtype(DType elements, int64_t size);

}  // namespace flow::ops
