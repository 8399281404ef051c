#include "nn/safetensors.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "nn/file.h"
#include "ops/creation/creation.h"
#include "tests/support/temp_folder.h"

namespace flow::nn {
namespace {

class Safetensors : public ::testing::Test {
 protected:
  std::string path(const char* name = "t.safetensors") const { return folder_.file(name); }

  // A file with this header text and so many bytes of data.
  std::string file_of(const std::string& header, size_t data_bytes) const {
    std::ofstream file(path(), std::ios::binary);
    const uint64_t length = header.size();
    file.write(reinterpret_cast<const char*>(&length), 8);
    file << header << std::string(data_bytes, '\1');
    return path();
  }

  const TempFolder folder_;
};

TEST_F(Safetensors, EveryDtypeComesBack) {
  StateDict tensors;
  for (int i = 0; i < kNumDTypes; ++i) {
    const auto dtype = static_cast<DType>(i);
    tensors.emplace(std::string(dtype_name(dtype)),
                    tensor(std::vector<float>{1, 0, 1, 1, 0, 1}, {2, 3}, {.dtype = dtype}));
  }
  tensors.emplace("scalar", tensor(2.5));
  tensors.emplace("empty", zeros({0, 4}));
  save_safetensors(path(), tensors, {{"made by", "a test"}});

  Metadata metadata;
  const StateDict loaded = load_safetensors(path(), &metadata);

  EXPECT_EQ(metadata, (Metadata{{"made by", "a test"}}));
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, want] : tensors) {
    const Tensor& got = loaded.at(name);
    EXPECT_EQ(got.dtype(), want.dtype()) << name;
    EXPECT_EQ(got.shape(), want.shape()) << name;
    EXPECT_EQ(got.to_vector<double>(), want.to_vector<double>()) << name;
  }
}

TEST_F(Safetensors, NamesThatTheFormatLacksAreNotWritten) {
  EXPECT_THROW(save_safetensors(path(), {{"\xff", ones({2})}}), InvalidArgument);
  EXPECT_THROW(save_safetensors(path(), {{"__metadata__", ones({2})}}), InvalidArgument);
  EXPECT_THROW(save_safetensors(path(), {{"a", ones({2})}}, {{"key", "\xff"}}), InvalidArgument);
  EXPECT_FALSE(std::filesystem::exists(path()));
}

TEST_F(Safetensors, EveryTruncationIsRefused) {
  save_safetensors(path(), {{"a", ones({3, 5})}, {"b", zeros({2})}});
  const std::string whole = read_text(path());
  for (size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path("cut"), std::ios::binary) << whole.substr(0, length);
    EXPECT_THROW(load_safetensors(path("cut")), IoError) << length;
  }
}

TEST_F(Safetensors, BadHeadersAreRefused) {
  const auto tensor_header = [](const std::string& body) { return "{\"a\":{" + body + "}}"; };
  const std::vector<std::pair<std::string, size_t>> cases = {
      {"[1, 2]", 0},
      {"{\"a\": 1}", 0},
      {"{", 0},
      {"{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}", 0},
      {tensor_header("\"dtype\":\"F33\",\"shape\":[1],\"data_offsets\":[0,4]"), 4},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]"), 4},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]"), 4},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]"), 4},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]"), 4},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 5},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[1,5]"), 5},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[4194305,4194305,211106198978564],"
                     "\"data_offsets\":[0,16]"),
       16},
      {tensor_header("\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]"), 4},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
       "\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}",
       1},
      {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
       "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
       3},
      {"{\"__metadata__\":{\"k\":1}}", 0},
  };
  for (const auto& [header, bytes] : cases) {
    EXPECT_THROW(load_safetensors(file_of(header, bytes)), IoError) << header;
  }
  EXPECT_NO_THROW(load_safetensors(
      file_of(tensor_header("\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]"), 4)));
}

TEST_F(Safetensors, DtypesThatFlowLacksAreLeftOutWithAWarning) {
  const std::string entries = R"("a":{"dtype":"F4","shape":[2],"data_offsets":[0,1]},)"
                              R"("b":{"dtype":"C64","shape":[],"data_offsets":[1,9]},)"
                              R"("c":{"dtype":"U8","shape":[3],"data_offsets":[9,12]})";

  testing::internal::CaptureStderr();
  const StateDict loaded = load_safetensors(file_of('{' + entries + '}', 12));
  const std::string warning = testing::internal::GetCapturedStderr();

  ASSERT_EQ(loaded.size(), 1U);
  EXPECT_EQ(loaded.at("c").to_vector<int64_t>(), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_NE(warning.find(path() + ": 2 tensors are left out, because flow does not have the dtype: "
                                  "a (F4), b (C64)"),
            std::string::npos)
      << warning;
  const std::string half = R"({"a":{"dtype":"F4","shape":[3],"data_offsets":[0,1]}})";
  EXPECT_THROW(load_safetensors(file_of(half, 1)), IoError) << "a size of 12 bits";
}

TEST_F(Safetensors, HugeHeaderLengthTakesNoMemory) {
  std::ofstream file(path(), std::ios::binary);
  const uint64_t length = uint64_t{1} << 62;
  file.write(reinterpret_cast<const char*>(&length), 8);
  file.close();
  EXPECT_THROW(load_safetensors(path()), IoError);
}

TEST_F(Safetensors, FailedWriteLeavesTheOldFile) {
  save_safetensors(path(), {{"a", ones({2})}});
  std::filesystem::create_directory(path("folder"));
  EXPECT_THROW(save_safetensors(path("folder"), {{"a", ones({2})}}), IoError);
  EXPECT_THROW(save_safetensors(path("missing/t"), {}), IoError);
  EXPECT_EQ(load_safetensors(path()).at("a").to_vector<float>(), (std::vector<float>{1, 1}));
  int64_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    files += entry.exists();
  EXPECT_EQ(files, 2) << "no temporary file is left";
}

}  // namespace
}  // namespace flow::nn
