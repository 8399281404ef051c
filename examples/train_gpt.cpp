// The main job: trains a character GPT on real text (4 layers, width 128, 4 heads, 128 characters
// at a time; AdamW, warm-up and cosine, clipped gradients). The text is this repository's sources
// and docs (run the program from the repository's root) or the files and folders given with --data.
// The program compares the model with counting models, resumes from a checkpoint to show that
// nothing changes, and prints a sample. After SIGTERM it saves a checkpoint and stops. Under a
// launcher with --dp D --tp T it runs on D × T ranks.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <optional>
#include <stdexcept>

#include <unistd.h>

#include "flow/flow.h"
#include "support/arguments.h"
#include "support/corpus.h"
#include "support/report.h"
#include "support/training.h"

namespace {

namespace nn = flow::nn;
namespace sbp = flow::sbp;
using examples::Corpus;
using flow::Tensor;

constexpr int64_t kLength = 128;
constexpr int64_t kBatch = 16;
constexpr double kLearningRate = 2e-3;
constexpr int64_t kWarmUp = 100;
constexpr int64_t kReplayed = 20;

// The layouts of tensors on a grid of data × tensor parallel ranks. With only one rank on the CPU,
// tensors are local.
struct Grid {
  flow::Placement placement = {};

  Grid() = default;

  Grid(const std::string& device, int64_t data, int64_t tensor) {
    if (data * tensor != flow::env::world_size()) {
      throw flow::InvalidArgument(flow::str("[train_gpt] --dp ", data, " --tp ", tensor, " needs ",
                                            data * tensor, " ranks; the job has ",
                                            flow::env::world_size()));
    }
    if (data * tensor == 1 && device == "cpu") return;
    std::vector<int64_t> ranks(static_cast<size_t>(data * tensor));
    std::iota(ranks.begin(), ranks.end(), 0);
    placement = flow::Placement(flow::parse_device_type(device), {data, tensor}, ranks);
  }

  bool is_parallel() const { return placement.defined(); }

  // Samples are split over the data parallel ranks.
  flow::TensorOptions rows() const {
    return is_parallel()
               ? flow::TensorOptions{.placement = placement, .sbp = {sbp::split(0), sbp::broadcast}}
               : flow::TensorOptions{};
  }

  flow::TensorOptions whole() const {
    return is_parallel()
               ? flow::TensorOptions{.placement = placement, .sbp = flow::NdSbp::broadcast(2)}
               : flow::TensorOptions{};
  }

  // Heads and the inner width of the feed-forward net are split over the tensor parallel ranks.
  void lay_out(nn::ModuleBase& model) const {
    if (!is_parallel()) return;
    const flow::NdSbp rows_cut{sbp::broadcast, sbp::split(0)};
    const flow::NdSbp columns_cut{sbp::broadcast, sbp::split(1)};
    model.to_global(placement, {{"*.attn.c_[qkv].*", rows_cut},
                                {"*.attn.c_proj.weight", columns_cut},
                                {"*.mlp.c_fc.*", rows_cut},
                                {"*.mlp.c_proj.weight", columns_cut},
                                {"*", flow::NdSbp::broadcast(2)}});
  }
};

bool leads() {
  return flow::env::rank() == 0;
}

using Loader = flow::data::DataLoader<flow::data::TokenDataset>;

Tensor loss_of(flow::models::Gpt& model, const Tensor& x, const Tensor& y) {
  return flow::cross_entropy(model(x).flatten(0, 1), y.flatten());
}

// Mean cross entropy over the text in windows. 0.8 % of the characters start a window, without
// context.
double validation_loss(flow::models::Gpt& model, const std::vector<int64_t>& text,
                       const Grid& grid) {
  const flow::NoGradGuard no_grad;
  Loader loader(flow::data::TokenDataset(text, kLength),
                {.batch_size = kBatch, .placement = grid.placement, .sbp = grid.rows().sbp});
  double sum = 0;
  int64_t windows = 0;
  for (auto [x, y] : loader) {
    sum += loss_of(model, x, y).item<double>() * static_cast<double>(x.size(0));
    windows += x.size(0);
  }
  return sum / static_cast<double>(windows);
}

// Everything that a checkpoint holds.
class Training {
 public:
  Training(const Corpus& corpus, const Grid& grid, int64_t steps)
      : loader_(flow::data::TokenDataset(corpus.train, kLength, {.stride = 1}),
                {.batch_size = kBatch,
                 .shuffle = true,
                 .drop_last = true,
                 .placement = grid.placement,
                 .sbp = grid.rows().sbp}),
        model_({.vocab_size = corpus.vocabulary.size(),
                .block_size = kLength,
                .n_layer = 4,
                .n_head = 4,
                .n_embd = 128,
                .tied = false}) {
    grid.lay_out(model_);
    optimizer_.emplace(
        model_.parameters(),
        flow::optim::AdamWOptions{.lr = kLearningRate, .betas = {0.9, 0.99}, .weight_decay = 0.1});
    schedule_.emplace(*optimizer_,
                      flow::optim::lr_scheduler::LambdaLROptions{
                          .lr_lambda = {[steps](int64_t step) {
                            const auto done = static_cast<double>(step);
                            const double warm = (done + 1) / kWarmUp;
                            const double turn = M_PI * done / static_cast<double>(steps);
                            return std::min(1.0, warm) * (0.55 + 0.45 * std::cos(turn));
                          }}});
  }

