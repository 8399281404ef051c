#include "tools/flow_conform/attrs.h"

#include <cmath>
#include <limits>

namespace flow::conform {

namespace {

[[noreturn]] void refuse(const Json& value, const char* wanted) {
  throw NotSupported(str("an argument must be ", wanted, "; got ", value.dump()));
}

std::vector<int64_t> integers(const Json& value) {
  std::vector<int64_t> numbers;
  if (!value.is_array()) {
    convert(value, numbers.emplace_back());
    return numbers;
  }
  for (const Json& number : value)
    convert(number, numbers.emplace_back());
  return numbers;
}

}  // namespace

void convert(const Json& value, bool& target) {
  if (!value.is_boolean()) refuse(value, "true or false");
  target = value.get<bool>();
}

void convert(const Json& value, int64_t& target) {
  if (!value.is_number_integer()) refuse(value, "an integer");
  target = value.get<int64_t>();
}

void convert(const Json& value, double& target) {
  if (value == "inf" || value == "-inf") {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    target = value == "inf" ? kInfinity : -kInfinity;
  } else if (value == "nan") {
    target = std::numeric_limits<double>::quiet_NaN();
  } else {
    if (!value.is_number()) refuse(value, "a number");
    target = value.get<double>();
  }
}

void convert(const Json& value, std::string& target) {
  if (!value.is_string()) refuse(value, "a string");
  target = value.get<std::string>();
}

void convert(const Json& value, Scalar& target) {
  if (value.is_boolean()) {
    target = value.get<bool>();
  } else if (value.is_number_integer()) {
    target = value.get<int64_t>();
  } else {
    double number = 0;
    convert(value, number);
    target = number;
  }
}

void convert(const Json& value, Ints& target) {
  target = integers(value);
}

void convert(const Json& value, Shape& target) {
  target = integers(value);
}

void convert(const Json& value, Padding& target) {
  if (value.is_string()) {
    target = Padding(std::string_view(value.get_ref<const std::string&>()));
  } else {
    target = integers(value);
  }
}

void convert(const Json& value, std::vector<double>& target) {
  target.clear();
  if (!value.is_array()) return convert(value, target.emplace_back());
  for (const Json& number : value)
    convert(number, target.emplace_back());
}

bool is_same_value(const Ints& a, const Ints& b) {
  return a.values() == b.values();
}

bool is_same_value(const Padding& a, const Padding& b) {
  return a.mode() == b.mode() && is_same_value(a.numbers(), b.numbers());
}

DType dtype_named(std::string name, DType floating) {
  constexpr std::string_view kPrefix = "torch.";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  DType dtype = floating;
  try {
    dtype = parse_dtype(name);
  } catch (const InvalidArgument&) {
    throw NotSupported("dtype " + name);
  }
  return dtype == float32 ? floating : dtype;
}

Attrs::Attrs(Json values, DType floating) : values_(std::move(values)), floating_(floating) {
  if (values_.is_null()) values_ = Json::object();
  if (!values_.is_object()) throw BadSpec("attrs must be an object");
}

const Json* Attrs::find(const Names& names) const {
  for (const char* name : names) {
    const auto found = values_.find(name);
    if (found != values_.end() && !found->is_null()) return &*found;
  }
  return nullptr;
}

const Json* Attrs::take(const Names& names) {
  for (const char* name : names)
    read_.insert(name);
  return find(names);
}

bool Attrs::has(const Names& names) {
  const Json* value = find(names);
  note(names, ArgumentUse::Type::kUnknown, value, value == nullptr);
  return value != nullptr;
}

void Attrs::note(const Names& names, ArgumentUse::Type type, const Json* given, bool is_default) {
  uses_.push_back({*names.begin(), type, given == nullptr ? "" : given->dump(), is_default});
}

std::optional<DType> Attrs::dtype(const Names& names) {
  const Json* value = take(names);
  note(names, ArgumentUse::Type::kDtype, value, value == nullptr);
  if (value == nullptr) return std::nullopt;
  std::string name;
  convert(*value, name);
  return dtype_named(name, floating_);
}

void Attrs::only(const Names& names, const Json& value) {
  const Json* given = take(names);
  if (given == nullptr || *given == value) return;
  throw NotSupported(str("argument ", *names.begin(), " with another value than ", value.dump()));
}

const Json& Attrs::json(const Names& names) {
  const Json* value = take(names);
  if (value == nullptr) throw NotSupported(str("a call without argument ", *names.begin()));
  note(names, ArgumentUse::Type::kUnknown, value, false);
  return *value;
}

std::vector<std::string> Attrs::unread() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_.items()) {
    if (!value.is_null() && !read_.contains(name)) names.push_back(name);
  }
  return names;
}

}  // namespace flow::conform
