#include "core/scalar.h"

#include <array>
#include <charconv>
#include <ostream>
#include <string_view>

#include "core/default_dtype.h"

namespace flow {

std::ostream& operator<<(std::ostream& out, const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::kBool:
      return out << (scalar.to<bool>() ? "true" : "false");
    case Scalar::Kind::kInt:
      return out << scalar.to<int64_t>();
    case Scalar::Kind::kFloat:
      break;
  }
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), scalar.to<double>()).ptr;
  const std::string_view digits(text.data(), static_cast<size_t>(end - text.data()));
  out << digits;
  // The text of a float must be read back as a float.
  if (digits.find_first_of(".einf") == std::string_view::npos) out << ".0";
  return out;
}

DType promote(DType tensor, const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::kBool:
      return tensor;
    case Scalar::Kind::kInt:
      return tensor == DType::kBool ? DType::kInt64 : tensor;
    case Scalar::Kind::kFloat:
      break;
  }
  return is_floating(tensor) ? tensor : default_dtype();
}

}  // namespace flow
