// Trains GPT-2 (124M parameters unless options say otherwise) on a file of tokens, in bfloat16
// mixed precision (with --masters: with parameters in bfloat16 and float32 masters of them), as a
// compiled step:
//
//   build/release/bin/train_gpt2 --device cuda --data train.bin --steps 1000 --save
//   gpt2.safetensors
//
// The file has two bytes for each token, the lower one first. Without --data, the characters of
// this repository's sources are the tokens (run the program from the repository's root). --init and
// --save take safetensors files with the names of Hugging Face's GPT-2. The program prints the
// loss, tokens per second, and MFU: the floating-point operations that a step needs, as a share of
// what the device could do. A token needs 6 for each weight of a linear layer and of the output
// layer, and 6 T C for the attention of each layer, the masked half not counted.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "flow/flow.h"
#include "support/arguments.h"
#include "support/corpus.h"
#include "support/report.h"
#include "support/training.h"

namespace {

namespace nn = flow::nn;
using examples::Arguments;
using flow::Tensor;
using flow::models::Gpt;
using flow::models::GptOptions;

constexpr double kLearningRate = 6e-4;
constexpr double kLeastRate = 6e-5;
constexpr int64_t kPadding = 128;  // the vocabulary is rounded up to a multiple of this

GptOptions model_options(const Arguments& arguments) {
  const int64_t padded = (arguments.vocabulary + kPadding - 1) / kPadding * kPadding;
  return {.vocab_size = padded,
          .block_size = arguments.length,
          .n_layer = arguments.layers,
          .n_head = arguments.heads,
          .n_embd = arguments.width};
}

// Weights decay in matrices, but not in biases and norms (Brown et al. 2020).
flow::optim::AdamW make_optimizer(Gpt& model, bool has_masters) {
  std::vector<Tensor> matrices, others;
  for (const Tensor& parameter : model.parameters())
    (parameter.dim() >= 2 ? matrices : others).push_back(parameter);
  flow::optim::AdamWOptions options{.lr = kLearningRate,
                                    .betas = {0.9, 0.95},
                                    .weight_decay = 0.1,
                                    .master_weights = has_masters};
  std::vector<flow::optim::ParamGroup<flow::optim::AdamWOptions>> groups = {{matrices, options}};
  options.weight_decay = 0;
  groups.push_back({others, options});
  return flow::optim::AdamW(groups);
}

// The factor of the learning rate: it rises during the first tenth of the steps and falls along a
// half cosine.
double rate_factor(int64_t step, int64_t steps) {
  const double warm_up = std::max<double>(1, static_cast<double>(steps) / 10);
  const double done = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, steps));
  const double low = kLeastRate / kLearningRate;
  return std::min((static_cast<double>(step) + 1) / warm_up,
                  low + (1 - low) * (0.5 + 0.5 * std::cos(M_PI * std::min(1.0, done))));
}

struct TrainStep : nn::Graph<TrainStep> {
  Gpt model;

  TrainStep(const Gpt& m, flow::optim::AdamW& optimizer, flow::optim::lr_scheduler::LRScheduler& lr,
            const Arguments& arguments)
      : model(register_module("model", m)) {
    add_optimizer(optimizer, {.lr_scheduler = &lr});
    config().set_cuda_graphs(arguments.cuda_graphs);
    if (!arguments.masters) config().enable_amp(flow::bfloat16);
  }

  // The loss, and the norm of the gradients before they are clipped.
  std::array<Tensor, 2> build(const Tensor& tokens, const Tensor& targets) {
    const Tensor logits = model(tokens).flatten(0, 1).to(flow::float32);
    const Tensor loss = flow::cross_entropy(logits, targets.flatten());
    loss.backward();
    return {loss, nn::utils::clip_grad_norm_(model.parameters(), 1.0)};
  }
};

double flops_per_token(const GptOptions& model) {
  const auto width = static_cast<double>(model.n_embd);
  const auto layers = static_cast<double>(model.n_layer);
  const double weights =
      layers * 12 * width * width + static_cast<double>(model.vocab_size) * width;
  return 6 * weights + layers * 6 * static_cast<double>(model.block_size) * width;
}

// bfloat16 products of the device without sparsity, by its maker's data sheet, in TFLOP/s; 0 if
// this program does not know the device.
double peak_of_device(const Arguments& arguments) {
  if (arguments.peak > 0 || arguments.device == "cpu") return arguments.peak;
  const std::string name = flow::cuda::device_name(flow::cuda::current_device());
  for (const auto& [part, peak] : {std::pair{"H100", 989.0}, {"H200", 989.0}, {"A100", 312.0}}) {
    if (name.find(part) != std::string::npos) return peak;
  }
  return 0;
}

