// Definitions of the view ops that keep all elements.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

struct ShapeAttrs {
  Shape shape;

  static constexpr auto fields() { return std::tuple(key_field("shape", &ShapeAttrs::shape)); }
};

struct PermuteAttrs {
  Shape dims;

  static constexpr auto fields() { return std::tuple(key_field("dims", &PermuteAttrs::dims)); }
};

extern const OpDef kReshape, kPermute, kExpand;

bool view_reshape(const TensorMeta& input, const Shape& output, const void* attrs, ViewSpec& view);
bool view_permute(const TensorMeta& input, const Shape& output, const void* attrs, ViewSpec& view);
bool view_expand(const TensorMeta& input, const Shape& output, const void* attrs, ViewSpec& view);

// Allows P, P(max) and P(min) from x to y, because the result holds the same elements.
void add_all_partials(SbpContext& ctx);

}  // namespace flow::ops
