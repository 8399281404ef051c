// The arguments of a case, read by PyTorch's names. An argument that no binding reads is reported
// as not supported, so that no argument is ignored.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/scalar.h"
#include "core/shape.h"

namespace flow::conform {

using Json = nlohmann::json;

// flow does not have the op, argument or value.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A file has the wrong format.
class BadSpec : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The names that one argument has in different functions.
class Names {
 public:
  Names(const char* name) : names_{name} {}  // NOLINT(google-explicit-constructor)

  Names(std::initializer_list<const char*> names) : names_(names) {}

  auto begin() const { return names_.begin(); }

  auto end() const { return names_.end(); }

 private:
  std::vector<const char*> names_;
};

// Convert a JSON value. Throw NotSupported if it has another type. Infinities are strings.
void convert(const Json& value, bool& target);
void convert(const Json& value, int64_t& target);
void convert(const Json& value, double& target);
void convert(const Json& value, std::string& target);
void convert(const Json& value, Scalar& target);
void convert(const Json& value, Ints& target);
void convert(const Json& value, Shape& target);
void convert(const Json& value, Padding& target);
void convert(const Json& value, std::vector<double>& target);

template <class T>
void convert(const Json& value, std::optional<T>& target) {
  convert(value, target.emplace());
}

// How a call gives one argument.
struct ArgumentUse {
  enum class Type : uint8_t { kUnknown, kBool, kNumber, kWord, kDtype, kTensor };

  std::string name;  // the first of its names
  Type type = Type::kUnknown;
  std::string value;  // as JSON; empty if the call leaves the argument out and no default is known
  bool is_default = true;
};

// True if both are the same argument.
bool is_same_value(const Ints& a, const Ints& b);
bool is_same_value(const Padding& a, const Padding& b);

template <class T>
bool is_same_value(const T& a, const T& b) {
  return a == b;
}

template <class T>
bool is_same_value(const std::optional<T>& a, const std::optional<T>& b) {
  return a.has_value() == b.has_value() && (!a || is_same_value(*a, *b));
}

class Attrs {
 public:
  // `floating`: the dtype that replaces float32.
  Attrs(Json values, DType floating);

  // A JSON null counts as absent.
  bool has(const Names& names);

  // Sets `field`, which contains the default, if the argument is present.
  template <class T>
  bool read(const Names& names, T& field) {
    const Json* value = take(names);
    const T fallback = field;
    if (value != nullptr) convert(*value, field);
    note(names, type_of<T>(), value, value == nullptr || is_same_value(field, fallback));
    if constexpr (std::is_same_v<T, std::string>) {
      if (value == nullptr) uses_.back().value = Json(fallback).dump();
    }
    return value != nullptr;
  }

  template <class T>
  T get(const Names& names) {
    const Json* given = take(names);
    if (given == nullptr) throw NotSupported(str("a call without argument ", *names.begin()));
    T value{};
    convert(*given, value);
    note(names, type_of<T>(), given, false);
    return value;
  }

  template <class T>
  T get(const Names& names, std::type_identity_t<T> fallback) {
    read(names, fallback);
    return fallback;
  }

  // The dtype that an argument names.
  std::optional<DType> dtype(const Names& names = "dtype");
  // An argument that flow does not have. It may be present only with this value.
  void only(const Names& names, const Json& value);
  const Json& json(const Names& names);

  std::vector<std::string> unread() const;

  // The arguments that were read, in order; one may occur several times.
  const std::vector<ArgumentUse>& uses() const { return uses_; }

 private:
  template <class T>
  static constexpr ArgumentUse::Type type_of() {
    if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::optional<bool>>) {
      return ArgumentUse::Type::kBool;
    } else if constexpr (std::is_same_v<T, std::string> ||
                         std::is_same_v<T, std::optional<std::string>>) {
      return ArgumentUse::Type::kWord;
    } else {
      return ArgumentUse::Type::kNumber;
    }
  }

  void note(const Names& names, ArgumentUse::Type type, const Json* given, bool is_default);
  const Json* find(const Names& names) const;
  const Json* take(const Names& names);

  Json values_;
  DType floating_;
  std::set<std::string> read_;
  std::vector<ArgumentUse> uses_;
};

// Parses "float32" or "torch.float32".
DType dtype_named(std::string name, DType floating);

}  // namespace flow::conform
