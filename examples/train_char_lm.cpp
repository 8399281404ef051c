// A character language model on real text: the embeddings of the last 16 characters, two hidden
// layers, AdamW. Trains on this repository's sources and docs (run it from the repository's root)
// or on the files and folders given with --data; saves the weights, loads them again, writes a
// sample.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "flow/flow.h"
#include "nn/file.h"
#include "support/arguments.h"
#include "support/report.h"
#include "support/training.h"

namespace {

namespace nn = flow::nn;
using flow::Tensor;

constexpr int64_t kContext = 16;
constexpr int64_t kEmbedding = 32;
constexpr int64_t kHidden = 320;
constexpr int64_t kBatch = 256;
constexpr double kLearningRate = 2e-3;

// Text as small integers: the bytes that occur, in byte order.
struct Corpus {
  std::vector<int64_t> train, valid;
  std::vector<char> alphabet;
};

bool is_text_file(const std::filesystem::path& path) {
  static const std::array<std::string_view, 7> kEndings = {".h",  ".cpp", ".md",   ".txt",
                                                           ".py", ".cu",  ".cmake"};
  const std::string ending = path.extension().string();
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

// Files in a folder and below, in name order so that every run sees the same text.
void append_folder(const std::filesystem::path& folder, std::string& text) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && is_text_file(entry.path())) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files)
    text += nn::read_text(file.string());
}

std::string read_corpus(const std::vector<std::string>& paths) {
  std::string text;
  for (const std::string& path : paths) {
    if (std::filesystem::is_directory(path)) {
      append_folder(path, text);
    } else {
      text += nn::read_text(path);
    }
  }
  if (paths.empty()) {
    for (const char* folder :
         {"core", "ops", "boxing", "autograd", "eager", "graph", "pipeline", "nn", "docs"}) {
      if (!std::filesystem::is_directory(folder)) {
        throw flow::IoError(flow::str("[train_char_lm] there is no folder ", folder,
                                      " here; run from the repository's root or give --data FILE"));
      }
      append_folder(folder, text);
    }
  }
  return text;
}

// The last tenth is kept for validation.
Corpus make_corpus(const std::string& text) {
  if (text.size() < 20'000) {
    throw flow::InvalidArgument(flow::str("[train_char_lm] the text has ", text.size(),
                                          " characters; give at least 20000"));
  }
  std::array<int64_t, 256> code{};
  for (const char c : text)
    code[static_cast<unsigned char>(c)] = 1;
  Corpus corpus;
  for (size_t byte = 0; byte < code.size(); ++byte) {
    if (code[byte] == 0) continue;
    code[byte] = static_cast<int64_t>(corpus.alphabet.size());
    corpus.alphabet.push_back(static_cast<char>(byte));
  }
  const size_t cut = text.size() * 9 / 10;
  for (size_t i = 0; i < text.size(); ++i) {
    (i < cut ? corpus.train : corpus.valid).push_back(code[static_cast<unsigned char>(text[i])]);
  }
  return corpus;
}

// Cross entropy in nats of the validation text under the training text's letter frequencies.
double unigram_entropy(const Corpus& corpus) {
  std::vector<double> counts(corpus.alphabet.size(), 1);  // one more of each: none is impossible
  for (const int64_t c : corpus.train)
    counts[static_cast<size_t>(c)] += 1;
  double total = 0;
  for (const double count : counts)
    total += count;
  double sum = 0;
  for (const int64_t c : corpus.valid)
    sum -= std::log(counts[static_cast<size_t>(c)] / total);
  return sum / static_cast<double>(corpus.valid.size());
}

struct CharLm : nn::Module<CharLm> {
  nn::Embedding embedding;
  nn::Linear hidden1, hidden2, output;

  explicit CharLm(int64_t alphabet)
      : embedding(register_module("embedding", nn::Embedding(alphabet, kEmbedding))),
        hidden1(register_module("hidden1", nn::Linear(kContext * kEmbedding, kHidden))),
        hidden2(register_module("hidden2", nn::Linear(kHidden, kHidden))),
        output(register_module("output", nn::Linear(kHidden, alphabet))) {}

  // contexts: (N, kContext) int64 → logits (N, alphabet).
  Tensor forward(const Tensor& contexts) {
    const Tensor x = embedding(contexts).flatten(1);
    return output(flow::relu(hidden2(flow::relu(hidden1(x)))));
  }
};

// Contexts ending before each position, and the characters there.
std::pair<Tensor, Tensor> batch_at(const std::vector<int64_t>& text,
                                   const std::vector<int64_t>& positions) {
  std::vector<int64_t> contexts, targets;
  for (const int64_t position : positions) {
    const auto end = text.begin() + position;
    contexts.insert(contexts.end(), end - kContext, end);
    targets.push_back(*end);
  }
  const auto count = static_cast<int64_t>(positions.size());
  return {flow::tensor(contexts, {count, kContext}), flow::tensor(targets, {count})};
}

