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

class Attrs {
 public:
  // `floating`: the dtype that replaces float32.
  Attrs(Json values, DType floating);

  // A JSON null counts as absent.
  bool has(const Names& names) const { return find(names) != nullptr; }

  // Sets `field` if the argument is present.
  template <class T>
  bool read(const Names& names, T& field) {
    const Json* value = take(names);
    if (value != nullptr) convert(*value, field);
    return value != nullptr;
  }

  template <class T>
  T get(const Names& names) {
    T value{};
    if (!read(names, value)) throw NotSupported(str("a call without argument ", *names.begin()));
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

 private:
  const Json* find(const Names& names) const;
  const Json* take(const Names& names);

  Json values_;
  DType floating_;
  std::set<std::string> read_;
};

// Parses "float32" or "torch.float32".
DType dtype_named(std::string name, DType floating);

}  // namespace flow::conform
