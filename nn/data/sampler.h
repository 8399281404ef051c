// Samplers: which samples of a dataset come in a pass, and in what order.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/generator.h"

namespace flow::data {

// The order of one pass over `size` samples: 0, 1, … or a permutation drawn from `random`
// (Fisher and Yates 1938, as Durstenfeld 1964).
std::vector<int64_t> sample_order(int64_t size, bool shuffle, const RandomStream& random);

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Samples in a pass.
  virtual int64_t size() const = 0;
  // The same for the same stream.
  virtual std::vector<int64_t> order(const RandomStream& random) const = 0;
};

// 0, 1, …, num_samples - 1.
class SequentialSampler : public Sampler {
 public:
  explicit SequentialSampler(int64_t num_samples) : num_samples_(num_samples) {}

  int64_t size() const override { return num_samples_; }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  int64_t num_samples_;
};

struct RandomSamplerOptions {
  bool replacement = false;
  std::optional<int64_t> num_samples = {};  // of a pass; unset: the size of the dataset
};

// Draws from 0 … size - 1; without replacement, more samples than there are begin a new
// permutation.
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t dataset_size, const RandomSamplerOptions& options = {});

  int64_t size() const override { return options_.num_samples.value_or(dataset_size_); }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  int64_t dataset_size_;
  RandomSamplerOptions options_;
};

// The given samples, shuffled.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  std::vector<int64_t> indices_;
};

// Draws with the given weights, with replacement.
class WeightedRandomSampler : public Sampler {
 public:
  // InvalidArgument unless weights are not negative and not all 0.
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples);

  int64_t size() const override { return num_samples_; }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  std::vector<double> sums_;  // of the weights up to each
  int64_t num_samples_;
};

struct DistributedSamplerOptions {
  std::optional<int64_t> num_replicas = {};  // unset: the world size
  std::optional<int64_t> rank = {};          // unset: this rank
  bool shuffle = true;
  uint64_t seed = 0;
  bool drop_last = false;  // leave out the rest instead of repeating the first samples
};

// Every num_replicas-th sample of an order that all ranks share and that changes with the epoch;
// all ranks get equally many.
class DistributedSampler : public Sampler {
 public:
  explicit DistributedSampler(int64_t dataset_size, const DistributedSamplerOptions& options = {});

  int64_t size() const override;
  std::vector<int64_t> order(const RandomStream& random) const override;

  // Before each pass; without it all passes have one order.
  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

 private:
  int64_t dataset_size_;
  DistributedSamplerOptions options_;
  int64_t num_replicas_, rank_;
  uint64_t epoch_ = 0;
};

}  // namespace flow::data
