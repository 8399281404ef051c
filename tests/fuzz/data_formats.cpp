// Data sets: images, text and tokens.
#include <filesystem>

#include "core/error.h"
#include "nn/data/cifar.h"
#include "nn/data/digits.h"
#include "nn/data/idx.h"
#include "nn/data/text.h"
#include "nn/file.h"
#include "tests/fuzz/formats.h"

namespace flow::fuzz {

namespace {

void add_idx(std::vector<Format>& formats) {
  const std::string images = scratch_folder() + "/good_images";
  const std::string labels = scratch_folder() + "/good_labels";
  data::write_idx(data::generate_digits(2, 1), images, labels);
  formats.push_back({.name = "idx_images",
                     .seeds = {nn::read_text(images)},
                     .read = [labels](const std::string& bytes) {
                       const std::string path = write_scratch("images", bytes);
                       return reads_or_refuses<BadFile>(path,
                                                        [&] { data::read_idx(path, labels); });
                     }});
  formats.push_back({.name = "idx_labels",
                     .seeds = {nn::read_text(labels)},
                     .read = [images](const std::string& bytes) {
                       const std::string path = write_scratch("labels", bytes);
                       return reads_or_refuses<BadFile>(path,
                                                        [&] { data::read_idx(images, path); });
                     }});
}

Format cifar() {
  std::string records;
  for (const char label : {'\3', '\6'})
    records += label + std::string(3072, 'x');
  return {.name = "cifar", .seeds = {records}, .read = [](const std::string& bytes) {
            std::filesystem::create_directories(scratch_folder() + "/cifar");
            const std::string path = write_scratch("cifar/test_batch.bin", bytes);
            return reads_or_refuses<BadFile>(path, [&] {
              const data::Cifar10 images(scratch_folder() + "/cifar", {.train = false});
              require(images.size() > 0, "there are no images");
            });
          }};
}

// Every sequence of bytes is a text: it reads back, in one file and below a folder.
Format text() {
  return {.name = "text",
          .seeds = {"The first line.\nAnother one, of a few words.\n", ""},
          .read =
              [](const std::string& bytes) {
                const std::string path = write_scratch("text.txt", bytes);
                const std::string read = data::read_text_files({path, path});
                require(read == bytes + bytes, "a text does not read back");
                const data::CharVocabulary vocabulary(bytes);
                require(vocabulary.decode(vocabulary.encode(bytes)) == bytes,
                        "a text has other characters than its tokens");
                return true;
              },
          .share_refused = -1};
}

// Every sequence of bytes is a file of tokens of one byte. Of wider tokens only the size of the
// file and the highest bit of tokens of 8 bytes can be wrong.
Format tokens(int64_t bytes_per_token) {
  const std::string good = scratch_folder() + "/good_tokens";
  data::write_tokens(good, {1, 2, 77, 100}, bytes_per_token);
  return {.name = "tokens" + std::to_string(bytes_per_token),
          .seeds = {nn::read_text(good)},
          .read =
              [bytes_per_token](const std::string& bytes) {
                const std::string path = write_scratch("tokens", bytes);
                return reads_or_refuses<BadFile>(path, [&] {
                  const std::vector<int64_t> values = data::read_tokens(path, bytes_per_token);
                  data::write_tokens(path, values, bytes_per_token);
                  require(nn::read_text(path) == bytes, "tokens do not read back");
                });
              },
          .share_refused = bytes_per_token == 1 ? -1 : 0.25};
}

}  // namespace

void add_data_formats(std::vector<Format>& formats) {
  add_idx(formats);
  formats.push_back(cifar());
  formats.push_back(text());
  for (const int64_t bytes : {1, 2, 4, 8})
    formats.push_back(tokens(bytes));
}

}  // namespace flow::fuzz
