// A character GPT on text: files and folders given with --data, or the sources and docs below the
// working directory. --save writes all that a run consists of; --init goes on from it, step for
// step, or starts from a file of weights alone.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "flow/flow.h"
#include "support/arguments.h"
#include "support/report.h"
#include "support/training.h"

namespace {

namespace nn = flow::nn;
namespace lrs = flow::optim::lr_scheduler;
using flow::Tensor;

constexpr int64_t kBlock = 128, kBatch = 16, kLayers = 4, kHeads = 4, kWidth = 128;
constexpr double kLearningRate = 3e-3;

std::string read_corpus(const std::vector<std::string>& paths) {
  if (!paths.empty()) return flow::data::read_text_files(paths, {".txt", ".md", ".h", ".cpp"});
  std::vector<std::string> folders;
  for (const char* folder : {"core", "ops", "boxing", "autograd", "nn", "docs"}) {
    if (std::filesystem::is_directory(folder)) folders.emplace_back(folder);
  }
  return flow::data::read_text_files(folders, {".md", ".h", ".cpp"});
}

// Everything that decides how a run goes on, under one prefix each.
struct Run {
  flow::models::Gpt model;
  flow::optim::AdamW optimizer;
  int64_t warm_up;
  lrs::LinearLR warm;
  lrs::CosineAnnealingLR cosine;
  lrs::SequentialLR rate;
  flow::data::DataLoader<flow::data::TokenDataset> loader;

  Run(int64_t alphabet, const std::vector<int64_t>& tokens, int64_t steps)
      : model({.vocab_size = alphabet,
               .block_size = kBlock,
               .n_layer = kLayers,
               .n_head = kHeads,
               .n_embd = kWidth}),
        optimizer(model.parameters(), {.lr = kLearningRate, .betas = {0.9, 0.99}}),
        warm_up(std::max<int64_t>(1, std::min<int64_t>(100, steps / 10))),
        warm(optimizer, {.start_factor = 0.01, .total_iters = warm_up}),
        cosine(optimizer, {.T_max = std::max<int64_t>(1, steps - warm_up), .eta_min = 1e-4}),
        rate(optimizer, {&warm, &cosine}, {.milestones = {warm_up}}),
        loader(flow::data::TokenDataset(tokens, kBlock, {.stride = 1}),
               {.batch_size = kBatch, .shuffle = true, .num_workers = 1, .drop_last = true}) {}

  nn::StateDict state() const {
    nn::StateDict all;
    const auto add = [&](const std::string& prefix, const nn::StateDict& part) {
      for (const auto& [name, value] : part)
        all.emplace(prefix + name, value);
    };
    add("model.", model.state_dict());
    add("optimizer.", optimizer.state_dict());
    add("rate.", rate.state_dict());
    add("loader.", loader.state_dict());
    const flow::Generator::State generator = flow::generator_state();
    all.emplace("generator",
                flow::tensor(std::vector<int64_t>{static_cast<int64_t>(generator.seed),
                                                  static_cast<int64_t>(generator.next_stream)},
                             {2}));
    return all;
  }

