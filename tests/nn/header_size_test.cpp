// Files with very many tensors are read in time proportional to the length of their headers. The
// tests compare processor time, which other work on the machine does not change, with that of plain
// parsing; quadratic reading took 200 times as long.
#include <ctime>
#include <fstream>
#include <functional>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "nn/checkpoint_manifest.h"
#include "nn/safetensors_index.h"
#include "tests/support/temp_folder.h"

namespace flow::nn {
namespace {

using Json = nlohmann::json;

double processor_seconds(const std::function<void()>& body) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  body();
  return now() - start;
}

constexpr double kMostTimesPlain = 30;

TEST(HeaderSize, AHundredThousandTensorsAreIndexedInLinearTime) {
  constexpr size_t kTensors = 100'000;
  Json header = Json::object();
  for (size_t i = 0; i < kTensors; ++i) {
    header["layers." + std::to_string(i) + ".weight"] = {
        {"dtype", "U8"}, {"shape", {1}}, {"data_offsets", {i, i + 1}}};
  }
  const std::string text = header.dump();
  const TempFolder folder;
  const std::string path = folder.file("many.safetensors");
  {
    std::ofstream file(path, std::ios::binary);
    for (size_t byte = 0; byte < 8; ++byte)
      file.put(static_cast<char>(text.size() >> (8 * byte) & 0xFF));
    file << text << std::string(kTensors, 'x');
  }

  const double plain = processor_seconds([&] { EXPECT_EQ(Json::parse(text).size(), kTensors); });
  const double read =
      processor_seconds([&] { EXPECT_EQ(read_safetensors_index(path).size(), kTensors); });

  EXPECT_LT(read, kMostTimesPlain * plain);
}

TEST(HeaderSize, AManifestOfManySlicesIsReadInLinearTime) {
  constexpr int64_t kSide = 250;  // slices of one tensor in each of two dims
  Manifest manifest;
  manifest.step = 1;
  manifest.id = "id";
  const int64_t bytes = kSide * kSide * 4;
  manifest.files.push_back(
      {.name = "rank-00000.safetensors", .bytes = static_cast<uint64_t>(bytes), .checksums = {0}});
  CheckpointTensor tensor{.dtype = float32, .shape = {kSide, kSide}, .slices = {}};
  for (int64_t row = 0; row < kSide; ++row) {
    for (int64_t column = 0; column < kSide; ++column) {
      tensor.slices.push_back({.box = {{row, column}, {1, 1}},
                               .file = 0,
                               .offset = static_cast<uint64_t>(4 * (row * kSide + column))});
    }
  }
  manifest.tensors.emplace("x", tensor);
  for (int i = 0; i < 30'000; ++i)
    manifest.tensors.emplace("y" + std::to_string(i), CheckpointTensor{.shape = {0}, .slices = {}});
  const std::string text = to_text(manifest);

  const double plain = processor_seconds([&] { EXPECT_EQ(Json::parse(text).size(), 2U); });
  const double read = processor_seconds([&] {
    EXPECT_EQ(parse_manifest(text, "manifest.json").tensors.size(), manifest.tensors.size());
  });

  EXPECT_LT(read, kMostTimesPlain * plain);
}

}  // namespace
}  // namespace flow::nn
