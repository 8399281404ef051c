// Datasets that put several datasets one after another, or side by side.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "core/calls/position_arg.h"
#include "core/calls/site_scope.h"
#include "nn/data/dataset.h"

namespace flow::data {

namespace internal {

// A position in one of several datasets.
struct PartPosition {
  size_t part;
  int64_t index;
};

// Finds sample i of datasets with these sizes, one after another. Throws InvalidArgument if there
// is none.
PartPosition find_part(const std::vector<int64_t>& sizes, int64_t i, Site site);
// Throws InvalidArgument unless all sizes are equal.
void check_equal_sizes(const std::vector<int64_t>& sizes, Site site);

// A dataset, and the line of the user's program where it is given.
template <class Dataset>
struct DatasetArg {
  DatasetArg(Dataset given, Site where = Site::here())  // NOLINT(google-explicit-constructor)
      : dataset(std::move(given)), site(where) {}

  Dataset dataset;
  Site site;
};

}  // namespace internal

// The samples of several datasets of one type, one dataset after another.
//   data::ConcatDataset(std::vector{first, second})
template <class Dataset>
class ConcatDataset {
 public:
  using Sample = SampleOf<Dataset>;

  explicit ConcatDataset(std::vector<Dataset> datasets) : datasets_(std::move(datasets)) {
    for (const Dataset& dataset : datasets_)
      sizes_.push_back(dataset.size());
  }

  int64_t size() const {
    int64_t total = 0;
    for (const int64_t size : sizes_)
      total += size;
    return total;
  }

  Sample operator[](PositionArg i) const {
    const SiteScope scope(i.site);
    const auto [part, index] = internal::find_part(sizes_, i.value, i.site);
    return internal::sample_at(datasets_[part], index);
  }

 private:
  std::vector<Dataset> datasets_;
  std::vector<int64_t> sizes_;
};

// Sample i has the samples i of several datasets, whose samples are single tensors and whose sizes
// are equal; otherwise InvalidArgument.
//   for (auto [image, text] : DataLoader(StackDataset(images, texts))) …
template <class First, class... Others>
class StackDataset {
 public:
  using Sample = std::tuple<SampleOf<First>, SampleOf<Others>...>;

  explicit StackDataset(internal::DatasetArg<First> first, Others... others)
      : datasets_(std::move(first.dataset), std::move(others)...) {
    std::apply(
        [&](const auto&... each) { internal::check_equal_sizes({each.size()...}, first.site); },
        datasets_);
  }

  int64_t size() const { return std::get<0>(datasets_).size(); }

  Sample operator[](PositionArg i) const {
    const SiteScope scope(i.site);
    check_sample("StackDataset", i.value, size(), i.site);
    return std::apply(
        [i](const auto&... each) { return Sample{internal::sample_at(each, i.value)...}; },
        datasets_);
  }

 private:
  static_assert(std::is_same_v<SampleOf<First>, Tensor> &&
                    (std::is_same_v<SampleOf<Others>, Tensor> && ...),
                "StackDataset takes datasets whose samples are single tensors");
  std::tuple<First, Others...> datasets_;
};

template <class First, class... Others>
StackDataset(First, Others...) -> StackDataset<First, Others...>;

}  // namespace flow::data
