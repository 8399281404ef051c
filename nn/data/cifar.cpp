#include "nn/data/cifar.h"

#include <filesystem>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "nn/data/dataset.h"
#include "nn/file.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"

namespace flow::data {

namespace {
constexpr int64_t kImageBytes = int64_t{3} * 32 * 32;
constexpr int64_t kRecordBytes = 1 + kImageBytes;  // the label comes first

std::vector<std::string> names_of(bool train) {
  if (!train) return {"test_batch.bin"};
  std::vector<std::string> names;
  for (int i = 1; i <= 5; ++i)
    names.push_back(str("data_batch_", i, ".bin"));
  return names;
}

std::filesystem::path folder_of(const std::string& root, const std::vector<std::string>& names) {
  for (const auto& folder :
       {std::filesystem::path(root), std::filesystem::path(root) / "cifar-10-batches-bin"}) {
    bool has_all = true;
    for (const std::string& name : names)
      has_all = has_all && std::filesystem::is_regular_file(folder / name);
    if (has_all) return folder;
  }
  std::string expected = names[0];
  for (size_t i = 1; i < names.size(); ++i)
    expected += ", " + names[i];
  throw IoError(str("[Cifar10] CIFAR-10 was not found under ", root, "; expected ", expected,
                    " there or in its folder cifar-10-batches-bin (the binary version)"));
}

Tensor to_unit(const Tensor& bytes) {
  return cast(bytes, float32) / 255.0;
}
}  // namespace

Cifar10::Cifar10(const std::string& root, DatasetOptions options, Site site) {
  const SiteScope scope(site);
  const PlacementGuard local({}, {});
  const std::vector<std::string> names = names_of(options.train);
  const std::filesystem::path folder = folder_of(root, names);
  std::vector<uint8_t> pixels;
  std::vector<int64_t> labels;
  for (const std::string& name : names) {
    const std::string path = (folder / name).string();
    nn::InputFile file(path);
    const auto size = static_cast<int64_t>(file.size());
    if (size == 0 || size % kRecordBytes != 0) {
      throw BadFile(str("[Cifar10] ", path, " has ", size,
                        " bytes, which is not a number of whole records; expected a multiple of ",
                        kRecordBytes, " bytes (a label and an image each); download it again"));
    }
    std::vector<uint8_t> record(static_cast<size_t>(kRecordBytes));
    for (int64_t i = 0; i < size / kRecordBytes; ++i) {
      file.read(record.data(), record.size());
      if (record[0] > 9) {
        throw BadFile(str("[Cifar10] ", path, " has an invalid label: image ", i, " has label ",
                          int{record[0]},
                          "; expected 0 to 9 (files of CIFAR-100 have another format)"));
      }
      labels.push_back(record[0]);
      pixels.insert(pixels.end(), record.begin() + 1, record.end());
    }
  }
  const auto count = static_cast<int64_t>(labels.size());
  images_ = tensor(pixels, {count, 3, 32, 32}, {.dtype = uint8});
  labels_ = tensor(labels, {count});
}

Cifar10::Sample Cifar10::operator[](PositionArg i) const {
  check_sample("Cifar10", i.value, size(), i.site);
  return {to_unit(images_.select(0, i.value)), labels_.select(0, i.value)};
}

Cifar10::Sample Cifar10::batch(const std::vector<int64_t>& indices) const {
  return {to_unit(rows(images_, indices)), rows(labels_, indices)};
}

}  // namespace flow::data
