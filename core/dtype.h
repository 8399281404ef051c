// Element types and the dispatch from a dtype to a C++ type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string_view>
#include <type_traits>

#include "core/float16.h"

namespace flow {

enum class DType : uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64
};

inline constexpr int kNumDTypes = 10;

inline constexpr DType bool_ = DType::kBool, uint8 = DType::kUInt8, int8 = DType::kInt8,
                       int16 = DType::kInt16, int32 = DType::kInt32, int64 = DType::kInt64,
                       float16 = DType::kFloat16, bfloat16 = DType::kBFloat16,
                       float32 = DType::kFloat32, float64 = DType::kFloat64;

constexpr size_t dtype_size(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
      return 1;
    case DType::kInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kFloat64:
      return 8;
  }
  return 0;
}

constexpr bool is_floating(DType dtype) {
  return dtype >= DType::kFloat16;
}

constexpr bool is_integral(DType dtype) {
  return dtype <= DType::kInt64 && dtype != DType::kBool;
}

// Whether it is one of the two floats of 16 bits, which kernels compute in float32.
constexpr bool is_half(DType dtype) {
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// The distance from 1 to the next number that a floating dtype has.
constexpr double machine_epsilon(DType dtype) {
  if (dtype == DType::kFloat16) return 0x1p-10;
  if (dtype == DType::kBFloat16) return 0x1p-7;
  return dtype == DType::kFloat32 ? 0x1p-23 : 0x1p-52;
}

// The name in the API: "float32", "bool", ….
std::string_view dtype_name(DType dtype);
// The inverse of dtype_name; throws InvalidArgument for any other text.
DType parse_dtype(std::string_view name);
std::ostream& operator<<(std::ostream& out, DType dtype);

// The dtype in which an op on tensors of these two dtypes computes. Follows PyTorch's promotion
// lattice: bool < uint8/int8 < int16 < int32 < int64 < float16/bfloat16 < float32 < float64. uint8
// with int8 gives int16; float16 with bfloat16 gives float32.
DType promote(DType a, DType b);
// Whether numbers of `from` may become those of `to` by PyTorch's rules of categories: floating
// ones only floating, and integers no bools.
bool can_cast(DType from, DType to);

template <class T>
struct DTypeOf;

template <>
struct DTypeOf<bool> {
  static constexpr DType kValue = DType::kBool;
};

template <>
struct DTypeOf<uint8_t> {
  static constexpr DType kValue = DType::kUInt8;
};

template <>
struct DTypeOf<int8_t> {
  static constexpr DType kValue = DType::kInt8;
};

template <>
struct DTypeOf<int16_t> {
  static constexpr DType kValue = DType::kInt16;
};

template <>
struct DTypeOf<int32_t> {
  static constexpr DType kValue = DType::kInt32;
};

template <>
struct DTypeOf<int64_t> {
  static constexpr DType kValue = DType::kInt64;
};

template <>
struct DTypeOf<long long> {
  static constexpr DType kValue = DType::kInt64;
};

template <>
struct DTypeOf<Float16> {
  static constexpr DType kValue = DType::kFloat16;
};

template <>
struct DTypeOf<BFloat16> {
  static constexpr DType kValue = DType::kBFloat16;
};

template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kFloat32;
};

template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kFloat64;
};

template <class T>
inline constexpr DType dtype_of = DTypeOf<std::remove_cv_t<T>>::kValue;

// Whether T is the C++ type of one of the two floats of 16 bits.
template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

// Calls fn.template operator()<T>() with the C++ type of `dtype`.
template <class Fn>
decltype(auto) dispatch_all(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kBool:
      return fn.template operator()<bool>();
    case DType::kUInt8:
      return fn.template operator()<uint8_t>();
    case DType::kInt8:
      return fn.template operator()<int8_t>();
    case DType::kInt16:
      return fn.template operator()<int16_t>();
    case DType::kInt32:
      return fn.template operator()<int32_t>();
    case DType::kInt64:
      return fn.template operator()<int64_t>();
    case DType::kFloat16:
      return fn.template operator()<Float16>();
    case DType::kBFloat16:
      return fn.template operator()<BFloat16>();
    case DType::kFloat32:
      return fn.template operator()<float>();
    case DType::kFloat64:
      break;
  }
  return fn.template operator()<double>();
}

namespace internal {
[[noreturn]] void throw_not_floating(DType dtype);
}  // namespace internal

// Like dispatch_all, but for float16, bfloat16, float32 and float64 only; throws Unsupported for
// any other dtype.
template <class Fn>
decltype(auto) dispatch_floating(DType dtype, Fn&& fn) {
  switch (dtype) {
    case DType::kFloat16:
      return fn.template operator()<Float16>();
    case DType::kBFloat16:
      return fn.template operator()<BFloat16>();
    case DType::kFloat32:
      return fn.template operator()<float>();
    case DType::kFloat64:
      return fn.template operator()<double>();
    case DType::kBool:
    case DType::kUInt8:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
      break;
  }
  internal::throw_not_floating(dtype);
}

}  // namespace flow
