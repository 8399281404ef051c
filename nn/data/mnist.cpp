#include "nn/data/mnist.h"

#include <filesystem>
#include <vector>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/log.h"
#include "nn/data/dataset.h"
#include "nn/data/idx.h"
#include "ops/creation/creation.h"

namespace flow::data {

namespace {

constexpr int64_t kTrainOfT10k = 8000;

// The path of the plain or compressed file of this name, or an empty path.
std::string find(const std::string& root, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::string path = (std::filesystem::path(root) / (name + ending)).string();
    if (std::filesystem::is_regular_file(path)) return path;
  }
  return {};
}

struct Files {
  std::string images, labels;

  bool are_there() const { return !images.empty() && !labels.empty(); }
};

Files find_pair(const std::string& root, const std::string& prefix) {
  return {find(root, prefix + "-images-idx3-ubyte"), find(root, prefix + "-labels-idx1-ubyte")};
}

}  // namespace

Mnist::Mnist(const std::string& root, DatasetOptions options, Site site) {
  const SiteScope scope(site);
  const Files test = find_pair(root, "t10k");
  const Files train = find_pair(root, "train");
  const Files& wanted = options.train ? train : test;
  if (train.are_there() && wanted.are_there()) {
    const Digits digits = read_idx(wanted.images, wanted.labels);
    take(digits, 0, digits.count);
    return;
  }
  if (!test.are_there()) {
    throw IoError(str("[Mnist] MNIST was not found under ", root,
                      "; expected train-images-idx3-ubyte and train-labels-idx1-ubyte, or "
                      "t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, plain or .gz"));
  }
  const Digits digits = read_idx(test.images, test.labels);
  const int64_t cut = std::min(kTrainOfT10k, digits.count * 4 / 5);
  if (options.train) {
    log_warning(str("[Mnist] only the t10k files were found under ", root, "; their first ", cut,
                    " images are the training set, the other ", digits.count - cut,
                    " the test set"));
  }
  take(digits, options.train ? 0 : cut, options.train ? cut : digits.count - cut);
}

Mnist::Mnist(const Digits& digits) {
  take(digits, 0, digits.count);
}

void Mnist::take(const Digits& digits, int64_t first, int64_t count) {
  const PlacementGuard local({}, {});
  const int64_t image = digits.height * digits.width;
  std::vector<float> pixels;
  pixels.reserve(static_cast<size_t>(count * image));
  for (int64_t i = first * image; i < (first + count) * image; ++i) {
    pixels.push_back(static_cast<float>(digits.pixels[static_cast<size_t>(i)]) / 255.0F);
  }
  const std::vector<int64_t> labels(digits.labels.begin() + first,
                                    digits.labels.begin() + first + count);
  images_ = tensor(pixels, {count, 1, digits.height, digits.width});
  labels_ = tensor(labels, {count});
}

Mnist::Sample Mnist::operator[](PositionArg i) const {
  check_sample("Mnist", i.value, size(), i.site);
  return {images_.select(0, i.value), labels_.select(0, i.value)};
}

Mnist::Sample Mnist::batch(const std::vector<int64_t>& indices) const {
  return {rows(images_, indices), rows(labels_, indices)};
}

}  // namespace flow::data
