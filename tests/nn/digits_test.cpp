#include "nn/data/digits.h"

#include <algorithm>
#include <fstream>

#include <gtest/gtest.h>
#include <zlib.h>

#include "core/error.h"
#include "nn/data/idx.h"
#include "nn/data/loader.h"
#include "nn/data/mnist.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow::data {
namespace {

class DigitFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.file(name); }

  const TempFolder folder_;
};

TEST(GeneratedDigits, AreTheSameForTheSameSeed) {
  EXPECT_EQ(generate_digits(20, 3).pixels, generate_digits(20, 3).pixels);
  EXPECT_NE(generate_digits(20, 3).pixels, generate_digits(20, 4).pixels);
  const Digits digits = generate_digits(500, 1);
  std::vector<int> count(10, 0);
  for (const uint8_t label : digits.labels)
    ++count.at(label);
  for (const int c : count)
    EXPECT_GT(c, 20);
}

TEST_F(DigitFiles, IdxFilesComeBack) {
  const Digits digits = generate_digits(30, 2);
  write_idx(digits, path("i"), path("l"));
  const Digits read = read_idx(path("i"), path("l"));
  EXPECT_EQ(read.pixels, digits.pixels);
  EXPECT_EQ(read.labels, digits.labels);
  EXPECT_EQ(read.height, 28);
}

TEST_F(DigitFiles, EveryDefectIsRefused) {
  write_idx(generate_digits(3, 2), path("i"), path("l"));
  const std::string images = nn::read_text(path("i")), labels = nn::read_text(path("l"));
  const auto refuses = [&](const std::string& bad_images, const std::string& bad_labels) {
    std::ofstream(path("bi"), std::ios::binary) << bad_images;
    std::ofstream(path("bl"), std::ios::binary) << bad_labels;
    EXPECT_THROW(read_idx(path("bi"), path("bl")), IoError);
  };
  for (const size_t length : {size_t{0}, size_t{3}, size_t{15}, size_t{16}, images.size() - 1}) {
    refuses(images.substr(0, length), labels);
  }
  refuses(images + "x", labels);
  refuses(images, labels + "x");
  refuses(images, labels.substr(0, labels.size() - 1));
  refuses(labels, labels);
  std::string bad = labels;
  bad.back() = 10;
  refuses(images, bad);
  bad = images;
  bad[4] = '\x7f';  // two thousand million images
  refuses(bad, labels);
  EXPECT_THROW(read_idx(path("none"), path("l")), IoError);
}

TEST_F(DigitFiles, DamagedCompressedFilesAreRefused) {
  const Digits digits = generate_digits(3, 2);
  write_idx(digits, path("i"), path("l"));
  const std::string images = nn::read_text(path("i"));
  gzFile file = gzopen(path("i.gz").c_str(), "wb");
  ASSERT_EQ(gzwrite(file, images.data(), static_cast<unsigned>(images.size())),
            static_cast<int>(images.size()));
  gzclose(file);
  EXPECT_EQ(read_idx(path("i.gz"), path("l")).pixels, digits.pixels);

  const std::string packed = nn::read_text(path("i.gz"));
  std::string wrong_checksum = packed;
  wrong_checksum[packed.size() - 8] ^= 1;
  for (const std::string& bad : {wrong_checksum, packed.substr(0, packed.size() - 5)}) {
    std::ofstream(path("b.gz"), std::ios::binary) << bad;
    try {
      read_idx(path("b.gz"), path("l"));
      ADD_FAILURE() << "no error";
    } catch (const IoError& error) {
      EXPECT_NE(std::string(error.what()).find("it is damaged"), std::string::npos) << error.what();
    }
  }
}

TEST_F(DigitFiles, T10kAloneIsCutIntoTrainAndTest) {
  write_idx(generate_digits(50, 2), path("t10k-images-idx3-ubyte"), path("t10k-labels-idx1-ubyte"));
  EXPECT_EQ(Mnist(folder_.path(), {.train = true}).size(), 40);
  EXPECT_EQ(Mnist(folder_.path(), {.train = false}).size(), 10);
}

TEST_F(DigitFiles, AMissingFolderNamesTheFilesExpected) {
  try {
    Mnist mnist(path("nothing"));
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("train-images-idx3-ubyte"), std::string::npos);
  }
}

TEST(DataLoader, EachSampleComesOnceAPass) {
  const Mnist digits(generate_digits(10, 1));
  DataLoader<Mnist> loader(digits, {.batch_size = 4, .shuffle = true});
  EXPECT_EQ(loader.num_batches(), 3);
  std::vector<int64_t> sizes;
  std::vector<int64_t> labels;
  for (auto [x, y] : loader) {
    EXPECT_EQ(x.shape(), (Shape{y.size(0), 1, 28, 28}));
    sizes.push_back(y.size(0));
    for (const int64_t label : y.to_vector<int64_t>())
      labels.push_back(label);
  }
  EXPECT_EQ(sizes, (std::vector<int64_t>{4, 4, 2}));
  auto want = digits.labels().to_vector<int64_t>();
  std::sort(want.begin(), want.end());
  std::sort(labels.begin(), labels.end());
  EXPECT_EQ(labels, want);
}

TEST(DataLoader, ShuffleFollowsTheSeedAndChangesWithThePass) {
  const RandomStream a{.seed = 1, .stream = 0}, b{.seed = 1, .stream = 1};
  EXPECT_EQ(sample_order(50, true, a), sample_order(50, true, a));
  EXPECT_NE(sample_order(50, true, a), sample_order(50, true, b));
  EXPECT_EQ(sample_order(3, false, a), (std::vector<int64_t>{0, 1, 2}));
}

TEST(DataLoader, DropLastLeavesOutTheRest) {
  DataLoader<Mnist> loader(Mnist(generate_digits(10, 1)), {.batch_size = 4, .drop_last = true});
  EXPECT_EQ(loader.num_batches(), 2);
  EXPECT_THROW(DataLoader<Mnist>(Mnist(generate_digits(1, 1)), {.batch_size = 0}), InvalidArgument);
}

}  // namespace
}  // namespace flow::data
