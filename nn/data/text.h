// Text and tokens: files, an alphabet of characters, sequences to train on.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow::data {

// The text of files, one after another; of a folder those below it whose names end in one of
// `endings`, in name order. Throws IoError naming what is not there.
std::string read_text_files(const std::vector<std::string>& paths,
                            const std::vector<std::string>& endings = {".txt", ".md"});

// Tokens as raw little-endian numbers of 1, 2, 4 or 8 bytes. Throws IoError for a size that is no
// multiple, and for a number beyond int64.
std::vector<int64_t> read_tokens(const std::string& path, int64_t bytes_per_token = 2);
// InvalidArgument for a token that does not fit.
void write_tokens(const std::string& path, const std::vector<int64_t>& tokens,
                  int64_t bytes_per_token = 2);

// The bytes that occur in a text, numbered in byte order.
class CharVocabulary {
 public:
  explicit CharVocabulary(std::string_view text);

  int64_t size() const { return static_cast<int64_t>(characters_.size()); }

  const std::string& characters() const { return characters_; }

  // InvalidArgument for a byte that is not in the vocabulary.
  std::vector<int64_t> encode(std::string_view text) const;
  std::string decode(const std::vector<int64_t>& tokens) const;

 private:
  std::string characters_;
  std::array<int64_t, 256> numbers_;  // -1: not in it
};

struct TokenDatasetOptions {
  int64_t stride = 0;  // from one sample's first token to the next one's; 0: the length
};

// Sample i: the `length` tokens (length) from i × stride on, and the same one further, int64.
class TokenDataset {
 public:
  using Sample = std::pair<Tensor, Tensor>;

  TokenDataset(const std::vector<int64_t>& tokens, int64_t length,
               const TokenDatasetOptions& options = {});

  int64_t size() const { return size_; }

  Sample operator[](int64_t i) const;
  Sample batch(const std::vector<int64_t>& indices) const;

 private:
  std::shared_ptr<const std::vector<int64_t>> tokens_;
  int64_t length_, stride_, size_;
};

}  // namespace flow::data
