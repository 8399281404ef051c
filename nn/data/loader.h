// DataLoader: iterates over the batches of a dataset.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/generator.h"
#include "core/placement.h"
#include "core/sbp.h"
#include "core/tensor.h"
#include "nn/data/collate.h"
#include "nn/data/dataset.h"
#include "nn/data/sample_random.h"
#include "nn/data/sampler.h"
#include "nn/module.h"

namespace flow::data {

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  std::shared_ptr<Sampler> sampler = {};  // decides the order; replaces shuffle
  // Decides which samples are in each batch; replaces batch_size, shuffle, sampler and drop_last.
  std::shared_ptr<BatchSampler> batch_sampler = {};
  // Threads that make batches ahead of time; 0: the calling thread makes them.
  int64_t num_workers = 0;
  bool drop_last = false;
  int64_t prefetch_factor = 2;  // the number of batches that each worker may be ahead
  // If set, batches are global tensors with this layout. batch_size and the order are those of the
  // logical batch. A rank reads only its own rows if sbp splits dim 0 only, else all of them.
  Placement placement = {};
  NdSbp sbp = {};
};

namespace internal {

// The part of the loader that does not depend on the dataset's type.
class BatchPlan {
 public:
  // `site`: of the loader, for errors.
  BatchPlan(const DataLoaderOptions& options, int64_t dataset_size, Site site);

  const DataLoaderOptions& options() const { return options_; }

  Site site() const { return site_; }

  int64_t num_batches() const;
  // The first row of a logical batch of `size` rows that this rank reads, and their number.
  std::pair<int64_t, int64_t> own_rows(int64_t size) const;
  // The samples of batch `number` of `order` that this rank reads.
  std::vector<int64_t> own_samples(const std::vector<int64_t>& order, int64_t number) const;
  // Converts a local batch to the layout in the options.
  Tensor placed(const Tensor& batch) const;
  // Starts a pass, a new one or the one that was loaded, and returns the samples of its batches,
  // one batch after another. The pass begins at next_batch().
  std::vector<int64_t> begin_pass();

  // The random stream of transforms in this pass.
  RandomStream transforms() const { return transform_stream(random_, epoch_); }

  int64_t next_batch() const { return next_batch_; }

  void set_next_batch(int64_t number) { next_batch_ = number; }

  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state, Site site);

 private:
  bool reads_own_rows() const;
  std::vector<int64_t> draw_order();

  DataLoaderOptions options_;
  int64_t dataset_size_;
  Site site_;
  RandomStream random_;        // of the pass
  std::vector<int64_t> ends_;  // of its batches in the order, if there is a batch_sampler
  bool has_pass_ = false, resumes_ = false;
  int64_t next_batch_ = 0;
  int64_t epoch_ = -1;  // number of passes that began before this one
};

// Returns a tensor of the dataset. Throws InvalidArgument if it is global: ranks read other samples
// than each other, so an op that reads them from a global tensor would mix these.
Tensor checked_sample(const Tensor& sample);

// Threads that make numbered items ahead of time and hand them out in order.
class Prefetcher {
 public:
  using Make = std::function<std::shared_ptr<void>(int64_t number)>;

  Prefetcher(int64_t first, int64_t last, const DataLoaderOptions& options, Make make);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Waits for the next item and returns it. If making it threw, rethrows that exception, in later
  // calls as well.
  std::shared_ptr<void> next();

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace internal

// Samples are local tensors, numbers, or arrays, pairs and tuples of these, and become batches as
// collate() says. Each pass, started by begin(), draws a new order from the rank's generator if
// shuffle is set; with local batches the order differs between ranks. Random ops in the dataset's
// operator[] and in transforms use numbers that depend only on the generator's seed at the start of
// the pass, on the pass and on the sample. So they are the same with any number of workers and in a
// resumed pass, and the rank's generator does not advance. A PlacementGuard around the loop does
// not reach the dataset. The loader owns its dataset (see dataset.h). Only one pass can run at a
// time.
//   for (auto [x, y] : DataLoader(Mnist(root), {.batch_size = 64, .shuffle = true})) …
template <class Dataset>
class DataLoader {
 public:
  using Batch = BatchOf<SampleOf<Dataset>>;

  // Throws InvalidArgument if the options are out of range or contradict each other.
  // Errors of a pass that no line of the user's program causes have that of the loader.
  explicit DataLoader(Dataset dataset, const DataLoaderOptions& options = {},
                      Site site = Site::here())
      : dataset_(std::move(dataset)), plan_(options, dataset_.size(), site) {}

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
    const SiteScope place(plan_.site());
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

  // The position in the current pass. A loader of the same dataset and options that loads it starts
  // its next pass at the batch after those already taken. The state of the generator, from which
  // later passes draw, is not included; save generator_state() as well. load_state_dict throws
  // InvalidArgument, before anything is changed, for a state that no loader wrote.
  nn::StateDict state_dict() const { return plan_.state_dict(); }

  void load_state_dict(const nn::StateDict& state, Site site = Site::here()) {
    plan_.load_state_dict(state, site);
  }

 private:
  Batch take(int64_t number) {
    const SiteScope place(plan_.site());
    Batch local =
        prefetcher_ ? *std::static_pointer_cast<Batch>(prefetcher_->next()) : local_batch(number);
    plan_.set_next_batch(number + 1);
    if (!plan_.options().placement.defined()) return local;
    return internal::map_tensors(local, [this](const Tensor& x) { return plan_.placed(x); });
  }

  Batch local_batch(int64_t number) const {
    const SiteScope place(plan_.site());
    const PlacementGuard local({}, {});  // as in a worker
    std::vector<int64_t> indices = plan_.own_samples(order_, number);
    const bool is_empty = indices.empty();
    // One sample, which gives the shape of the empty batch.
    if (is_empty) indices.push_back(order_[0]);
    Batch batch = samples(indices);
    if (!is_empty) return batch;
    return internal::map_tensors(batch,
                                 [](const Tensor& x) { return x.narrow(0, 0, 0, Site::none()); });
  }

  Batch samples(const std::vector<int64_t>& indices) const {
    if constexpr (requires { dataset_.batch(indices); }) {
      const internal::SampleRandomScope scope(transforms_, indices[0]);
      return internal::map_tensors(dataset_.batch(indices), internal::checked_sample);
    } else {
      std::vector<SampleOf<Dataset>> list;
      for (const int64_t i : indices) {
        const internal::SampleRandomScope scope(transforms_, i);
        list.push_back(internal::sample_at(dataset_, i));
      }
      return internal::map_tensors(collate(list), internal::checked_sample);
    }
  }

  Dataset dataset_;
  internal::BatchPlan plan_;
  std::vector<int64_t> order_;
  RandomStream transforms_;  // of the pass
  std::unique_ptr<internal::Prefetcher> prefetcher_;
};

}  // namespace flow::data
