#include "nn/layers/option_text.h"

#include <charconv>
#include <cmath>

#include "core/error.h"

namespace flow::nn::internal {

namespace {

template <class Values>
std::string tuple_of(const Values& values) {
  std::string text = "(";
  int64_t count = 0;
  for (const int64_t value : values)
    text += str(count++ == 0 ? "" : ", ", value);
  return text + (count == 1 ? ",)" : ")");
}

}  // namespace

// Python writes an exponent for numbers below 1e-4 and from 1e16 on, with two digits at least, as
// to_chars does in the scientific form.
std::string text_of(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  const double size = std::abs(value);
  const bool has_exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  char digits[64];
  const auto end =
      std::to_chars(digits, digits + sizeof(digits), value,
                    has_exponent ? std::chars_format::scientific : std::chars_format::fixed)
          .ptr;
  std::string text(digits, end);
  if (!has_exponent && text.find('.') == std::string::npos) text += ".0";
  return text;
}

std::string text_of(bool value) {
  return value ? "True" : "False";
}

std::string text_of(int64_t value) {
  return std::to_string(value);
}

std::string text_of(std::string_view value) {
  return "'" + std::string(value) + "'";
}

std::string text_of(const char* value) {
  return text_of(std::string_view(value));
}

std::string text_of(const Ints& values) {
  return values.size() == 1 ? text_of(values[0]) : tuple_of(values);
}

std::string text_of(const Shape& values) {
  return tuple_of(values);
}

std::string tuple_text(const Ints& values, int64_t dims) {
  if (values.size() != 1) return tuple_of(values);
  return tuple_of(Ints(std::vector<int64_t>(static_cast<size_t>(dims), values[0])));
}

}  // namespace flow::nn::internal
