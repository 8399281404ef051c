// MNIST as a dataset.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "nn/data/digits.h"

namespace flow::data {

struct DatasetOptions {
  bool train = true;
};

// Samples are an image (1, H, W), float32 in [0, 1], and its label, an int64 scalar. A handle:
// copies share the data.
class Mnist {
 public:
  using Sample = std::pair<Tensor, Tensor>;

  // Reads train-images-idx3-ubyte, train-labels-idx1-ubyte or the t10k pair under `root`, plain or
  // with .gz. Where only the t10k pair is there, its first 8,000 images train, its last 2,000 test,
  // and a warning says so. Throws IoError naming the files expected. Nothing is downloaded.
  explicit Mnist(const std::string& root, DatasetOptions options = {});
  // The same samples from pictures in memory.
  explicit Mnist(const Digits& digits);

  int64_t size() const { return labels_.size(0); }

  Sample operator[](int64_t i) const;
  Sample batch(const std::vector<int64_t>& indices) const;

  // All images (N, 1, H, W) and labels (N).
  const Tensor& images() const { return images_; }

  const Tensor& labels() const { return labels_; }

 private:
  void take(const Digits& digits, int64_t first, int64_t count);

  Tensor images_, labels_;
};

}  // namespace flow::data