std::pair<Tensor, Tensor> random_batch(const std::vector<int64_t>& text) {
  const auto size = static_cast<int64_t>(text.size());
  return batch_at(text, flow::randint(kContext, size, {kBatch}).to_vector<int64_t>());
}

// Mean cross entropy over evenly spaced positions.
double validation_loss(CharLm& model, const std::vector<int64_t>& text) {
  const flow::NoGradGuard no_grad;
  constexpr int64_t kBatches = 40;
  const auto size = static_cast<int64_t>(text.size());
  double sum = 0;
  for (int64_t b = 0; b < kBatches; ++b) {
    std::vector<int64_t> positions;
    for (int64_t i = 0; i < kBatch; ++i) {
      const int64_t index = b * kBatch + i;
      positions.push_back(kContext + index * (size - kContext) / (kBatches * kBatch));
    }
    const auto [x, y] = batch_at(text, positions);
    sum += flow::cross_entropy(model(x), y).item<double>();
  }
  return sum / kBatches;
}

// Continues `start` by drawing from the softmax at temperature 0.8.
std::string sample(CharLm& model, const Corpus& corpus, int64_t length) {
  const flow::NoGradGuard no_grad;
  std::vector<int64_t> text(corpus.valid.begin(), corpus.valid.begin() + kContext);
  const std::vector<double> draws = flow::rand({length}).to_vector<double>();
  std::string result;
  for (const double draw : draws) {
    const std::vector<int64_t> context(text.end() - kContext, text.end());
    const Tensor logits = model(flow::tensor(context, {1, kContext}));
    const auto chances = flow::softmax(logits / 0.8, -1).to_vector<double>();
    double left = draw;
    size_t next = 0;
    while (next + 1 < chances.size() && (left -= chances[next]) > 0)
      ++next;
    text.push_back(static_cast<int64_t>(next));
    result += corpus.alphabet[next];
  }
  return result;
}

void train(const examples::Arguments& arguments) {
  const Corpus corpus = make_corpus(read_corpus(arguments.data));
  const auto alphabet = static_cast<int64_t>(corpus.alphabet.size());
  flow::manual_seed(arguments.seed);
  CharLm model(alphabet);
  if (!arguments.init.empty()) model.load_state_dict(nn::load_safetensors(arguments.init));
  std::printf("text: %zu characters to train on, %zu to validate, alphabet of %lld\n",
              corpus.train.size(), corpus.valid.size(), static_cast<long long>(alphabet));
  std::printf("model: %lld parameters, context of %lld characters\n",
              static_cast<long long>(model.num_parameters()), static_cast<long long>(kContext));

  const int64_t steps = arguments.steps > 0 ? arguments.steps : 3000;
  flow::optim::AdamW optimizer(model.parameters(), {.lr = kLearningRate});
  examples::Progress progress(steps, "characters");
  examples::StepLog log(arguments.log);
  for (int64_t step = 0; step < steps; ++step) {
    // A short warm-up, then a cosine down to a twentieth.
    const double warm = std::min(1.0, static_cast<double>(step + 1) / 100);
    const double done = static_cast<double>(step) / static_cast<double>(steps);
    optimizer.set_lr(kLearningRate * warm * (0.525 + 0.475 * std::cos(M_PI * done)));
    const auto start = std::chrono::steady_clock::now();
    const auto [x, y] = random_batch(corpus.train);
    const Tensor loss = flow::cross_entropy(model(x), y);
    optimizer.zero_grad();
    loss.backward();
    const double value = loss.item<double>();
    if (!arguments.log.empty()) {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      log.write(step, value, examples::gradient_norm(model.parameters()), optimizer.lr(),
                kBatch / took.count());
    }
    optimizer.step();
    progress.update(step, value, kBatch);
  }
  progress.finish();
  std::printf("validation loss %.4f, unigram entropy %.4f (nats a character)\n",
              validation_loss(model, corpus.valid), unigram_entropy(corpus));

  const bool keeps = !arguments.save.empty();
  const std::string path =
      keeps ? arguments.save
            : (std::filesystem::temp_directory_path() / "train_char_lm.safetensors").string();
  nn::save_safetensors(path, model.state_dict());
  CharLm loaded(alphabet);
  loaded.load_state_dict(nn::load_safetensors(path));
  if (!keeps) std::filesystem::remove(path);
  std::printf("weights saved%s%s and loaded again: validation loss %.4f\n", keeps ? " to " : "",
              keeps ? path.c_str() : "", validation_loss(loaded, corpus.valid));
  std::printf("--- sample\n%s\n---\n", sample(loaded, corpus, 400).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(
        argc, argv, "Trains a character language model on text and writes a sample.");
    train(arguments);
  });
}
