// A number together with its category: bool, integer or floating.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <type_traits>

#include "core/dtype.h"

namespace flow {

// A host number as an operand. Its category takes part in type promotion; its width does not.
class Scalar {
 public:
  enum class Kind : uint8_t { kBool, kInt, kFloat };

  constexpr Scalar() : Scalar(int64_t{0}) {}
  template <class T>
  requires std::is_arithmetic_v<T>

  constexpr Scalar(T value) {  // NOLINT(google-explicit-constructor): numbers mix with tensors
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::kBool;
      int_ = value ? 1 : 0;
    } else if constexpr (std::is_integral_v<T>) {
      kind_ = Kind::kInt;
      int_ = static_cast<int64_t>(value);
    } else {
      kind_ = Kind::kFloat;
      float_ = static_cast<double>(value);
    }
  }

  constexpr Kind kind() const { return kind_; }

  constexpr bool is_floating() const { return kind_ == Kind::kFloat; }

  template <class T>
  constexpr T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return is_floating() ? float_ != 0 : int_ != 0;
    } else if constexpr (std::is_arithmetic_v<T>) {
      return is_floating() ? static_cast<T>(float_) : static_cast<T>(int_);
    } else {
      return T(is_floating() ? static_cast<float>(float_) : static_cast<float>(int_));
    }
  }

  // True if category and value are the same. Floats compare by bits, so NaN equals itself.
  friend bool operator==(const Scalar& a, const Scalar& b) {
    return a.kind_ == b.kind_ && a.int_ == b.int_;
  }

  uint64_t bits() const { return static_cast<uint64_t>(int_); }

 private:
  Kind kind_ = Kind::kInt;

  union {
    int64_t int_ = 0;
    double float_;
  };
};

std::ostream& operator<<(std::ostream& out, const Scalar& scalar);

// The dtype of `tensor op scalar`: the tensor's dtype, unless the scalar's category is higher (an
// integer tensor with a float gives the default floating dtype; a bool tensor with an integer gives
// int64).
DType promote(DType tensor, const Scalar& scalar);

}  // namespace flow