  // The number of steps that are done.
  int64_t load(const nn::StateDict& all) {
    const auto part = [&](const std::string& prefix) {
      nn::StateDict found;
      for (const auto& [name, value] : all) {
        if (name.starts_with(prefix)) found.emplace(name.substr(prefix.size()), value);
      }
      return found;
    };
    if (!all.contains("generator")) {
      model.load_state_dict(all);
      return 0;
    }
    model.load_state_dict(part("model."));
    optimizer.load_state_dict(part("optimizer."));
    rate.load_state_dict(part("rate."));
    loader.load_state_dict(part("loader."));
    const auto generator = all.at("generator").to_vector<int64_t>();
    flow::set_generator_state({.seed = static_cast<uint64_t>(generator[0]),
                               .next_stream = static_cast<uint64_t>(generator[1])});
    return rate.last_epoch();
  }
};

Tensor loss_of(flow::models::Gpt& model, const Tensor& x, const Tensor& y) {
  return flow::cross_entropy(model(x).flatten(0, 1), y.flatten());
}

double validation_loss(flow::models::Gpt& model, const std::vector<int64_t>& tokens) {
  const flow::NoGradGuard no_grad;
  const flow::data::TokenDataset all(tokens, kBlock);
  constexpr int64_t kSamples = 64;
  std::vector<int64_t> evenly;
  for (int64_t i = 0; i < std::min(kSamples, all.size()); ++i)
    evenly.push_back(i * all.size() / std::min(kSamples, all.size()));
  const auto [x, y] = all.batch(evenly);
  return loss_of(model, x, y).item<double>();
}

// Mean of -log of the chance of a token of `valid`, by how often it occurs in `train`.
double unigram_entropy(const std::vector<int64_t>& train, const std::vector<int64_t>& valid,
                       int64_t alphabet) {
  std::vector<double> counts(static_cast<size_t>(alphabet), 1);
  for (const int64_t token : train)
    counts[static_cast<size_t>(token)] += 1;
  const double total = static_cast<double>(train.size()) + static_cast<double>(alphabet);
  double sum = 0;
  for (const int64_t token : valid)
    sum -= std::log(counts[static_cast<size_t>(token)] / total);
  return sum / static_cast<double>(valid.size());
}

void train(const examples::Arguments& arguments) {
  const std::string text = read_corpus(arguments.data);
  if (text.size() < 20'000) {
    throw flow::InvalidArgument(flow::str("[train_gpt] the text has ", text.size(),
                                          " characters; give at least 20000 with --data"));
  }
  const flow::data::CharVocabulary vocabulary(text);
  const std::vector<int64_t> all = vocabulary.encode(text);
  const auto cut = all.begin() + static_cast<ptrdiff_t>(all.size() * 9 / 10);
  const std::vector<int64_t> tokens(all.begin(), cut), valid(cut, all.end());

  flow::manual_seed(arguments.seed);
  const int64_t steps = arguments.steps > 0 ? arguments.steps : 500;
  Run run(vocabulary.size(), tokens, steps);
  int64_t step = arguments.init.empty() ? 0 : run.load(nn::load_safetensors(arguments.init));
  std::printf("text: %zu characters to train on, %zu to validate, alphabet of %lld\n",
              tokens.size(), valid.size(), static_cast<long long>(vocabulary.size()));
  std::printf("model: %lld parameters, %lld layers, context of %lld characters; from step %lld\n",
              static_cast<long long>(run.model.num_parameters()), static_cast<long long>(kLayers),
              static_cast<long long>(kBlock), static_cast<long long>(step));

  examples::Progress progress(steps, "characters");
  examples::StepLog log(arguments.log);
  while (step < steps) {
    for (auto [x, y] : run.loader) {
      const auto start = std::chrono::steady_clock::now();
      const Tensor loss = loss_of(run.model, x, y);
      run.optimizer.zero_grad();
      loss.backward();
      const Tensor norm = nn::utils::clip_grad_norm_(run.model.parameters(), 1);
      const double rate = run.optimizer.lr();
      run.optimizer.step();
      run.rate.step();
      const double value = loss.item<double>();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      log.write(step, value, norm.item<double>(), rate, kBatch / took.count());
      progress.update(step, value, kBatch * kBlock);
      if (++step == steps) break;
    }
  }
  progress.finish();
  run.model.eval();
  std::printf("validation loss %.4f, unigram entropy %.4f (nats a character)\n",
              validation_loss(run.model, valid), unigram_entropy(tokens, valid, vocabulary.size()));
  if (!arguments.save.empty()) nn::save_safetensors(arguments.save, run.state());
  const Tensor start =
      flow::tensor(std::vector<int64_t>(valid.begin(), valid.begin() + 32), {1, 32});
  const Tensor sample =
      flow::models::generate(run.model, start, {.max_new_tokens = 300, .temperature = 0.8});
  std::printf("--- sample\n%s\n---\n", vocabulary.decode(sample.to_vector<int64_t>()).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    train(examples::Arguments(argc, argv, "Trains a character GPT on text and writes a sample."));
  });
}
