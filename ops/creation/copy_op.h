// Definitions of the ops of ops/creation/copy.h and of the methods copy_, fill_, zero_.
#pragma once

#include <tuple>

#include "core/op.h"
#include "core/tensor.h"

namespace flow::ops {

struct FillAttrs {
  Scalar value;

  static constexpr auto fields() { return std::tuple(value_field("value", &FillAttrs::value)); }
};

struct ToDeviceAttrs {
  DeviceType device = DeviceType::kCpu;

  static constexpr auto fields() { return std::tuple(key_field("device", &ToDeviceAttrs::device)); }
};

// y = x in the memory of a given device, row-major.
extern const OpDef kToDevice;
// y = x, row-major.
extern const OpDef kClone;
// (target, source): target = source, broadcast and converted.
extern const OpDef kCopy;
// (target): target = value.
extern const OpDef kFill;

// Throws InvalidArgument unless the memory of a temporary handle, which `op` is to change, is also
// that of a tensor that somebody keeps.
void check_is_seen(const char* op, const Tensor& target, Site site);

// Returns assigned values without the leading dims of size 1 that a target of `dims` dims lacks.
Tensor without_leading_ones(const Tensor& values, int64_t dims, Site site);

}  // namespace flow::ops
