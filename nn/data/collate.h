// How a DataLoader makes a batch of samples.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "ops/creation/creation.h"
#include "ops/shape/concat.h"

namespace flow::data {

namespace internal {

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

template <class S>
struct BatchType {
  static_assert(
      std::is_arithmetic_v<S>,
      "a sample is a tensor, a number, or an array, pair or tuple of these: give the "
      "dataset such a Sample type, for example std::tuple<flow::Tensor, int64_t> in place "
      "of a struct");
  using Type = Tensor;
};

template <>
struct BatchType<Tensor> {
  using Type = Tensor;
};

template <class S, size_t N>
struct BatchType<std::array<S, N>> {
  using Type = std::array<typename BatchType<S>::Type, N>;
};

template <class A, class B>
struct BatchType<std::pair<A, B>> {
  using Type = std::pair<typename BatchType<A>::Type, typename BatchType<B>::Type>;
};

template <class... S>
struct BatchType<std::tuple<S...>> {
  using Type = std::tuple<typename BatchType<S>::Type...>;
};

}  // namespace internal

// The batch of samples of type S: a tensor for a tensor or a number, and arrays, pairs and tuples
// of tensors for those of tensors and numbers.
template <class S>
using BatchOf = typename internal::BatchType<S>::Type;

namespace internal {

// Applies f to each tensor of a batch.
template <class F>
Tensor map_tensors(const Tensor& batch, const F& f) {
  return f(batch);
}

template <TupleLike B, class F>
B map_tensors(const B& batch, const F& f) {
  return std::apply([&](const auto&... parts) { return B{map_tensors(parts, f)...}; }, batch);
}

}  // namespace internal

// Stacks samples along a new first dim: tensors of one shape as stack does, numbers to a tensor
// with one dim (int64 for int and wider integers, as PyTorch's default_collate does, else the dtype
// of the C++ type), and the parts of arrays, pairs and tuples one by one. Requires: at least one
// sample.
template <class S>
BatchOf<S> collate(const std::vector<S>& samples) {
  if constexpr (std::same_as<S, Tensor>) {
    return stack(TensorListArg(samples, Site::none()), 0);
  } else if constexpr (internal::TupleLike<S>) {
    const auto column = [&]<size_t i>(std::integral_constant<size_t, i>) {
      std::vector<std::tuple_element_t<i, S>> parts;
      for (const S& sample : samples)
        parts.push_back(std::get<i>(sample));
      return collate(parts);
    };
    return [&]<size_t... i>(std::index_sequence<i...>) {
      return BatchOf<S>{column(std::integral_constant<size_t, i>())...};
    }
    (std::make_index_sequence<std::tuple_size_v<S>>());
  } else {
    static_assert(std::same_as<BatchOf<S>, Tensor>);
    if constexpr (std::integral<S> && !std::same_as<S, bool> && sizeof(S) >= sizeof(int)) {
      return tensor(std::vector<int64_t>(samples.begin(), samples.end()));
    } else {
      return tensor(samples);
    }
  }
}

}  // namespace flow::data