std::vector<int64_t> read_data(const Arguments& arguments) {
  std::vector<int64_t> tokens;
  if (arguments.data.empty()) {
    const examples::Corpus corpus = examples::read_corpus({});
    for (const std::vector<int64_t>& part : {corpus.train, corpus.valid})
      tokens.insert(tokens.end(), part.begin(), part.end());
  }
  for (const std::string& path : arguments.data) {
    const std::vector<int64_t> part = flow::data::read_tokens(path);
    tokens.insert(tokens.end(), part.begin(), part.end());
  }
  const auto largest = std::max_element(tokens.begin(), tokens.end());
  if (largest != tokens.end() && *largest >= arguments.vocabulary) {
    throw flow::InvalidArgument(flow::str("[train_gpt2] the data has the token ", *largest,
                                          ", and the vocabulary has ", arguments.vocabulary,
                                          "; give a larger --vocabulary, or another --data"));
  }
  return tokens;
}

// Prints a line for every tenth step. Losses stay on the device until then, so that the steps
// between follow each other without a wait.
class Progress {
 public:
  Progress(const Arguments& arguments, double flops_of_step)
      : log_(arguments.log),
        every_(std::clamp<int64_t>(arguments.steps / 10, 1, 10)),
        tokens_(static_cast<double>(arguments.batch * arguments.length)),
        flops_(flops_of_step),
        peak_(peak_of_device(arguments) * 1e12) {}

  void add(const std::array<Tensor, 2>& loss_and_norm, double lr) {
    steps_.push_back({loss_and_norm[0], loss_and_norm[1], lr});
    if (static_cast<int64_t>(steps_.size()) == every_) show();
  }

  // Shows the steps that were added since the last line.
  void show() {
    if (steps_.empty()) return;
    const double last = steps_.back().loss.item<double>();  // waits for the steps
    const double steps_per_s = meter_.rate(static_cast<int64_t>(steps_.size()));
    for (const Step& step : steps_) {
      log_.write(done_++, step.loss.item<double>(), step.norm.item<double>(), step.lr,
                 steps_per_s * tokens_);
    }
    std::printf("step %5lld  loss %.4f  lr %.2e  %.1f ms  %.0f tokens/s",
                static_cast<long long>(done_), last, steps_.back().lr, 1e3 / steps_per_s,
                steps_per_s * tokens_);
    if (peak_ > 0) std::printf("  MFU %.1f %%", 100 * steps_per_s * flops_ / peak_);
    std::printf("\n");
    std::fflush(stdout);
    if (!std::isfinite(last)) {
      throw flow::InvalidArgument(flow::str("[train_gpt2] the loss of step ", done_,
                                            " is not finite; look for the first such value with "
                                            "flow::check_finite"));
    }
    steps_.clear();
    meter_.start();
  }

 private:
  struct Step {
    Tensor loss, norm;
    double lr;
  };

  examples::StepLog log_;
  examples::RateMeter meter_;
  int64_t every_;
  double tokens_, flops_, peak_;
  int64_t done_ = 0;
  std::vector<Step> steps_;
};

void train(const Arguments& arguments) {
  flow::manual_seed(arguments.seed);
  const GptOptions options = model_options(arguments);
  Gpt model(options);
  if (!arguments.init.empty()) flow::models::load_gpt(model, arguments.init);
  model.to(arguments.device);
  if (arguments.masters) model.to(flow::bfloat16);
  flow::optim::AdamW optimizer = make_optimizer(model, arguments.masters);
  flow::optim::lr_scheduler::LambdaLR schedule(
      optimizer,
      {.lr_lambda = [steps = arguments.steps](int64_t step) { return rate_factor(step, steps); }});
  TrainStep step(model, optimizer, schedule, arguments);
  flow::data::DataLoader loader(flow::data::TokenDataset(read_data(arguments), arguments.length),
                                {.batch_size = arguments.batch,
                                 .shuffle = !arguments.in_order,
                                 .num_workers = 1,
                                 .drop_last = true});
  if (loader.num_batches() == 0) {
    throw flow::InvalidArgument(flow::str("[train_gpt2] the data has fewer than ", arguments.batch,
                                          " sequences of ", arguments.length + 1,
                                          " tokens; give more --data, or a smaller --batch"));
  }
  std::printf("GPT-2 with %lld parameters, %lld sequences of %lld tokens a step, on %s\n",
              static_cast<long long>(model.num_parameters()),
              static_cast<long long>(arguments.batch), static_cast<long long>(arguments.length),
              arguments.device.c_str());
  const auto tokens_of_step = static_cast<double>(arguments.batch * arguments.length);
  Progress progress(arguments, tokens_of_step * flops_per_token(options));
  for (int64_t done = 0; done < arguments.steps;) {
    for (const auto& [x, y] : loader) {
      const double lr = optimizer.lr();
      progress.add(step(x.to(arguments.device), y.to(arguments.device)), lr);
      if (++done == arguments.steps) break;
    }
  }
  progress.show();
  if (!arguments.save.empty()) {
    model.to("cpu");
    flow::models::save_gpt(model, arguments.save, arguments.vocabulary);
    std::printf("weights: %s\n", arguments.save.c_str());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    train(Arguments(argc, argv, "Trains GPT-2 on a file of tokens.", {.gpt2 = true, .steps = 200}));
  });
}
