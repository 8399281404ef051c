// The values that build() of a graph takes and returns: tensors, and nested pairs, tuples, arrays,
// vectors and aggregates of tensors.
#pragma once

#include <array>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <typeinfo>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow::nn::internal {

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

// A placeholder that converts to any type, used in the braces of an aggregate.
struct AnyField {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): conversion is its purpose
};

template <class T, size_t... I>
consteval bool takes_fields(std::index_sequence<I...>) {
  return requires {
    T{(static_cast<void>(I), AnyField())...};
  };
}

inline constexpr size_t kMaxFields = 8;

template <class T, size_t kCount = kMaxFields>
consteval size_t num_fields() {
  if constexpr (kCount == 0 || takes_fields<T>(std::make_index_sequence<kCount>())) {
    return kCount;
  } else {
    return num_fields<T, kCount - 1>();
  }
}

// Calls `fn` with all fields of an aggregate, in order.
template <class T, class Fn>
void for_each_field(T& value, const Fn& fn) {
  constexpr size_t kCount = num_fields<std::remove_const_t<T>>();
  const auto all = [&](auto&... field) { (fn(field), ...); };
  if constexpr (kCount == 1) {
    auto& [a] = value;
    all(a);
  } else if constexpr (kCount == 2) {
    auto& [a, b] = value;
    all(a, b);
  } else if constexpr (kCount == 3) {
    auto& [a, b, c] = value;
    all(a, b, c);
  } else if constexpr (kCount == 4) {
    auto& [a, b, c, d] = value;
    all(a, b, c, d);
  } else if constexpr (kCount == 5) {
    auto& [a, b, c, d, e] = value;
    all(a, b, c, d, e);
  } else if constexpr (kCount == 6) {
    auto& [a, b, c, d, e, f] = value;
    all(a, b, c, d, e, f);
  } else if constexpr (kCount == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    all(a, b, c, d, e, f, g);
  } else if constexpr (kCount == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    all(a, b, c, d, e, f, g, h);
  }
}

// Calls `visitor.tensor(Tensor&)` for every tensor, in order, and `visitor.size(n)` before the
// elements of a vector, because the number of elements may differ between calls.
template <class T, class Visitor>
void visit_tensors(T& value, Visitor& visitor) {
  using Value = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Value, Tensor>) {
    visitor.tensor(value);
  } else if constexpr (kIsVector<Value>) {
    visitor.size(value.size());
    for (auto& element : value)
      visit_tensors(element, visitor);
  } else if constexpr (TupleLike<Value>) {
    std::apply([&](auto&... element) { (visit_tensors(element, visitor), ...); }, value);
  } else {
    static_assert(std::is_aggregate_v<Value>,
                  "a graph takes and returns tensors, and pairs, tuples, vectors and aggregates of "
                  "them; numbers are members of the graph");
    for_each_field(value, [&](auto& field) { visit_tensors(field, visitor); });
  }
}

// Collects the tensors of a value and the lengths of its vectors.
struct TensorReader {
  std::vector<Tensor> tensors = {};
  std::vector<size_t> sizes = {};
  std::type_index type = typeid(void);  // of the values, if the caller has set it

  void tensor(const Tensor& tensor) { tensors.push_back(tensor); }

  void size(size_t count) { sizes.push_back(count); }
};

// Replaces the tensors of a value by the given ones, in order.
class TensorWriter {
 public:
  explicit TensorWriter(const std::vector<Tensor>& tensors) : tensors_(tensors) {}

  void tensor(Tensor& tensor) { tensor = tensors_[next_++]; }

  void size(size_t /*count*/) {}

 private:
  const std::vector<Tensor>& tensors_;
  size_t next_ = 0;
};

template <class T>
T with_tensors(T value, const std::vector<Tensor>& tensors) {
  TensorWriter writer(tensors);
  visit_tensors(value, writer);
  return value;
}

}  // namespace flow::nn::internal
