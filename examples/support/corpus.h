// Text to learn from, as small integers, and what simple models of it reach.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/data/text.h"

namespace examples {

// A text in numbers; the last tenth is kept for validation.
struct Corpus {
  flow::data::CharVocabulary vocabulary;
  std::vector<int64_t> train, valid;
};

// The files and folders (source and text files in name order) of `paths`; of none, this
// repository's sources and docs, which must lie in the working directory. Throws flow::IoError,
// or flow::InvalidArgument where there are fewer than 20,000 characters.
Corpus read_corpus(const std::vector<std::string>& paths);

// Cross entropy of the validation text, in nats a character, under counts of the training text:
// of characters (with one added to each), and of characters after the two before them, interpolated
// with shorter contexts (Witten and Bell 1991).
double unigram_loss(const Corpus& corpus);
double trigram_loss(const Corpus& corpus);

}  // namespace examples