  flow::models::Gpt& model() { return model_; }

  int64_t step() const { return step_; }

  struct Outcome {
    double loss, grad_norm, lr;
  };

  double first_loss() {
    const flow::NoGradGuard no_grad;
    const auto [x, y] = *loader_.begin();
    return loss_of(model_, x, y).item<double>();
  }

  // Trains until step number `last`, or until on_step(outcome), which is called after each step,
  // returns true.
  template <class OnStep>
  void run_until(int64_t last, const OnStep& on_step) {
    while (step_ < last) {
      for (auto [x, y] : loader_) {
        const Outcome outcome = advance(x, y);
        ++step_;
        if (on_step(outcome)) return;
        if (step_ >= last) break;
      }
    }
  }

  void save(const nn::CheckpointFolder& folder) const {
    folder.save(step_, nn::joined({{"model", model_.state_dict()},
                                   {"optimizer", optimizer_->state_dict()},
                                   {"schedule", schedule_->state_dict()},
                                   {"loader", loader_.state_dict()}}));
  }

  void resume(const nn::Checkpoint& checkpoint) {
    model_.load_state_dict(checkpoint.read_all("model."));
    optimizer_->load_state_dict(checkpoint.read_all("optimizer."));
    schedule_->load_state_dict(checkpoint.read_all("schedule."));
    loader_.load_state_dict(checkpoint.read_all("loader."));
    flow::set_generator_state(checkpoint.generator());
    step_ = checkpoint.step();
  }

 private:
  Outcome advance(const Tensor& x, const Tensor& y) {
    const Tensor loss = loss_of(model_, x, y);
    optimizer_->zero_grad();
    loss.backward();
    const Tensor norm = nn::utils::clip_grad_norm_(model_.parameters(), 1.0);
    const double lr = optimizer_->lr();
    optimizer_->step();
    schedule_->step();
    return {loss.item<double>(), norm.item<double>(), lr};
  }

