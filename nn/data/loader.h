// DataLoader: batches of a dataset.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/generator.h"
#include "core/tensor.h"
#include "ops/concat.h"

namespace flow::data {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;
};

// The order of one pass over `size` samples: 0, 1, … or a permutation drawn from `random`
// (Fisher and Yates 1938, as Durstenfeld 1964).
std::vector<int64_t> sample_order(int64_t size, bool shuffle, const RandomStream& random);

// Each pass (begin) draws a new order from the rank's generator when shuffling. Owns its dataset; a
// Dataset has size() and operator[](i), which gives a pair of tensors that are stacked along a new
// first dim.
//   for (auto [x, y] : DataLoader(Mnist(root), {.batch_size = 64, .shuffle = true})) …
template <class Dataset>
class DataLoader {
 public:
  using Batch = typename Dataset::Sample;

  // Throws InvalidArgument unless batch_size is positive.
  explicit DataLoader(Dataset dataset, const DataLoaderOptions& options = {});

  class Iterator {
   public:
    Batch operator*() const { return loader_->batch(order_, at_); }

    Iterator& operator++() {
      ++at_;
      return *this;
    }

    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    friend class DataLoader;

    Iterator(const DataLoader* loader, std::vector<int64_t> order, int64_t at)
        : loader_(loader), order_(std::move(order)), at_(at) {}

    const DataLoader* loader_;
    std::vector<int64_t> order_;
    int64_t at_;
  };

  Iterator begin();

  Iterator end() { return {this, {}, num_batches()}; }

  int64_t num_batches() const;

  const Dataset& dataset() const { return dataset_; }

 private:
  Batch batch(const std::vector<int64_t>& order, int64_t number) const;

  Dataset dataset_;
  DataLoaderOptions options_;
};

namespace internal {
void check_batch_size(int64_t batch_size);
RandomStream next_stream();
}  // namespace internal

template <class Dataset>
DataLoader<Dataset>::DataLoader(Dataset dataset, const DataLoaderOptions& options)
    : dataset_(std::move(dataset)), options_(options) {
  internal::check_batch_size(options.batch_size);
}

template <class Dataset>
int64_t DataLoader<Dataset>::num_batches() const {
  const int64_t size = dataset_.size();
  return options_.drop_last ? size / options_.batch_size
                            : (size + options_.batch_size - 1) / options_.batch_size;
}

template <class Dataset>
typename DataLoader<Dataset>::Iterator DataLoader<Dataset>::begin() {
  const RandomStream random = options_.shuffle ? internal::next_stream() : RandomStream{};
  return {this, sample_order(dataset_.size(), options_.shuffle, random), 0};
}

template <class Dataset>
typename DataLoader<Dataset>::Batch DataLoader<Dataset>::batch(const std::vector<int64_t>& order,
                                                               int64_t number) const {
  std::vector<Tensor> first, second;
  const int64_t end = std::min(dataset_.size(), (number + 1) * options_.batch_size);
  for (int64_t i = number * options_.batch_size; i < end; ++i) {
    auto [a, b] = dataset_[order[static_cast<size_t>(i)]];
    first.push_back(std::move(a));
    second.push_back(std::move(b));
  }
  return {stack(first, 0), stack(second, 0)};
}

}  // namespace flow::data
