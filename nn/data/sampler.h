// Samplers decide which samples of a dataset occur in a pass, and in what order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/generator.h"
#include "core/site.h"

namespace flow::data {

// The order of one pass over `size` samples: 0, 1, …, or with `shuffle` a permutation drawn from
// `random` (Fisher and Yates 1938, in the form of Durstenfeld 1964).
std::vector<int64_t> sample_order(int64_t size, bool shuffle, const RandomStream& random);

// The interface of samplers.
class Sampler {
 public:
  virtual ~Sampler() = default;
  // The number of samples in a pass.
  virtual int64_t size() const = 0;
  // The samples of a pass. The same stream gives the same order.
  virtual std::vector<int64_t> order(const RandomStream& random) const = 0;
};

// 0, 1, …, num_samples - 1.
class SequentialSampler : public Sampler {
 public:
  // Throws InvalidArgument for a negative number.
  explicit SequentialSampler(int64_t num_samples, Site site = Site::here());

  int64_t size() const override { return num_samples_; }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  int64_t num_samples_;
};

struct RandomSamplerOptions {
  bool replacement = false;
  std::optional<int64_t> num_samples = {};  // in a pass; unset: the size of the dataset
};

// Draws from 0 … dataset_size - 1. Without replacement, a pass with more samples than the dataset
// has continues with a new permutation. A size or num_samples below 1 is InvalidArgument.
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t dataset_size, const RandomSamplerOptions& options = {},
                         Site site = Site::here());

  int64_t size() const override { return options_.num_samples.value_or(dataset_size_); }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  int64_t dataset_size_;
  RandomSamplerOptions options_;
};

// The samples with the given indices, shuffled.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices) : indices_(std::move(indices)) {}

  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  std::vector<int64_t> indices_;
};

// Draws with replacement, with probabilities proportional to the weights.
class WeightedRandomSampler : public Sampler {
 public:
  // Throws InvalidArgument unless the weights are finite, >= 0 and not all 0, and num_samples is
  // positive.
  WeightedRandomSampler(std::vector<double> weights, int64_t num_samples, Site site = Site::here());

  int64_t size() const override { return num_samples_; }

  std::vector<int64_t> order(const RandomStream& random) const override;

 private:
  std::vector<double> sums_;  // cumulative sums of the weights
  int64_t num_samples_;
};

// Puts the samples of a sampler into batches. A class that derives from it decides itself which
// samples are together, for example sequences of similar lengths.
class BatchSampler {
 public:
  // Batches of batch_size samples; the last one is smaller, or dropped. Throws InvalidArgument
  // without a sampler and unless batch_size is positive.
  BatchSampler(std::shared_ptr<Sampler> sampler, int64_t batch_size, bool drop_last = false,
               Site site = Site::here());
  virtual ~BatchSampler() = default;
  // The number of batches in a pass.
  virtual int64_t size() const;
  // The samples of each batch of a pass. The same stream gives the same batches.
  virtual std::vector<std::vector<int64_t>> batches(const RandomStream& random) const;

 protected:
  BatchSampler() = default;

 private:
  std::shared_ptr<Sampler> sampler_;
  int64_t batch_size_ = 1;
  bool drop_last_ = false;
};

struct DistributedSamplerOptions {
  std::optional<int64_t> num_replicas = {};  // unset: the world size
  std::optional<int64_t> rank = {};          // unset: this rank
  bool shuffle = true;
  uint64_t seed = 0;
  // Drop the last samples; if false, the first ones are repeated to fill up.
  bool drop_last = false;
};

// Every num_replicas-th sample, starting at `rank`, of an order that all ranks share and that
// changes with the epoch. All ranks get the same number of samples. A rank outside [0,
// num_replicas) and an empty dataset are InvalidArgument.
class DistributedSampler : public Sampler {
 public:
  explicit DistributedSampler(int64_t dataset_size, const DistributedSamplerOptions& options = {},
                              Site site = Site::here());

  int64_t size() const override;
  std::vector<int64_t> order(const RandomStream& random) const override;

  // Call it before each pass; otherwise all passes have the same order.
  void set_epoch(uint64_t epoch) { epoch_ = epoch; }

 private:
  int64_t dataset_size_;
  DistributedSamplerOptions options_;
  int64_t num_replicas_, rank_;
  uint64_t epoch_ = 0;
};

}  // namespace flow::data
