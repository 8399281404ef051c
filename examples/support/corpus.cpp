#include "support/corpus.h"

#include <array>
#include <cmath>
#include <filesystem>
#include <unordered_map>

#include "core/error.h"

namespace examples {

namespace {

// The folders of the repository, which must be the working directory. The last tenth of the text,
// for validation, is code, as most of the rest.
std::vector<std::string> own_folders() {
  std::vector<std::string> folders = {"docs",  "core",  "ops",      "boxing", "autograd",
                                      "eager", "graph", "pipeline", "nn"};
  for (const std::string& folder : folders) {
    if (std::filesystem::is_directory(folder)) continue;
    throw flow::IoError(
        flow::str("[data] cannot find the folder ", folder,
                  " in the working directory; run from the repository's root or give --data FILE"));
  }
  return folders;
}

// How often each character came after a context.
struct Counts {
  std::unordered_map<int64_t, int64_t> of;
  int64_t total = 0;

  void add(int64_t c) {
    ++of[c];
    ++total;
  }

  // (n(c) + T p) / (n + T), with T different characters seen and p the shorter context's chance.
  double chance(int64_t c, double shorter) const {
    const auto found = of.find(c);
    const auto count = static_cast<double>(found == of.end() ? 0 : found->second);
    const auto distinct = static_cast<double>(of.size());
    return (count + distinct * shorter) / (static_cast<double>(total) + distinct);
  }
};

}  // namespace

Corpus read_corpus(const std::vector<std::string>& paths) {
  const std::string text = flow::data::read_text_files(
      paths.empty() ? own_folders() : paths, {".h", ".cpp", ".md", ".txt", ".py", ".cu", ".cmake"});
  if (text.size() < 40'000) {
    throw flow::InvalidArgument(flow::str("[data] the text has ", text.size(),
                                          " characters; training needs at least 40000"));
  }
  Corpus corpus{.vocabulary = flow::data::CharVocabulary(text), .train = {}, .valid = {}};
  corpus.valid = corpus.vocabulary.encode(text);
  const auto cut = corpus.valid.begin() + static_cast<ptrdiff_t>(text.size() * 9 / 10);
  corpus.train.assign(corpus.valid.begin(), cut);
  corpus.valid.erase(corpus.valid.begin(), cut);
  return corpus;
}

double unigram_loss(const Corpus& corpus) {
  std::vector<double> counts(static_cast<size_t>(corpus.vocabulary.size()), 1);
  for (const int64_t c : corpus.train)
    counts[static_cast<size_t>(c)] += 1;
  const auto total = static_cast<double>(corpus.train.size() + counts.size());
  double sum = 0;
  for (const int64_t c : corpus.valid)
    sum -= std::log(counts[static_cast<size_t>(c)] / total);
  return sum / static_cast<double>(corpus.valid.size());
}

double trigram_loss(const Corpus& corpus) {
  const int64_t size = corpus.vocabulary.size();
  // By the number of characters before: none, one, two.
  std::array<std::unordered_map<int64_t, Counts>, 3> counts;
  const auto context = [&](const std::vector<int64_t>& text, size_t at, size_t length) {
    int64_t key = 0;
    for (size_t i = at - length; i < at; ++i)
      key = key * size + text[i];
    return key;
  };
  for (size_t at = 2; at < corpus.train.size(); ++at) {
    for (size_t length = 0; length < counts.size(); ++length)
      counts[length][context(corpus.train, at, length)].add(corpus.train[at]);
  }
  double sum = 0;
  for (size_t at = 2; at < corpus.valid.size(); ++at) {
    double chance = 1 / static_cast<double>(size);
    for (size_t length = 0; length < counts.size(); ++length) {
      const auto found = counts[length].find(context(corpus.valid, at, length));
      if (found != counts[length].end()) chance = found->second.chance(corpus.valid[at], chance);
    }
    sum -= std::log(chance);
  }
  return sum / static_cast<double>(corpus.valid.size() - 2);
}

}  // namespace examples
