// The arguments of a case, read by PyTorch's names. What no binding reads is reported as not
// supported, so that nothing is passed over.
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

// The library has no such op, argument or value.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The files do not follow the format.
class BadSpec : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One argument, or the several names one argument has in different functions.
class Names {
 public:
  Names(const char* name) : names_{name} {}  // NOLINT(google-explicit-constructor)

  Names(std::initializer_list<const char*> names) : names_(names) {}

  auto begin() const { return names_.begin(); }

  auto end() const { return names_.end(); }

 private:
  std::vector<const char*> names_;
};

// Throw NotSupported for a value of another kind. Infinities are words.
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
  // `floating`: what stands for float32.
  Attrs(Json values, DType floating);

  // A JSON null counts as absent.
  bool has(const Names& names) const { return find(names) != nullptr; }

  // Sets `field` when the argument is there.
  template <class T>
  bool read(const Names& names, T& field) {
    const Json* value = take(names);
    if (value != nullptr) convert(*value, field);
    return value != nullptr;
  }

  template <class T>
  T get(const Names& names) {
    T value{};
    if (!read(names, value)) throw NotSupported(str("no argument ", *names.begin()));
    return value;
  }

  template <class T>
  T get(const Names& names, std::type_identity_t<T> fallback) {
    read(names, fallback);
    return fallback;
  }

  // The dtype an argument names.
  std::optional<DType> dtype(const Names& names = "dtype");
  // An argument the library lacks: it may stand there with this value only.
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

// "float32" or "torch.float32".
DType dtype_named(std::string name, DType floating);

}  // namespace flow::conform
