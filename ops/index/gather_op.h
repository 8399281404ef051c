// Definitions of gather, scatter and their gradients. Indices are int64 throughout.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct DimAttrs {
  int64_t dim = 0;

  static constexpr auto fields() { return std::tuple(key_field("dim", &DimAttrs::dim)); }
};

// Inputs: y, index. The result is zeros of `shape` to which the elements of y are added at the
// positions that gather would read.
struct UngatherAttrs {
  int64_t dim = 0;
  Shape shape;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &UngatherAttrs::dim),
                      key_field("shape", &UngatherAttrs::shape));
  }
};

struct ScatterValueAttrs {
  int64_t dim = 0;
  Scalar value;

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &ScatterValueAttrs::dim),
                      value_field("value", &ScatterValueAttrs::value));
  }
};

enum class ScatterReduction : int64_t { kProduct, kLargest, kSmallest };

struct ScatterReduceAttrs {
  int64_t dim = 0;
  int64_t reduction = 0;  // a ScatterReduction
  bool include_self = true;

  ScatterReduction kind() const { return static_cast<ScatterReduction>(reduction); }

  static constexpr auto fields() {
    return std::tuple(key_field("dim", &ScatterReduceAttrs::dim),
                      key_field("reduction", &ScatterReduceAttrs::reduction),
                      key_field("include_self", &ScatterReduceAttrs::include_self));
  }
};

extern const OpDef kGather, kUngather, kScatter, kScatterAdd, kScatterValue, kScatterReduce;

// Returns the gradient of gather; see UngatherAttrs.
Tensor ungather(const TensorArg& y, int64_t dim, const TensorArg& index, const Shape& shape);

// Checks that x, index and src (inputs 0, 1, 2) fit together for a scatter along `dim`.
void check_scatter(const OpContext& ctx, int64_t dim);
// Adds the layouts of a scatter in which each rank writes the elements that belong to its part of
// x.
void add_split_targets(SbpContext& ctx, int64_t dim, bool has_src);
// Returns true if each rank's balanced part of `inner` elements is inside its part of `outer`
// elements. The two parts then begin at the same element.
bool parts_hold(int64_t outer, int64_t inner, int64_t num_ranks);
// Returns zeros of `shape` with x in the corner at index 0.
Tensor padded_to(const Tensor& x, const Shape& shape);
// Returns a scalar as a vector of one element, as PyTorch's gather and scatter treat it.
Tensor as_vector(const TensorArg& x);
Tensor as_indices(const TensorArg& index);

}  // namespace flow::ops
