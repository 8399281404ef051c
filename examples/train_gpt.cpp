// The main job: trains a character GPT on real text (4 layers, width 128, 4 heads, 128 characters
// at a time; AdamW, warm-up and cosine, clipped gradients) as a compiled pipeline of --pp stages,
// --dp ranks that share the samples and --tp ranks that share heads and widths:
//
//   flowrun --ranks=threads:4 build/release/bin/train_gpt --pp 2 --dp 2
//
// The text is this repository's sources and docs (run the program from the repository's root) or
// the files and folders given with --data. The program compares the first loss with that of one
// rank and the model with counting models, resumes from a checkpoint to show that nothing changes,
// and writes a sample. Checkpoints, log, timelines and report.html are in the folder --run. After
// SIGTERM it saves a checkpoint and stops; --resume goes on from there.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "flow/flow.h"
#include "support/arguments.h"
#include "support/corpus.h"
#include "support/gpt_layout.h"
#include "support/plan_text.h"
#include "support/report.h"
#include "support/run_checks.h"
#include "support/run_folder.h"
#include "support/run_report.h"
#include "support/training.h"

namespace {

namespace nn = flow::nn;
using examples::Arguments;
using examples::Corpus;
using examples::GptLayout;
using flow::Tensor;
using flow::models::Gpt;

constexpr int64_t kLength = 128;
constexpr int64_t kBatch = 16;
constexpr int64_t kMicroBatches = 8;
constexpr double kLearningRate = 2e-3;
constexpr int64_t kWarmUp = 100;
constexpr int64_t kReplayed = 20;         // steps that run again from a checkpoint
constexpr int64_t kValidations = 20;      // during training
constexpr int64_t kCheckedWindows = 128;  // of the validation text, each time

Gpt make_model(const Corpus& corpus) {
  return Gpt({.vocab_size = corpus.vocabulary.size(),
              .block_size = kLength,
              .n_layer = 4,
              .n_head = 4,
              .n_embd = 128,
              .tied = false});
}

// The last stage computes the loss, so the targets go there.
Tensor loss_of(Gpt& model, const Tensor& x, const Tensor& y) {
  const Tensor logits = model(x).flatten(0, 1);
  const Tensor targets = logits.is_global() ? y.to_global({.placement = logits.placement()}) : y;
  return flow::cross_entropy(logits, targets.flatten());
}

// A training step: forward, backward and update of the stages, 1F1B.
struct TrainStep : nn::Graph<TrainStep> {
  Gpt model;

  TrainStep(const Gpt& m, flow::optim::AdamW& optimizer, flow::optim::lr_scheduler::LRScheduler& lr)
      : model(register_module("model", m)) {
    add_optimizer(optimizer, {.lr_scheduler = &lr});
    config().set_micro_batches(kMicroBatches).set_schedule(flow::pipeline::one_f_one_b());
  }

  void record(const std::string& path, int64_t steps) {
    config().set_timeline(path, {.skip = std::min<int64_t>(10, steps / 4), .runs = 3});
  }

  // The loss, and the norm of the gradients before they are clipped.
  std::array<Tensor, 2> build(const Tensor& x, const Tensor& y) {
    const Tensor loss = loss_of(model, x, y);
    loss.backward();
    return {loss, nn::utils::clip_grad_norm_(model.parameters(), 1.0)};
  }
};

struct Evaluate : nn::Graph<Evaluate> {
  Gpt model;

  explicit Evaluate(const Gpt& m) : model(m) { config().set_micro_batches(kMicroBatches); }

  Tensor build(const Tensor& x, const Tensor& y) { return loss_of(model, x, y); }
};

using Loader = flow::data::DataLoader<flow::data::TokenDataset>;

// Everything that a checkpoint holds.
class Training {
 public:
  Training(const Corpus& corpus, const GptLayout& layout, const Arguments& arguments)
      : loader_(flow::data::TokenDataset(corpus.train, kLength, {.stride = 1}),
                {.batch_size = kBatch,
                 .shuffle = true,
                 .drop_last = true,
                 .placement = layout.batch().placement,
                 .sbp = layout.batch().sbp}),
        model_(laid_out(corpus, layout, arguments)),
        optimizer_(model_.parameters(),
                   {.lr = kLearningRate, .betas = {0.9, 0.99}, .weight_decay = 0.1}),
        schedule_(optimizer_, {.lr_lambda = {[steps = arguments.steps](int64_t step) {
                                 const auto done = static_cast<double>(step);
                                 const double warm = (done + 1) / kWarmUp;
                                 const double turn = M_PI * done / static_cast<double>(steps);
                                 return std::min(1.0, warm) * (0.55 + 0.45 * std::cos(turn));
                               }}}),
        graph_(model_, optimizer_, schedule_) {}

  const Gpt& model() const { return model_; }

  TrainStep& graph() { return graph_; }

  int64_t step() const { return step_; }

