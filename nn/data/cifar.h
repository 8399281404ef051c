// The CIFAR-10 dataset (Krizhevsky 2009).
#pragma once

#include <string>
#include <utility>

#include "core/calls/position_arg.h"
#include "nn/data/mnist.h"

namespace flow::data {

// A sample is an image (3, 32, 32), float32 in [0, 1], and its label, an int64 scalar. Copies share
// the data, which takes one byte per colour value.
class Cifar10 {
 public:
  using Sample = std::pair<Tensor, Tensor>;

  // Reads data_batch_1.bin … data_batch_5.bin, or test_batch.bin if train is false, from `root` or
  // its sub-folder cifar-10-batches-bin. Sizes and labels are checked. Throws IoError, naming the
  // expected files. Nothing is downloaded.
  explicit Cifar10(const std::string& root, DatasetOptions options = {}, Site site = Site::here());

  int64_t size() const { return labels_.size(0); }

  Sample operator[](PositionArg i) const;
  Sample batch(const std::vector<int64_t>& indices) const;

  const Tensor& labels() const { return labels_; }

 private:
  Tensor images_;  // (N, 3, 32, 32) uint8
  Tensor labels_;  // (N) int64
};

}  // namespace flow::data
