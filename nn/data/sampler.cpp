#include "nn/data/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"

namespace flow::data {

namespace {
uint64_t bits_at(const RandomStream& random, int64_t i) {
  const auto lanes = philox(random, static_cast<uint64_t>(i));
  return uint64_t{lanes[1]} << 32 | lanes[0];
}

// The high word of bits × bound: uniform in [0, bound) to within 2⁻⁶⁴ bound.
int64_t below(uint64_t bits, int64_t bound) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<int64_t>(static_cast<Wide>(bits) * static_cast<Wide>(bound) >> 64);
}

// A separate stream for the n-th permutation of a pass.
RandomStream derived(RandomStream random, int64_t n) {
  random.seed ^= static_cast<uint64_t>(n) << 48;
  return random;
}
}  // namespace

std::vector<int64_t> sample_order(int64_t size, bool shuffle, const RandomStream& random) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  if (!shuffle) return order;
  for (int64_t i = size - 1; i > 0; --i) {
    const int64_t j = below(bits_at(random, i), i + 1);
    std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
  }
  return order;
}

SequentialSampler::SequentialSampler(int64_t num_samples, Site site) : num_samples_(num_samples) {
  if (num_samples >= 0) return;
  throw InvalidArgument(
      str("[SequentialSampler] num_samples must not be negative; received ", num_samples), site);
}

std::vector<int64_t> SequentialSampler::order(const RandomStream& /*random*/) const {
  return sample_order(num_samples_, false, {});
}

RandomSampler::RandomSampler(int64_t dataset_size, const RandomSamplerOptions& options, Site site)
    : dataset_size_(dataset_size), options_(options) {
  const SiteScope scope(site);
  if (dataset_size <= 0 || options.num_samples.value_or(1) <= 0) {
    throw InvalidArgument(
        str("[RandomSampler] the dataset's size and num_samples must be "
            "positive; received ",
            dataset_size, " and ", options.num_samples.value_or(1)));
  }
}

std::vector<int64_t> RandomSampler::order(const RandomStream& random) const {
  std::vector<int64_t> order;
  if (options_.replacement) {
    for (int64_t i = 0; i < size(); ++i)
      order.push_back(below(bits_at(random, i), dataset_size_));
    return order;
  }
  for (int64_t pass = 0; static_cast<int64_t>(order.size()) < size(); ++pass) {
    const auto next = sample_order(dataset_size_, true, derived(random, pass));
    order.insert(order.end(), next.begin(), next.end());
  }
  order.resize(static_cast<size_t>(size()));
  return order;
}

std::vector<int64_t> SubsetRandomSampler::order(const RandomStream& random) const {
  std::vector<int64_t> order = sample_order(size(), true, random);
  for (int64_t& i : order)
    i = indices_[static_cast<size_t>(i)];
  return order;
}

WeightedRandomSampler::WeightedRandomSampler(std::vector<double> weights, int64_t num_samples,
                                             Site site)
    : sums_(weights.size()), num_samples_(num_samples) {
  const SiteScope scope(site);
  std::partial_sum(weights.begin(), weights.end(), sums_.begin());
  const bool has_negative =
      std::any_of(weights.begin(), weights.end(), [](double weight) { return !(weight >= 0); });
  if (weights.empty() || has_negative || !(sums_.back() > 0) || std::isinf(sums_.back()) ||
      num_samples <= 0) {
    throw InvalidArgument(
        str("[WeightedRandomSampler] weights or num_samples are invalid; received ", weights.size(),
            " weights with sum ", weights.empty() ? 0.0 : sums_.back(), ", and num_samples ",
            num_samples,
            "; give finite weights that are not negative and not all 0, and a positive "
            "num_samples"));
  }
}

std::vector<int64_t> WeightedRandomSampler::order(const RandomStream& random) const {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < num_samples_; ++i) {
    const auto lanes = philox(random, static_cast<uint64_t>(i));
    const double at = uniform_double(lanes[0], lanes[1]) * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), at);
    order.push_back(
        std::min<int64_t>(found - sums_.begin(), static_cast<int64_t>(sums_.size()) - 1));
  }
  return order;
}

BatchSampler::BatchSampler(std::shared_ptr<Sampler> sampler, int64_t batch_size, bool drop_last,
                           Site site)
    : sampler_(std::move(sampler)), batch_size_(batch_size), drop_last_(drop_last) {
  const SiteScope scope(site);
  if (sampler_ == nullptr || batch_size <= 0) {
    throw InvalidArgument(str("[BatchSampler] needs a sampler and a positive batch_size; received ",
                              sampler_ == nullptr ? "no" : "a", " sampler and ", batch_size));
  }
}

int64_t BatchSampler::size() const {
  return (sampler_->size() + (drop_last_ ? 0 : batch_size_ - 1)) / batch_size_;
}

std::vector<std::vector<int64_t>> BatchSampler::batches(const RandomStream& random) const {
  const std::vector<int64_t> order = sampler_->order(random);
  std::vector<std::vector<int64_t>> all;
  for (auto from = order.begin(); from != order.end();) {
    const int64_t left = order.end() - from;
    if (drop_last_ && left < batch_size_) break;
    const auto to = from + std::min(left, batch_size_);
    all.emplace_back(from, to);
    from = to;
  }
  return all;
}

DistributedSampler::DistributedSampler(int64_t dataset_size,
                                       const DistributedSamplerOptions& options, Site site)
    : dataset_size_(dataset_size),
      options_(options),
      num_replicas_(options.num_replicas.value_or(env::world_size())),
      rank_(options.rank.value_or(env::rank())) {
  const SiteScope scope(site);
  if (dataset_size <= 0 || num_replicas_ <= 0 || rank_ < 0 || rank_ >= num_replicas_) {
    throw InvalidArgument(
        str("[DistributedSampler] rank must be in [0, num_replicas) and the "
            "dataset must not be empty; received rank ",
            rank_, " of ", num_replicas_, ", ", dataset_size, " samples"));
  }
}

int64_t DistributedSampler::size() const {
  return options_.drop_last ? dataset_size_ / num_replicas_
                            : (dataset_size_ + num_replicas_ - 1) / num_replicas_;
}

std::vector<int64_t> DistributedSampler::order(const RandomStream& /*random*/) const {
  const RandomStream shared{.seed = options_.seed, .stream = epoch_};
  const std::vector<int64_t> all = sample_order(dataset_size_, options_.shuffle, shared);
  std::vector<int64_t> own;
  for (int64_t i = 0; i < size(); ++i)
    own.push_back(all[static_cast<size_t>((rank_ + i * num_replicas_) % dataset_size_)]);
  return own;
}

}  // namespace flow::data
