// Definitions of diagonal and its inverse.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct DiagonalAttrs {
  int64_t offset = 0;
  int64_t dim1 = 0;
  int64_t dim2 = 1;

  static constexpr auto fields() {
    return std::tuple(key_field("offset", &DiagonalAttrs::offset),
                      key_field("dim1", &DiagonalAttrs::dim1),
                      key_field("dim2", &DiagonalAttrs::dim2));
  }
};

// The result is zeros with sizes size1 and size2 in dims dim1 and dim2, and the last dim of x on
// their diagonal.
struct UndiagonalAttrs {
  int64_t offset = 0;
  int64_t dim1 = 0;
  int64_t dim2 = 1;
  int64_t size1 = 0;
  int64_t size2 = 0;

  static constexpr auto fields() {
    return std::tuple(
        key_field("offset", &UndiagonalAttrs::offset), key_field("dim1", &UndiagonalAttrs::dim1),
        key_field("dim2", &UndiagonalAttrs::dim2), key_field("size1", &UndiagonalAttrs::size1),
        key_field("size2", &UndiagonalAttrs::size2));
  }
};

// kDiagonalScatter takes a tensor and the values that replace its diagonal (DiagonalAttrs).
extern const OpDef kDiagonal, kUndiagonal, kDiagonalScatter;

}  // namespace flow::ops
