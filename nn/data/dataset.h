// Datasets of tensors, and datasets made from other datasets.
//
// A dataset has size() and operator[](i), which returns a sample: a tensor, a number, or a pair,
// tuple or array of these. It may name the type of its samples, `Sample`, and may have
// batch(indices), which returns several samples at once, stacked along a new first dim. Several
// threads may read a dataset at the same time. Copies share the data.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/calls/position_arg.h"
#include "core/calls/site_scope.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/tensor.h"

namespace flow::data {

namespace internal {

// Sample i, for which the caller's line counts.
template <class Dataset>
decltype(auto) sample_at(const Dataset& dataset, int64_t i) {
  if constexpr (requires { dataset[PositionArg(i, Site::none())]; }) {
    return dataset[PositionArg(i, Site::none())];
  } else {
    return dataset[i];
  }
}

template <class Dataset>
struct SampleType {
  using Type = std::remove_cvref_t<decltype(std::declval<const Dataset&>()[int64_t{}])>;
};

template <class Dataset>

requires requires {
  typename Dataset::Sample;
}

struct SampleType<Dataset> {
  using Type = typename Dataset::Sample;
};

}  // namespace internal

// The type of a dataset's samples: its `Sample`, or else what operator[] returns.
template <class Dataset>
using SampleOf = typename internal::SampleType<Dataset>::Type;

// Throws InvalidArgument unless 0 <= i < size.
void check_sample(const char* dataset, int64_t i, int64_t size, Site site = Site::here());
// The slices of x along dim 0 with these indices.
Tensor rows(const Tensor& x, const std::vector<int64_t>& indices, Site site = Site::here());
// Part sizes whose sum is `size`. `lengths` are these sizes, or fractions whose sum is 1; then
// sizes are rounded down, and the samples that remain are given one by one to the parts from the
// first. Throws InvalidArgument for other lengths.
std::vector<int64_t> split_sizes(int64_t size, const std::vector<double>& lengths,
                                 Site site = Site::here());

// Sample i is row i of each of the tensors, whose sizes of dim 0 must be equal; otherwise
// InvalidArgument.
//   for (auto [x, y] : DataLoader(TensorDataset(xs, ys), {.batch_size = 32})) …
template <size_t N>
class TensorDataset {
 public:
  using Sample = std::array<Tensor, N>;

  template <class... T>

  requires(sizeof...(T) + 1 == N &&
           (std::same_as<T, Tensor> && ...)) explicit TensorDataset(const TensorArg& first,
                                                                    const T&... others)
      : tensors_{first.tensor(), others...} {
    const SiteScope scope(first.site());
    for (const Tensor& tensor : tensors_) {
      if (tensor.dim() == 0 || tensor.size(0) != tensors_[0].size(0)) {
        throw InvalidArgument(str(
            "[TensorDataset] the tensors must have the same size of dim 0; received ",
            tensors_[0].meta(), " and ", tensor.meta(), "; give each tensor one row per sample"));
      }
    }
  }

  int64_t size() const { return tensors_[0].size(0); }

  Sample operator[](PositionArg i) const {
    check_sample("TensorDataset", i.value, size(), i.site);
    Sample sample;
    for (size_t t = 0; t < N; ++t)
      sample[t] = tensors_[t].select(0, i.value, i.site);
    return sample;
  }

  Sample batch(const std::vector<int64_t>& indices) const {
    Sample batch;
    for (size_t t = 0; t < N; ++t)
      batch[t] = rows(tensors_[t], indices, Site::none());
    return batch;
  }

 private:
  Sample tensors_;
};

template <class... T>
TensorDataset(const T&...) -> TensorDataset<sizeof...(T)>;

// The samples of a dataset with the given indices.
template <class Dataset>
class Subset {
 public:
  using Sample = SampleOf<Dataset>;

  Subset(Dataset dataset, std::vector<int64_t> indices)
      : dataset_(std::move(dataset)), indices_(std::move(indices)) {}

  int64_t size() const { return static_cast<int64_t>(indices_.size()); }

  Sample operator[](PositionArg i) const {
    const SiteScope scope(i.site);
    check_sample("Subset", i.value, size(), i.site);
    return internal::sample_at(dataset_, indices_[static_cast<size_t>(i.value)]);
  }

  Sample batch(const std::vector<int64_t>& wanted) const requires
      requires(const Dataset& d, const std::vector<int64_t>& i) {
    d.batch(i);
  }

  {
    std::vector<int64_t> inner;
    for (const int64_t i : wanted) {
      check_sample("Subset", i, size(), Site::none());
      inner.push_back(indices_[static_cast<size_t>(i)]);
    }
    return dataset_.batch(inner);
  }

  const std::vector<int64_t>& indices() const { return indices_; }

 private:
  Dataset dataset_;
  std::vector<int64_t> indices_;
};

// A dataset whose samples are passed through a function. Several threads may call the function at
// the same time. It may draw random numbers by any op (rand, bernoulli, …); in a DataLoader the
// numbers depend on the sample and not on the thread.
//   Transformed(Mnist(root), [](auto sample) { sample[0] += 0.1 * randn(…); return sample; })
template <class Dataset, class Transform>
class Transformed {
 public:
  using Sample = std::invoke_result_t<const Transform&, SampleOf<Dataset>>;

  Transformed(Dataset dataset, Transform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  int64_t size() const { return dataset_.size(); }

  Sample operator[](PositionArg i) const {
    const SiteScope scope(i.site);
    return transform_(internal::sample_at(dataset_, i.value));
  }

 private:
  Dataset dataset_;
  Transform transform_;
};

namespace internal {
// A permutation drawn from the rank's generator; it is the same on all ranks.
std::vector<int64_t> shared_permutation(int64_t size);
}  // namespace internal

// Splits a dataset into disjoint random parts, given by sizes or fractions: random_split(dataset,
// {0.9, 0.1}). Throws InvalidArgument as split_sizes.
template <class Dataset>
std::vector<Subset<Dataset>> random_split(const Dataset& dataset,
                                          const std::vector<double>& lengths,
                                          Site site = Site::here()) {
  const std::vector<int64_t> sizes = split_sizes(dataset.size(), lengths, site);
  const std::vector<int64_t> order = internal::shared_permutation(dataset.size());
  std::vector<Subset<Dataset>> parts;
  auto from = order.begin();
  for (const int64_t size : sizes) {
    parts.emplace_back(dataset, std::vector<int64_t>(from, from + size));
    from += size;
  }
  return parts;
}

}  // namespace flow::data
