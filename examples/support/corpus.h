// Text for training as small integers, and the loss of simple models of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nn/data/text.h"

namespace examples {

// A text as numbers. The last tenth is kept for validation.
struct Corpus {
  flow::data::CharVocabulary vocabulary;
  std::vector<int64_t> train, valid;
};

// Reads the files and folders of `paths` (source and text files in the order of their names). If
// `paths` is empty, reads this repository's sources and docs, which must be in the working
// directory. Throws flow::IoError, or flow::InvalidArgument if there are fewer than 40,000
// characters.
Corpus read_corpus(const std::vector<std::string>& paths);

// The cross entropy of the validation text, in nats per character, under two models that count the
// training text: counts of characters (with one added to each), and counts of characters after the
// previous two, interpolated with shorter contexts (Witten and Bell 1991).
double unigram_loss(const Corpus& corpus);
double trigram_loss(const Corpus& corpus);

}  // namespace examples
