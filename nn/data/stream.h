// Datasets that are read from the front to the end, and their DataLoader.
#pragma once

#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "nn/data/collate.h"
#include "nn/data/loader.h"
#include "nn/data/sample_random.h"

namespace flow::data {

// A dataset without size and positions, such as lines of a file or messages of a queue. It has a
// type `Sample` and stream(), which begins a pass and returns a function; each call of the function
// gives the next sample, and nullopt after the last one.
//   struct Squares {
//     using Sample = int64_t;
//     auto stream() const {
//       return [i = int64_t{0}]() mutable {
//         return i < 10 ? std::optional(i * i++) : std::nullopt;
//       };
//     }
//   };
template <class D>
concept IterableDataset = requires(const D& dataset) {
  typename D::Sample;
  { dataset.stream()() } -> std::convertible_to<std::optional<typename D::Sample>>;
};

// The samples of several streams of one type, one stream after another.
template <IterableDataset D>
class ChainDataset {
 public:
  using Sample = typename D::Sample;

  explicit ChainDataset(std::vector<D> datasets) : datasets_(std::move(datasets)) {}

  std::function<std::optional<Sample>()> stream() const {
    std::function<std::optional<Sample>()> part;
    return [datasets = datasets_, next = size_t{0}, part]() mutable -> std::optional<Sample> {
      while (true) {
        if (part) {
          if (std::optional<Sample> sample = part()) return sample;
        }
        if (next == datasets.size()) return std::nullopt;
        part = datasets[next++].stream();
      }
    };
  }

 private:
  std::vector<D> datasets_;
};

namespace internal {
// Throws InvalidArgument for options that need the size or positions of a dataset.
const DataLoaderOptions& check_stream_options(const DataLoaderOptions& options, Site site);
[[noreturn]] void refuse_stream_state(Site site);
}  // namespace internal

// Batches of a stream. Each begin() starts a pass. Of the options, shuffle, sampler and
// batch_sampler are InvalidArgument, and so is num_workers above 1, because one thread reads the
// stream. For global batches each rank reads the whole stream, which must be the same on all of
// them, and keeps its rows.
//   for (const Tensor& batch : DataLoader(Squares(), {.batch_size = 4})) …
template <IterableDataset Dataset>
class DataLoader<Dataset> {
 public:
  using Batch = BatchOf<typename Dataset::Sample>;

  // Throws InvalidArgument if the options are out of range or do not fit a stream.
  explicit DataLoader(Dataset dataset, const DataLoaderOptions& options = {},
                      Site site = Site::here())
      : dataset_(std::move(dataset)),
        plan_(internal::check_stream_options(options, site), 0, site) {}

  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  class Iterator {
   public:
    const Batch& operator*() const { return *current_; }

    Iterator& operator++() {
      current_ = loader_->next();
      return *this;
    }

    bool operator==(std::default_sentinel_t /*end*/) const { return current_ == nullptr; }

   private:
    friend class DataLoader;

    explicit Iterator(DataLoader* loader) : loader_(loader), current_(loader->next()) {}

    DataLoader* loader_;
    std::shared_ptr<const Batch> current_;
  };

  Iterator begin() {
    const SiteScope place(plan_.site());
    prefetcher_.reset();
    plan_.begin_pass();
    samples_ = dataset_.stream();
    num_samples_ = 0;
    is_at_end_ = false;
    if (plan_.options().num_workers > 0) {
      prefetcher_ = std::make_unique<internal::Prefetcher>(
          0, std::numeric_limits<int64_t>::max(), plan_.options(),
          [this, transforms = plan_.transforms()](int64_t /*number*/) { return read(transforms); });
    }
    return Iterator(this);
  }

  std::default_sentinel_t end() const { return {}; }

  const Dataset& dataset() const { return dataset_; }

  // Throws Unsupported: a stream has no position at which a pass could go on.
  [[noreturn]] nn::StateDict state_dict(Site site = Site::here()) const {
    internal::refuse_stream_state(site);
  }

  [[noreturn]] void load_state_dict(const nn::StateDict& /*state*/, Site site = Site::here()) {
    internal::refuse_stream_state(site);
  }

 private:
  // The next batch; null at the end.
  std::shared_ptr<const Batch> next() {
    const SiteScope place(plan_.site());
    const std::shared_ptr<Batch> whole = prefetcher_
                                             ? std::static_pointer_cast<Batch>(prefetcher_->next())
                                             : read(plan_.transforms());
    if (whole == nullptr || !plan_.options().placement.defined()) return whole;
    return std::make_shared<Batch>(internal::map_tensors(*whole, [this](const Tensor& x) {
      const auto [first, size] = plan_.own_rows(x.size(0));
      return plan_.placed(x.narrow(0, first, size, Site::none()));
    }));
  }

  // Reads the samples of a batch. One thread at a time calls it.
  std::shared_ptr<Batch> read(const RandomStream& transforms) {
    const SiteScope place(plan_.site());
    const PlacementGuard local({}, {});  // as in a worker
    std::vector<typename Dataset::Sample> samples;
    const auto batch_size = static_cast<size_t>(plan_.options().batch_size);
    while (!is_at_end_ && samples.size() < batch_size) {
      const internal::SampleRandomScope scope(transforms, num_samples_++);
      std::optional<typename Dataset::Sample> sample = samples_();
      is_at_end_ = !sample;
      if (sample) samples.push_back(std::move(*sample));
    }
    const bool is_dropped = plan_.options().drop_last && samples.size() < batch_size;
    if (samples.empty() || is_dropped) return nullptr;
    return std::make_shared<Batch>(
        internal::map_tensors(collate(samples), internal::checked_sample));
  }

  Dataset dataset_;
  internal::BatchPlan plan_;
  std::function<std::optional<typename Dataset::Sample>()> samples_;
  int64_t num_samples_ = 0;  // read in this pass
  bool is_at_end_ = false;
  std::unique_ptr<internal::Prefetcher>
      prefetcher_;  // the last member: its threads read the others
};

}  // namespace flow::data