  // The loss of the first batch, computed eagerly, for local tensors.
  double first_loss() {
    const flow::NoGradGuard no_grad;
    const auto [x, y] = *loader_.begin();
    return loss_of(model_, x, y).item<double>();
  }

  // Trains until step number `last`, or until on_step, which is called after each step, returns
  // true.
  void run_until(int64_t last, const std::function<bool(const examples::StepRecord&)>& on_step) {
    while (step_ < last) {
      for (const auto& [x, y] : loader_) {
        examples::StepRecord record{.step = step_++, .lr = optimizer_.lr()};
        const auto [loss, norm] = graph_(x, y);
        record.loss = loss.item<double>();
        record.grad_norm = norm.item<double>();
        if (on_step(record)) return;
        if (step_ >= last) break;
      }
    }
  }

  void save(const nn::CheckpointFolder& folder) const {
    folder.save(step_,
                nn::joined({{"graph", graph_.state_dict()}, {"loader", loader_.state_dict()}}));
  }

  void resume(const nn::Checkpoint& checkpoint) {
    graph_.load_state_dict(checkpoint.read_all("graph."));
    loader_.load_state_dict(checkpoint.read_all("loader."));
    flow::set_generator_state(checkpoint.generator());
    step_ = checkpoint.step();
  }

 private:
  static Gpt laid_out(const Corpus& corpus, const GptLayout& layout, const Arguments& arguments) {
    Gpt model = make_model(corpus);
    if (!arguments.init.empty()) model.load_state_dict(nn::load_safetensors(arguments.init));
    layout.lay_out(model);
    return model;
  }

