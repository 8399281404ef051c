#include "ops/elementwise/cast.h"

#include "tests/support/op_samples/families.h"

namespace flow::contract {

namespace {

// Values that the narrower dtypes cannot represent, including zeros and numbers of both signs.
SampleInput values_of(DType dtype, DType target, const Shape& shape) {
  SampleInput input{.shape = shape, .low = -4, .high = 4, .dtype = dtype, .zeros = 0.2};
  if (is_integral(dtype) && target == DType::kBool) {
    input.low = dtype == DType::kUInt8 ? 0 : -9;
    input.high = 9;
  } else if (is_integral(dtype)) {
    const double large = target == DType::kFloat16 ? 300 : 2e9;  // finite
    const double half_range = dtype == DType::kInt8    ? 0x1p7
                              : dtype == DType::kInt16 ? 0x1p15
                                                       : large;
    input.low = dtype == DType::kUInt8 ? 0 : -half_range;
    input.high = dtype == DType::kUInt8 ? 255 : half_range - 1;
  } else if (is_floating(dtype)) {
    input.has_specials = shape.numel() > 100;
  }
  return input;
}

}  // namespace

// Covers every pair of dtypes. Neither 16-bit float represents the other's values, so only kernels
// are compared between the two. int64 to float64 loses digits that the test values do not have.
Samples cast_samples() {
  Samples samples;
  for (int from = 0; from < kNumDTypes; ++from) {
    for (int to = 0; to < kNumDTypes; ++to) {
      if (from == to) continue;
      const auto source = static_cast<DType>(from);
      const auto target = static_cast<DType>(to);
      const auto call = [target](const Inputs& x) { cast(x[0], target); };
      for (const Shape& shape : {Shape{5, 2}, Shape{3, 7000}}) {
        samples.push_back({"cast",
                           {values_of(source, target, shape)},
                           kNoDType,
                           call,
                           str(source, " to ", target, ' ', shape)});
        samples.back().only_kernels = shape.numel() > 100 || (is_half(source) && is_half(target));
        samples.back().is_general = source != DType::kInt64 || target != DType::kFloat64;
      }
    }
  }
  return samples;
}

}  // namespace flow::contract
