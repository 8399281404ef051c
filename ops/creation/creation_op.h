// Definitions of the ops of ops/creation/creation.h, and what they share with other ops without
// tensor inputs.
#pragma once

#include <tuple>

#include "core/op.h"

namespace flow::ops {

// The attrs that every op without tensor inputs begins with: what is created, and where.
struct LayoutAttrs {
  Shape shape;
  DType dtype = DType::kFloat32;
  DeviceType device = DeviceType::kCpu;
  Placement placement;  // undefined: local
  NdSbp sbp;

  static constexpr auto fields() {
    return std::tuple(
        key_field("shape", &LayoutAttrs::shape), key_field("dtype", &LayoutAttrs::dtype),
        key_field("device", &LayoutAttrs::device), key_field("placement", &LayoutAttrs::placement),
        key_field("sbp", &LayoutAttrs::sbp));
  }
};

// Returns the layout that `options` and the PlacementGuard ask for. Throws InvalidArgument for
// ranks that do not exist, an sbp without a placement, or a device other than the placement's, and
// Unsupported for a device that this build does not support. `dtype` is used if options.dtype is
// unset.
LayoutAttrs resolve_layout(const Shape& shape, DType dtype, const TensorOptions& options,
                           const char* op);
// Sets requires_grad as asked; throws InvalidArgument for a dtype that is not floating.
Tensor with_grad(Tensor tensor, const TensorOptions& options, const char* op);

// The one output of an op whose attrs begin with LayoutAttrs.
void infer_layout(InferContext& ctx);

// Returns true if this rank's part holds logical values: under a partial_sum only the first rank of
// the axis does, and the others hold zeros.
bool holds_values(const TensorMeta& meta, int64_t rank);

struct FullAttrs : LayoutAttrs {
  Scalar value;

  static constexpr auto fields() {
    return std::tuple_cat(LayoutAttrs::fields(),
                          std::tuple(value_field("value", &FullAttrs::value)));
  }
};

// Element i is start + i * step.
struct ArangeAttrs : LayoutAttrs {
  Scalar start;
  Scalar step;

  static constexpr auto fields() {
    return std::tuple_cat(LayoutAttrs::fields(),
                          std::tuple(value_field("start", &ArangeAttrs::start),
                                     value_field("step", &ArangeAttrs::step)));
  }
};

struct LinspaceAttrs : LayoutAttrs {
  double start = 0;
  double end = 0;

  static constexpr auto fields() {
    return std::tuple_cat(LayoutAttrs::fields(),
                          std::tuple(value_field("start", &LinspaceAttrs::start),
                                     value_field("end", &LinspaceAttrs::end)));
  }
};

extern const OpDef kEmpty, kFull, kArange, kLinspace, kEye;

}  // namespace flow::ops
