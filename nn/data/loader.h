// DataLoader: batches of a dataset.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/generator.h"
#include "core/placement.h"
#include "core/sbp.h"
#include "core/tensor.h"
#include "nn/data/sample_random.h"
#include "nn/data/sampler.h"
#include "nn/module.h"
#include "ops/shape/concat.h"

namespace flow::data {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  std::shared_ptr<Sampler> sampler = {};  // in place of shuffle
  int64_t num_workers = 0;                // threads that make batches ahead; 0: none
  bool drop_last = false;
  int64_t prefetch_factor = 2;  // batches that each worker is ahead at most
  // Given: batches are global tensors. Size and order are those of the logical batch, and each rank
  // reads its own rows only where sbp splits dim 0 or nothing.
  Placement placement = {};
  NdSbp sbp = {};
};

namespace internal {

// What of the loader does not depend on the dataset.
class BatchPlan {
 public:
  BatchPlan(const DataLoaderOptions& options, int64_t dataset_size);

  const DataLoaderOptions& options() const { return options_; }

  int64_t num_batches() const;
  // The samples of a batch that this rank reads, of `order`.
  std::vector<int64_t> own_samples(const std::vector<int64_t>& order, int64_t number) const;
  // A local batch as the options want it.
  Tensor placed(const Tensor& batch) const;
  // The stream and the order of the next pass, which begins at next_batch(): a new one, or the one
  // that was loaded.
  std::vector<int64_t> begin_pass();

  // For transforms of the pass.
  RandomStream transforms() const { return transform_stream(random_, epoch_); }

  int64_t next_batch() const { return next_batch_; }

  void set_next_batch(int64_t number) { next_batch_ = number; }

  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  bool reads_own_rows() const;

  DataLoaderOptions options_;
  int64_t dataset_size_;
  RandomStream random_;  // of the pass
  bool has_pass_ = false, resumes_ = false;
  int64_t next_batch_ = 0;
  int64_t epoch_ = -1;  // passes begun before this one
};

// Threads that make numbered things in order of demand.
class Prefetcher {
 public:
  using Make = std::function<std::shared_ptr<void>(int64_t number)>;

  Prefetcher(int64_t first, int64_t last, const DataLoaderOptions& options, Make make);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The things by number, one after another. Throws what making it threw, and goes no further.
  std::shared_ptr<void> next();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

// f of each tensor of a batch.
template <class F>
Tensor map_tensors(const Tensor& batch, const F& f) {
  return f(batch);
}

template <TupleLike B, class F>
B map_tensors(const B& batch, const F& f) {
  return std::apply([&](const auto&... tensors) { return B{f(tensors)...}; }, batch);
}

// Samples stacked along a new first dim.
inline Tensor collate(const std::vector<Tensor>& samples) {
  return stack(samples, 0);
}

template <TupleLike S>
S collate(const std::vector<S>& samples) {
  return [&]<size_t... I>(std::index_sequence<I...>) {
    const auto column = [&]<size_t i>(std::integral_constant<size_t, i>) {
      std::vector<Tensor> tensors;
      for (const S& sample : samples)
        tensors.push_back(std::get<i>(sample));
      return stack(tensors, 0);
    };
    return S{column(std::integral_constant<size_t, I>())...};
  }
  (std::make_index_sequence<std::tuple_size_v<S>>());
}

}  // namespace internal

// Each pass (begin) draws a new order from the rank's generator when shuffling; a local loader's
// order differs between ranks. Random ops in a dataset's operator[] or transforms draw by the
// generator's seed at the pass's begin, the pass and the sample: any number of workers and a
// resumed pass give the same numbers, and the rank's generator stays as it is. Owns its dataset
// (see dataset.h). One pass at a time.
//   for (auto [x, y] : DataLoader(Mnist(root), {.batch_size = 64, .shuffle = true})) …
template <class Dataset>
class DataLoader {
 public:
  using Batch = typename Dataset::Sample;

  // Throws InvalidArgument for options that do not fit.
  explicit DataLoader(Dataset dataset, const DataLoaderOptions& options = {})
      : dataset_(std::move(dataset)), plan_(options, dataset_.size()) {}

  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  class Iterator {
   public:
    const Batch& operator*() {
      if (!current_) current_ = std::make_shared<Batch>(loader_->take(at_));
      return *current_;
    }

    Iterator& operator++() {
      if (!current_) **this;
      current_.reset();
      ++at_;
      return *this;
    }

    bool operator!=(const Iterator& other) const { return at_ != other.at_; }

   private:
    friend class DataLoader;

    Iterator(DataLoader* loader, int64_t at) : loader_(loader), at_(at) {}

    DataLoader* loader_;
    int64_t at_;
    std::shared_ptr<Batch> current_;
  };

  Iterator begin() {
    prefetcher_.reset();
    order_ = plan_.begin_pass();
    transforms_ = plan_.transforms();
    if (plan_.options().num_workers > 0) {
      prefetcher_ = std::make_unique<internal::Prefetcher>(
          plan_.next_batch(), num_batches(), plan_.options(),
          [this](int64_t number) { return std::make_shared<Batch>(local_batch(number)); });
    }
    return {this, plan_.next_batch()};
  }

  Iterator end() { return {this, num_batches()}; }

  int64_t num_batches() const { return plan_.num_batches(); }

  const Dataset& dataset() const { return dataset_; }

  // Which batches of the pass have been taken. A loader of the same dataset and options that loads
  // it begins its next pass with the batch after them. The generator's state, from which later
  // passes draw, is the program's to keep (generator_state()).
  nn::StateDict state_dict() const { return plan_.state_dict(); }

  void load_state_dict(const nn::StateDict& state) { plan_.load_state_dict(state); }

 private:
  Batch take(int64_t number) {
    Batch local =
        prefetcher_ ? *std::static_pointer_cast<Batch>(prefetcher_->next()) : local_batch(number);
    plan_.set_next_batch(number + 1);
    if (!plan_.options().placement.defined()) return local;
    return internal::map_tensors(local, [this](const Tensor& x) { return plan_.placed(x); });
  }

  Batch local_batch(int64_t number) const {
    std::vector<int64_t> indices = plan_.own_samples(order_, number);
    const bool is_empty = indices.empty();
    if (is_empty) indices.push_back(order_[0]);  // for its shape
    Batch batch = samples(indices);
    if (!is_empty) return batch;
    return internal::map_tensors(batch, [](const Tensor& x) { return x.narrow(0, 0, 0); });
  }

  Batch samples(const std::vector<int64_t>& indices) const {
    if constexpr (requires { dataset_.batch(indices); }) {
      const internal::SampleRandomScope scope(transforms_, indices[0]);
      return dataset_.batch(indices);
    } else {
      std::vector<Batch> list;
      for (const int64_t i : indices) {
        const internal::SampleRandomScope scope(transforms_, i);
        list.push_back(dataset_[i]);
      }
      return internal::collate(list);
    }
  }

  Dataset dataset_;
  internal::BatchPlan plan_;
  std::vector<int64_t> order_;
  RandomStream transforms_;  // of the pass
  std::unique_ptr<internal::Prefetcher> prefetcher_;
};

}  // namespace flow::data
