#include "core/dtype.h"

#include <array>
#include <ostream>

#include "core/error.h"

namespace flow {

namespace {
constexpr std::array<std::string_view, kNumDTypes> kNames = {
    "bool",  "uint8",   "int8",     "int16",   "int32",
    "int64", "float16", "bfloat16", "float32", "float64"};
}  // namespace

std::string_view dtype_name(DType dtype) {
  return kNames[static_cast<size_t>(dtype)];
}

DType parse_dtype(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<DType>(i);
  }
  throw InvalidArgument(str("[dtype] unknown dtype '", name,
                            "'; use one of bool, uint8, int8, int16, int32, int64, float16, "
                            "bfloat16, float32, float64"));
}

std::ostream& operator<<(std::ostream& out, DType dtype) {
  return out << dtype_name(dtype);
}

bool can_cast(DType from, DType to) {
  if (is_floating(from)) return is_floating(to);
  return from == DType::kBool || to != DType::kBool;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  const DType low = a < b ? a : b;
  const DType high = a < b ? b : a;
  if (low == DType::kUInt8 && high == DType::kInt8) return DType::kInt16;
  if (low == DType::kFloat16 && high == DType::kBFloat16) return DType::kFloat32;
  return high;
}

namespace internal {
void throw_not_floating(DType dtype) {
  throw Unsupported(str("[dtype] a floating dtype is needed; got ", dtype,
                        "; cast the tensor to float32 or another floating dtype first"));
}
}  // namespace internal

}  // namespace flow
