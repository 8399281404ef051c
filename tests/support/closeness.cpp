#include "tests/support/closeness.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace flow::contract {

Tolerance kernel_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      return kExact;
    case DType::kFloat16:
      return {.relative = 2e-3, .to_largest = 1e-3};
    case DType::kBFloat16:
      return {.relative = 1.6e-2, .to_largest = 8e-3};
    case DType::kFloat32:
      return {.relative = 2e-6, .to_largest = 2e-6};
    case DType::kFloat64:
      break;
  }
  return {.relative = 1e-13, .to_largest = 1e-13};
}

Tolerance sharding_tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return {.absolute = 0.018};
    case DType::kBFloat16:
      return {.absolute = 0.15};
    case DType::kFloat32:
      return {.relative = 1e-5, .absolute = 2e-3};
    case DType::kFloat64:
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      break;
  }
  return {.relative = 1e-6, .absolute = 1e-6};
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return 0x1p-11;
    case DType::kBFloat16:
      return 0x1p-8;
    case DType::kFloat32:
      return 0x1p-24;
    case DType::kFloat64:
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      break;
  }
  return 0x1p-53;
}

std::string difference(const Values& actual, const Values& expected, Tolerance tolerance) {
  if (actual.size() != expected.size()) {
    return str(actual.size(), " elements instead of ", expected.size());
  }
  double largest = 0;
  for (const double value : expected) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  for (size_t i = 0; i < actual.size(); ++i) {
    const double a = actual[i];
    const double b = expected[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double allowed = tolerance.relative * std::max(std::abs(a), std::abs(b)) +
                           tolerance.to_largest * largest + tolerance.absolute;
    if (std::isfinite(a) && std::isfinite(b) && std::abs(a - b) <= allowed) continue;
    return str("element ", i, " is ", a, " instead of ", b);
  }
  return {};
}

}  // namespace flow::contract
