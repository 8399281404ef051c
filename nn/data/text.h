// Text and tokens: reading files, a vocabulary of characters, sequences for training.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/calls/position_arg.h"
#include "core/tensor.h"

namespace flow::data {

// The contents of files, one after another. For a folder these are the files below it whose
// extension is one of `endings`, ordered by path. Throws IoError, naming a file that does not
// exist.
std::string read_text_files(const std::vector<std::string>& paths,
                            const std::vector<std::string>& endings = {".txt", ".md"},
                            Site site = Site::here());

// Reads tokens stored as unsigned little-endian numbers of 1, 2, 4 or 8 bytes. Throws IoError if
// the file size is not a multiple of bytes_per_token, or a number exceeds int64; InvalidArgument
// for another bytes_per_token.
std::vector<int64_t> read_tokens(const std::string& path, int64_t bytes_per_token = 2,
                                 Site site = Site::here());
// Writes such a file, which appears complete or not at all. Throws InvalidArgument, before anything
// is written, for a token that does not fit.
void write_tokens(const std::string& path, const std::vector<int64_t>& tokens,
                  int64_t bytes_per_token = 2, Site site = Site::here());

// The bytes that occur in a text, numbered in ascending order.
class CharVocabulary {
 public:
  explicit CharVocabulary(std::string_view text);

  int64_t size() const { return static_cast<int64_t>(characters_.size()); }

  const std::string& characters() const { return characters_; }

  // Throws InvalidArgument for a byte that is not in the vocabulary.
  std::vector<int64_t> encode(std::string_view text, Site site = Site::here()) const;
  // Throws InvalidArgument for a token that is not in the vocabulary.
  std::string decode(const std::vector<int64_t>& tokens, Site site = Site::here()) const;

 private:
  std::string characters_;
  std::array<int64_t, 256> numbers_;  // -1: not in the vocabulary
};

struct TokenDatasetOptions {
  int64_t stride = 0;  // distance between the first tokens of consecutive samples; 0: the length
};

// Sample i is a pair of int64 tensors (length): the tokens from position i × stride, and the tokens
// one position later, which a language model has to predict. Throws InvalidArgument unless length
// and stride are positive and there are more than `length` tokens.
class TokenDataset {
 public:
  using Sample = std::pair<Tensor, Tensor>;

  TokenDataset(const std::vector<int64_t>& tokens, int64_t length,
               const TokenDatasetOptions& options = {}, Site site = Site::here());

  int64_t size() const { return size_; }

  Sample operator[](PositionArg i) const;
  Sample batch(const std::vector<int64_t>& indices) const;

 private:
  std::shared_ptr<const std::vector<int64_t>> tokens_;
  int64_t length_, stride_, size_;
};

}  // namespace flow::data
