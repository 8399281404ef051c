// The MNIST dataset (LeCun and Cortes 1998).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/calls/position_arg.h"
#include "core/tensor.h"
#include "nn/data/digits.h"

namespace flow::data {

struct DatasetOptions {
  bool train = true;
};

// A sample is an image (1, H, W), float32 in [0, 1], and its label, an int64 scalar. Copies share
// the data.
class Mnist {
 public:
  using Sample = std::pair<Tensor, Tensor>;

  // Reads train-images-idx3-ubyte and train-labels-idx1-ubyte, or the t10k pair if train is false,
  // from `root`, plain or with .gz. If only the t10k pair exists, its first 8,000 images are the
  // training set and its last 2,000 the test set, and a warning says so. Throws IoError, naming the
  // expected files. Nothing is downloaded.
  explicit Mnist(const std::string& root, DatasetOptions options = {}, Site site = Site::here());
  // The same samples, from images in memory.
  explicit Mnist(const Digits& digits);

  int64_t size() const { return labels_.size(0); }

  Sample operator[](PositionArg i) const;
  Sample batch(const std::vector<int64_t>& indices) const;

  // All images, (N, 1, H, W), and all labels, (N).
  const Tensor& images() const { return images_; }

  const Tensor& labels() const { return labels_; }

 private:
  void take(const Digits& digits, int64_t first, int64_t count);

  Tensor images_, labels_;
};

}  // namespace flow::data
