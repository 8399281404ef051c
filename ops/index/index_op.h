// Definitions of the index family. Indices are int64 throughout.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// Inputs: x, then one index tensor for each of `dims` (ascending), all of one shape.
struct IndexAttrs {
  Shape dims;
  bool counts_from_end = true;  // negative indices count from the end; else they are out of range

  static constexpr auto fields() {
    return std::tuple(key_field("dims", &IndexAttrs::dims),
                      key_field("counts_from_end", &IndexAttrs::counts_from_end));
  }
};

// Inputs: x, values, then the index tensors.
struct IndexPutAttrs {
  Shape dims;
  bool accumulate = false;
  bool counts_from_end = true;  // as in IndexAttrs

  static constexpr auto fields() {
    return std::tuple(key_field("dims", &IndexPutAttrs::dims),
                      key_field("accumulate", &IndexPutAttrs::accumulate),
                      key_field("counts_from_end", &IndexPutAttrs::counts_from_end));
  }
};

// Inputs: y, then the index tensors. The result is zeros of `shape` to which the elements of y are
// added at their positions.
struct UnindexAttrs {
  Shape dims;
  Shape shape;

  static constexpr auto fields() {
    return std::tuple(key_field("dims", &UnindexAttrs::dims),
                      key_field("shape", &UnindexAttrs::shape));
  }
};

struct NonzeroAttrs {
  int64_t count = 0;

  static constexpr auto fields() { return std::tuple(key_field("count", &NonzeroAttrs::count)); }
};

struct OneHotAttrs {
  int64_t num_classes = 0;

  static constexpr auto fields() {
    return std::tuple(key_field("num_classes", &OneHotAttrs::num_classes));
  }
};

extern const OpDef kIndex, kIndexPut, kUnindex, kNonzero, kOneHot;

// Reads a value that determines the shape of an op's result. Throws Unsupported while a call is
// traced.
int64_t size_in(const char* op, const Tensor& value, Site site);
// The position of the selected dims of x[…] in the result.
int64_t picked_position(const Shape& dims);
// The shape of x[…] for index tensors of shape `picked`.
Shape indexed_shape(const Shape& x, const Shape& dims, const Shape& picked);

}  // namespace flow::ops
