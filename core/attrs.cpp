#include "core/attrs.h"

#include <charconv>
#include <cstdlib>
#include <vector>

#include "core/error.h"

namespace flow::internal {

namespace {

[[noreturn]] void throw_unparsable(std::string_view text, const char* what) {
  throw InvalidArgument(str("[attrs] cannot read '", text, "' as ", what));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

template <class T>
T parse_number(std::string_view text, const char* what) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) throw_unparsable(text, what);
  return value;
}

// Splits "a, (b, c), [d, e]" at the commas outside of brackets.
std::vector<std::string_view> split_top_level(std::string_view text) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '(' || c == '[') ++depth;
    if (c == ')' || c == ']') --depth;
    if (c == ',' && depth == 0) {
      parts.push_back(trim(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  const std::string_view last = trim(text.substr(start));
  if (!last.empty()) parts.push_back(last);
  return parts;
}

std::vector<int64_t> parse_integers(std::string_view text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') {
    throw_unparsable(text, "a list of integers");
  }
  std::vector<int64_t> values;
  for (const std::string_view part : split_top_level(text.substr(1, text.size() - 2))) {
    values.push_back(parse_number<int64_t>(part, "an integer"));
  }
  return values;
}

// Parses "((0, 1), (2, 3))": collects the leaves and the size of each level.
size_t parse_ranks(std::string_view text, size_t depth, std::vector<int64_t>& ranks,
                   std::vector<int64_t>& shape) {
  if (text.size() < 2 || text.front() != '(' || text.back() != ')') {
    ranks.push_back(parse_number<int64_t>(text, "a rank"));
    return depth;
  }
  const auto parts = split_top_level(text.substr(1, text.size() - 2));
  if (shape.size() == depth) shape.push_back(static_cast<int64_t>(parts.size()));
  size_t deepest = depth;
  for (const std::string_view part : parts) {
    deepest = parse_ranks(part, depth + 1, ranks, shape);
  }
  return deepest;
}

}  // namespace

std::string field_to_string(bool v) {
  return v ? "true" : "false";
}

std::string field_to_string(int64_t v) {
  return std::to_string(v);
}

std::string field_to_string(double v) {
  return str(Scalar(v));
}

std::string field_to_string(DType v) {
  return std::string(dtype_name(v));
}

std::string field_to_string(DeviceType v) {
  return std::string(device_type_name(v));
}

std::string field_to_string(const Scalar& v) {
  return str(v);
}

std::string field_to_string(const Shape& v) {
  return list_to_string(v.data(), static_cast<size_t>(v.size()));
}

std::string field_to_string(const Placement& v) {
  return str(v);
}

std::string field_to_string(const NdSbp& v) {
  return v.empty() ? "none" : str(v);
}

std::string list_to_string(const int64_t* values, size_t count) {
  std::string text = "[";
  for (size_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(values[i]);
  }
  return text + "]";
}

void parse_field(std::string_view text, bool& v) {
  if (text != "true" && text != "false") throw_unparsable(text, "true or false");
  v = text == "true";
}

void parse_field(std::string_view text, int64_t& v) {
  v = parse_number<int64_t>(text, "an integer");
}

void parse_field(std::string_view text, double& v) {
  v = parse_number<double>(text, "a number");
}

void parse_field(std::string_view text, DType& v) {
  v = parse_dtype(text);
}

void parse_field(std::string_view text, DeviceType& v) {
  v = parse_device_type(text);
}

void parse_field(std::string_view text, Scalar& v) {
  if (text == "true" || text == "false") {
    v = Scalar(text == "true");
  } else if (text.find_first_of(".einf") == std::string_view::npos) {
    v = Scalar(parse_number<int64_t>(text, "a number"));
  } else {
    v = Scalar(parse_number<double>(text, "a number"));
  }
}

void parse_field(std::string_view text, Shape& v) {
  v = Shape(parse_integers(text));
}

void parse_field(std::string_view text, Placement& v) {
  v = Placement();
  if (text == "local") return;
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) throw_unparsable(text, "a placement such as cpu:(0, 1)");
  std::vector<int64_t> ranks;
  std::vector<int64_t> shape;
  parse_ranks(text.substr(colon + 1), 0, ranks, shape);
  v = Placement(parse_device_type(text.substr(0, colon)), Shape(shape), ranks);
}

void parse_field(std::string_view text, NdSbp& v) {
  v = text == "none" ? NdSbp() : NdSbp::parse(text);
}

void parse_list(std::string_view text, int64_t* values, size_t count) {
  const std::vector<int64_t> parsed = parse_integers(text);
  if (parsed.size() != count) throw_unparsable(text, "a list of the right length");
  std::copy(parsed.begin(), parsed.end(), values);
}

std::string_view find_field(std::string_view text, std::string_view name) {
  for (const std::string_view part : split_top_level(text)) {
    const size_t equals = part.find('=');
    if (equals != std::string_view::npos && part.substr(0, equals) == name) {
      return part.substr(equals + 1);
    }
  }
  throw InvalidArgument(
      str("[attrs] field '", name, "' is missing in '", text, "'; write it as name=value"));
}

}  // namespace flow::internal