  Loader loader_;
  Gpt model_;  // a handle; the graph has the same model
  flow::optim::AdamW optimizer_;
  flow::optim::lr_scheduler::LambdaLR schedule_;
  TrainStep graph_;
  int64_t step_ = 0;
};

// The loss before the first step as a program on one rank computes it: a rank draws the same random
// numbers as a single process.
double first_loss_of_one_rank(const Corpus& corpus, const Arguments& arguments) {
  flow::manual_seed(arguments.seed);
  return Training(corpus, GptLayout(), arguments).first_loss();
}

// Mean cross entropy over windows of the text that begin every `stride` characters, without
// context.
double validation_loss(Evaluate& graph, const std::vector<int64_t>& text, const GptLayout& layout,
                       int64_t stride) {
  const flow::NoGradGuard no_grad;
  Loader loader(flow::data::TokenDataset(text, kLength, {.stride = stride}),
                {.batch_size = kBatch,
                 .drop_last = true,
                 .placement = layout.batch().placement,
                 .sbp = layout.batch().sbp});
  double sum = 0;
  for (const auto& [x, y] : loader)
    sum += graph(x, y).item<double>();
  return sum / static_cast<double>(loader.num_batches());
}

// Runs the last steps again from their checkpoint and returns the losses.
std::vector<double> replay(Training& training, const nn::Checkpoint& checkpoint, int64_t last) {
  training.resume(checkpoint);
  std::vector<double> losses;
  training.run_until(last, [&](const examples::StepRecord& record) {
    losses.push_back(record.loss);
    return false;
  });
  return losses;
}

// A checkpoint fits any layout: here the one of a single rank, which continues the text.
std::string continued(const Corpus& corpus, const std::vector<int64_t>& start,
                      const nn::Checkpoint& checkpoint) {
  Gpt model = make_model(corpus);
  model.load_state_dict(checkpoint.read_all("graph.model."));
  const auto length = static_cast<int64_t>(start.size());
  const Tensor tokens = flow::models::generate(model, flow::tensor(start, {1, length}),
                                               {.max_new_tokens = 400, .temperature = 0.8});
  return corpus.vocabulary.decode(
      tokens.narrow(1, length, tokens.size(1) - length).to_vector<int64_t>());
}

// What is known before the first step, for the terminal and the report.
std::vector<std::pair<std::string, std::string>> facts_of(const Corpus& corpus, const Gpt& model,
                                                          const GptLayout& layout) {
  return {{"text", flow::str(corpus.train.size(), " characters to train on, ", corpus.valid.size(),
                             " to validate, alphabet of ", corpus.vocabulary.size())},
          {"counting models", flow::str("unigram ", examples::unigram_loss(corpus), ", trigram ",
                                        examples::trigram_loss(corpus), " nats per character")},
          {"model", flow::str("GPT with ", model.num_parameters(),
                              " parameters, 4 layers, width 128, 4 heads, ", kLength,
                              " characters at a time")},
          {"pipeline", flow::str(layout.describe(), ", 1F1B, ", kMicroBatches, " micro-batches of ",
                                 kBatch / kMicroBatches, " sequences")}};
}

void train(const Arguments& arguments) {
  bool is_stopped = flow::env::stop_requested();  // SIGTERM now only asks; steps look for it
  const bool is_first_rank = flow::env::rank() == 0;
  const GptLayout layout({.device = arguments.device,
                          .stages = arguments.pipeline_parallel,
                          .data = arguments.data_parallel,
                          .tensor = arguments.tensor_parallel});
  const Corpus corpus = examples::read_corpus(arguments.data);
  const double alone = is_first_rank ? first_loss_of_one_rank(corpus, arguments) : 0;
  flow::manual_seed(arguments.seed);
  Training training(corpus, layout, arguments);
  const examples::RunFolder run(arguments.run, arguments.resumes);
  const nn::CheckpointFolder checkpoints(run.checkpoints(), {.keep_last = 2});
  if (const auto newest = checkpoints.newest()) training.resume(*newest);
  const int64_t first = training.step(), steps = arguments.steps;

  training.graph().record(run.timeline(), steps - first);
  const Tensor blank = flow::zeros({kBatch, kLength}, layout.batch());
  const nn::CompiledGraph& plan = training.graph().compile(blank, blank);
  examples::RunReport report{.title = "Training of a character GPT", .subtitle = layout.describe()};
  if (is_first_rank) {
    plan.write_predicted_timeline(run.predicted_timeline());
    report.unigram = examples::unigram_loss(corpus);
    report.trigram = examples::trigram_loss(corpus);
    report.facts = facts_of(corpus, training.model(), layout);
    for (const auto& [name, fact] : report.facts)
      std::printf("%s: %s\n", name.c_str(), fact.c_str());
    std::printf("%s", examples::describe_plan(plan).c_str());
    if (first > 0) std::printf("resumed at step %lld\n", static_cast<long long>(first));
  }

  Evaluate evaluation(training.model());
  const auto validation_length = static_cast<int64_t>(corpus.valid.size());
  const int64_t sparse = std::max(kLength, validation_length / kCheckedWindows);
  examples::RunLog log(run.steps(), first);
  examples::Progress progress(steps - first, "tokens");
  examples::RateMeter meter;
  const int64_t save_at = std::max(first, steps - kReplayed);
  if (save_at == first) training.save(checkpoints);
  training.run_until(steps, [&](examples::StepRecord record) {
    const int64_t step = training.step();
    record.tokens_per_s = meter.rate(kBatch * kLength);
    if (step == 1 && is_first_rank) {
      examples::check_first_loss(record.loss, alone);
      report.facts.emplace_back(
          "first loss",
          flow::str(examples::shortest(record.loss), "; on one rank ", examples::shortest(alone)));
      std::printf("first loss: %s\n", report.facts.back().second.c_str());
    }
    if (step % std::max<int64_t>(1, steps / kValidations) == 0)
      record.validation_loss = validation_loss(evaluation, corpus.valid, layout, sparse);
    log.add(record);
    progress.update(step - 1 - first, record.loss, kBatch * kLength);
    is_stopped = flow::env::stop_requested();
    if (is_stopped || step == save_at || step % 500 == 0) training.save(checkpoints);
    meter.start();
    return is_stopped;
  });
  progress.finish();
  if (is_stopped) {
    if (is_first_rank) {
      std::printf("stopped at step %lld as requested; continue with --run %s --resume\n",
                  static_cast<long long>(training.step()), arguments.run.c_str());
    }
    return;
  }

  report.validation_loss = validation_loss(evaluation, corpus.valid, layout, kLength);
  Training again(corpus, layout, arguments);
  examples::check_resumed_losses(replay(again, checkpoints.open(save_at), steps), log.losses());
  training.save(checkpoints);
  if (!is_first_rank) return;
  std::printf("validation loss %.4f: %.2f of the unigram entropy %.4f, %s the trigram's %.4f\n",
              report.validation_loss, report.validation_loss / report.unigram, report.unigram,
              report.validation_loss < report.trigram ? "below" : "not below", report.trigram);
  report.facts.emplace_back("checkpoint",
                            flow::str("resumed from step ", save_at, "; all losses after it, ",
                                      steps - save_at, ", are the same again"));
  std::printf("checkpoint: %s\n", report.facts.back().second.c_str());
  const nn::Checkpoint last = checkpoints.open(training.step());
  if (!arguments.save.empty()) {
    nn::save_safetensors(arguments.save, last.read_all("graph.model."));
    std::printf("weights written to %s\n", arguments.save.c_str());
  }
  const std::vector<int64_t> start(corpus.valid.begin(), corpus.valid.begin() + kLength / 4);
  report.prompt = corpus.vocabulary.decode(start);
  report.sample = continued(corpus, start, last);
  report.steps = log.records();
  examples::write_report(run, report, plan, training.model());
  std::printf("--- sample\n%s%s\n---\nreport: %s\n", report.prompt.c_str(), report.sample.c_str(),
              run.report().c_str());
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    train(Arguments(argc, argv, "Trains a character GPT on text and writes a sample.",
                    {.run = true, .parallel = true, .steps = 2000}));
  });
}