  Loader loader_;
  flow::models::Gpt model_;
  std::optional<flow::optim::AdamW> optimizer_;
  std::optional<flow::optim::lr_scheduler::LambdaLR> schedule_;
  int64_t step_ = 0;
};

// The loss before the first step, as a program on one rank computes it: rank 0 draws the same
// random numbers as a single process.
double first_loss_of_one_rank(const Corpus& corpus, uint64_t seed) {
  flow::manual_seed(seed);
  return Training(corpus, Grid(), 1).first_loss();
}

// A folder for this run only, the same on all ranks.
std::string own_folder() {
  Tensor process = flow::tensor({static_cast<int64_t>(getpid())});
  if (flow::env::world_size() > 1) process = flow::comm::broadcast(process, 0);
  const std::string name = flow::str("train_gpt_checkpoints.", process.item<int64_t>());
  return (std::filesystem::temp_directory_path() / name).string();
}

// Runs the last steps again from their checkpoint. Returns the largest difference of their losses.
double replay(const nn::CheckpointFolder& folder, Training& training,
              const std::vector<double>& losses) {
  const auto checkpoint = folder.newest();
  if (!checkpoint)
    throw flow::IoError("[train_gpt] the checkpoint that was just written is missing");
  training.resume(*checkpoint);
  double largest = 0;
  training.run_until(static_cast<int64_t>(losses.size()), [&](const Training::Outcome& outcome) {
    const double loss = losses[static_cast<size_t>(training.step() - 1)];
    largest = std::max(largest, std::abs(outcome.loss - loss));
    return false;
  });
  return largest;
}

void train(const examples::Arguments& arguments) {
  bool is_stopped = flow::env::stop_requested();  // SIGTERM now only asks; steps look for it
  const Grid grid(arguments.device, arguments.data_parallel, arguments.tensor_parallel);
  const Corpus corpus = examples::read_corpus(arguments.data);
  const int64_t steps = arguments.steps > 0 ? arguments.steps : 2000;
  const double alone = grid.is_parallel() ? first_loss_of_one_rank(corpus, arguments.seed) : 0;
  flow::manual_seed(arguments.seed);
  Training training(corpus, grid, steps);
  flow::models::Gpt& model = training.model();
  if (!arguments.init.empty()) model.load_state_dict(nn::load_safetensors(arguments.init));

  const bool keeps = !arguments.checkpoints.empty();
  const std::string path = keeps ? arguments.checkpoints : own_folder();
  const nn::CheckpointFolder folder(path, {.keep_last = 2});
  if (keeps) {
    if (const auto checkpoint = folder.newest()) training.resume(*checkpoint);
  }
  const double unigram = examples::unigram_loss(corpus), trigram = examples::trigram_loss(corpus);
  if (leads()) {
    std::printf("text: %zu characters to train on, %zu to validate, alphabet of %lld\n",
                corpus.train.size(), corpus.valid.size(),
                static_cast<long long>(corpus.vocabulary.size()));
    std::printf("model: GPT with %lld parameters, 4 layers, width 128, 4 heads, %lld characters\n",
                static_cast<long long>(model.num_parameters()), static_cast<long long>(kLength));
    std::printf("counting models: unigram %.4f, trigram %.4f nats per character\n", unigram,
                trigram);
    if (training.step() > 0) {
      std::printf("resumed at step %lld from %s\n", static_cast<long long>(training.step()),
                  path.c_str());
    }
    if (grid.is_parallel()) std::printf("%s", model.layout_table().c_str());
  }

  examples::Progress progress(steps - training.step(), "tokens");
  examples::StepLog log(arguments.log);
  std::vector<double> losses(static_cast<size_t>(training.step()));
  const int64_t first = training.step();
  const int64_t save_at = std::max(first, steps - kReplayed);
  if (save_at == first) training.save(folder);
  flow::reset_boxing_report();
  training.run_until(steps, [&](const Training::Outcome& outcome) {
    const int64_t step = training.step();
    losses.push_back(outcome.loss);
    if (step == 1 && grid.is_parallel() && arguments.init.empty() && leads()) {
      std::printf("first loss %.7f; on one rank %.7f\n", outcome.loss, alone);
      if (!(std::abs(outcome.loss - alone) <= 1e-5 * alone))
        throw std::runtime_error("[train_gpt] the ranks do not compute what one rank computes");
    }
    const double rate = progress.update(step - 1 - first, outcome.loss, kBatch * kLength);
    log.write(step - 1, outcome.loss, outcome.grad_norm, outcome.lr, rate / kLength);
    is_stopped = flow::env::stop_requested();
    if (is_stopped || step == save_at || (keeps && step % 500 == 0)) training.save(folder);
    return is_stopped;
  });
  progress.finish();
  if (is_stopped) {
    if (leads()) {
      std::printf("stopped at step %lld as requested; continue with --checkpoints %s\n",
                  static_cast<long long>(training.step()), path.c_str());
    }
    return;
  }
  if (grid.is_parallel() && leads()) {
    examples::print_boxing_summary(flow::boxing_report(), steps - first);
  }

  const double loss = validation_loss(model, corpus.valid, grid);
  if (leads()) {
    std::printf("validation loss %.4f: %.2f of the unigram entropy %.4f, %s the trigram's %.4f\n",
                loss, loss / unigram, unigram, loss < trigram ? "below" : "not below", trigram);
  }
  Training again(corpus, grid, steps);
  const double difference = replay(folder, again, losses);
  if (leads()) {
    std::printf("resumed from the checkpoint of step %lld: the last losses differ by at most %g\n",
                static_cast<long long>(save_at), difference);
  }
  if (difference != 0)
    throw std::runtime_error("[train_gpt] the steps after a checkpoint differ when they run again");
  if (keeps) {
    training.save(folder);
  } else if (leads()) {
    std::filesystem::remove_all(path);
  }
  if (!arguments.save.empty()) {
    nn::save_safetensors(arguments.save, model.state_dict());
    if (leads()) std::printf("weights written to %s\n", arguments.save.c_str());
  }
  const std::vector<int64_t> start(corpus.valid.begin(), corpus.valid.begin() + kLength / 4);
  const Tensor sample =
      flow::models::generate(model, flow::tensor(start, {1, kLength / 4}, grid.whole()),
                             {.max_new_tokens = 400, .temperature = 0.8});
  const std::string text = corpus.vocabulary.decode(sample.to_vector<int64_t>());
  if (leads()) std::printf("--- sample\n%s\n---\n", text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const examples::Arguments arguments(argc, argv,
                                        "Trains a character GPT on text and writes a sample.",
                                        {.checkpoints = true, .parallel = true});
    train(arguments);
  });
}
