#include "ops/number_range.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/error.h"

namespace flow::ops {

namespace {

// The least double that rounds to infinity in float32.
constexpr double kInfiniteFloat = 0x1.ffffffp127;

struct Bounds {
  int64_t lowest;
  int64_t highest;
};

Bounds bounds_of(DType dtype) {
  return dispatch_all(dtype, []<class T>() -> Bounds {
    if constexpr (std::is_integral_v<T>) {
      return {std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()};
    } else {
      return {};
    }
  });
}

// Returns true if the integral part of `number` is between the bounds.
bool lies_within(const Bounds& bounds, const Scalar& number) {
  if (!number.is_floating()) {
    const auto value = number.to<int64_t>();
    return value >= bounds.lowest && value <= bounds.highest;
  }
  const double value = std::trunc(number.to<double>());  // NaN is in no range
  return value >= static_cast<double>(bounds.lowest) &&
         (bounds.highest == std::numeric_limits<int64_t>::max()
              ? value < 0x1p63
              : value <= static_cast<double>(bounds.highest));
}

// Returns true if `number` is finite and rounds to infinity in the floating dtype `dtype`.
bool overflows(DType dtype, const Scalar& number) {
  const auto value = number.to<double>();
  return std::isfinite(value) && dispatch_floating(dtype, [value]<class T>() {
           if constexpr (std::is_same_v<T, double>) {
             return false;
           } else {
             // Narrowing to float is not defined for numbers that it does not hold.
             return std::abs(value) >= kInfiniteFloat ||
                    std::isinf(static_cast<float>(static_cast<T>(static_cast<float>(value))));
           }
         });
}

}  // namespace

bool holds_number(DType dtype, const Scalar& number) {
  return !is_integral(dtype) || lies_within(bounds_of(dtype), number);
}

bool is_whole_number(double number) {
  return number == std::trunc(number) && holds_number(int64, number);
}

void check_fill_value(DType dtype, const Scalar& number, const char* op, Site site) {
  if (is_floating(dtype)) {
    if (!overflows(dtype, number)) return;
    throw InvalidArgument(str("[", op, "] ", number, " does not fit into ", dtype,
                              "; give a smaller number or infinity, or take a wider dtype"),
                          site);
  }
  if (holds_number(dtype, number)) return;
  const Bounds bounds = bounds_of(dtype);
  if (dtype == DType::kUInt8 && !number.is_floating() && lies_within({-bounds.highest, 0}, number))
    return;
  throw InvalidArgument(
      str("[", op, "] ", number, " does not fit into ", dtype, "; give a number from ",
          bounds.lowest, " to ", bounds.highest, ", or take a wider dtype"),
      site);
}

}  // namespace flow::ops
