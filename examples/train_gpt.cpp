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
#include <optional>
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
// context. Calls show(batch, batches, loss) after each batch.
double validation_loss(Evaluate& graph, const std::vector<int64_t>& text, const GptLayout& layout,
                       int64_t stride, const std::function<void(int64_t, int64_t, double)>& show) {
  const flow::NoGradGuard no_grad;
  Loader loader(flow::data::TokenDataset(text, kLength, {.stride = stride}),
                {.batch_size = kBatch,
                 .drop_last = true,
                 .placement = layout.batch().placement,
                 .sbp = layout.batch().sbp});
  double sum = 0;
  int64_t batch = 0;
  for (const auto& [x, y] : loader) {
    const double loss = graph(x, y).item<double>();
    sum += loss;
    show(batch++, loader.num_batches(), loss);
  }
  return sum / static_cast<double>(loader.num_batches());
}

// The loss on the whole text, with its progress on the terminal.
double final_validation_loss(Evaluate& graph, const std::vector<int64_t>& text,
                             const GptLayout& layout) {
  std::optional<examples::Progress> progress;
  const double loss = validation_loss(graph, text, layout, kLength,
                                      [&](int64_t batch, int64_t batches, double now) {
                                        if (!progress)
                                          progress.emplace(batches, "tokens", "validation");
                                        progress->update(batch, now, kBatch * kLength);
                                      });
  if (progress) progress->finish();
  return loss;
}

// Runs the last steps again from their checkpoint and returns the losses.
std::vector<double> replay(Training& training, const nn::Checkpoint& checkpoint, int64_t last) {
  training.resume(checkpoint);
  std::vector<double> losses;
  examples::Progress progress(last - training.step(), "tokens", "replay");
  training.run_until(last, [&](const examples::StepRecord& record) {
    progress.update(static_cast<int64_t>(losses.size()), record.loss, kBatch * kLength);
    losses.push_back(record.loss);
    return false;
  });
  progress.finish();
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

// The whole job on this rank. Rank 0 writes what users see.
class Job {
 public:
  explicit Job(const Arguments& arguments)
      : arguments_(arguments),
        layout_({.device = arguments.device,
                 .stages = arguments.pipeline_parallel,
                 .data = arguments.data_parallel,
                 .tensor = arguments.tensor_parallel}),
        corpus_(examples::read_corpus(arguments.data)),
        loss_of_one_rank_(is_first_rank_ ? first_loss_of_one_rank(corpus_, arguments) : 0),
        training_(seeded(corpus_, arguments.seed), layout_, arguments),
        evaluation_(training_.model()),
        run_(arguments.run, arguments.resumes),
        checkpoints_(run_.checkpoints(), {.keep_last = 2}) {
    if (const auto newest = checkpoints_.newest()) training_.resume(*newest);
    first_ = training_.step();
    save_at_ = std::max(first_, arguments.steps - kReplayed);
  }

  void run() {
    training_.graph().record(run_.timeline(), arguments_.steps - first_);
    const Tensor blank = flow::zeros({kBatch, kLength}, layout_.batch());
    const nn::CompiledGraph& plan = training_.graph().compile(blank, blank);
    if (is_first_rank_) introduce(plan);
    examples::RunLog log(run_.steps(), first_);
    if (!train(log)) return;
    report_.steps = log.records();
    report_.validation_loss = final_validation_loss(evaluation_, corpus_.valid, layout_);
    Training again(corpus_, layout_, arguments_);
    const auto losses = replay(again, checkpoints_.open(save_at_), arguments_.steps);
    examples::check_resumed_losses(losses, log.losses());
    training_.save(checkpoints_);
    if (is_first_rank_) conclude(plan);
  }

 private:
  static const Corpus& seeded(const Corpus& corpus, uint64_t seed) {
    flow::manual_seed(seed);
    return corpus;
  }

  // A line for the terminal and the report.
  void tell(const std::string& name, const std::string& fact) {
    report_.facts.emplace_back(name, fact);
    std::printf("%s: %s\n", name.c_str(), fact.c_str());
  }

  void introduce(const nn::CompiledGraph& plan) {
    plan.write_predicted_timeline(run_.predicted_timeline());
    report_.title = "Training of a character GPT";
    report_.subtitle = layout_.describe();
    report_.unigram = examples::unigram_loss(corpus_);
    report_.trigram = examples::trigram_loss(corpus_);
    tell("text", flow::str(corpus_.train.size(), " characters to train on, ", corpus_.valid.size(),
                           " to validate, alphabet of ", corpus_.vocabulary.size()));
    tell("counting models", flow::str("unigram ", report_.unigram, ", trigram ", report_.trigram,
                                      " nats per character"));
    tell("model", flow::str("GPT with ", training_.model().num_parameters(),
                            " parameters, 4 layers, width 128, 4 heads, ", kLength,
                            " characters at a time"));
    tell("pipeline", flow::str(layout_.describe(), ", 1F1B, ", kMicroBatches, " micro-batches of ",
                               kBatch / kMicroBatches, " sequences"));
    std::printf("%s", examples::describe_plan(plan).c_str());
    if (first_ > 0) std::printf("resumed at step %lld\n", static_cast<long long>(first_));
  }

  // Returns false if the system asked to stop.
  bool train(examples::RunLog& log) {
    const int64_t steps = arguments_.steps;
    const auto validation_length = static_cast<int64_t>(corpus_.valid.size());
    const int64_t sparse = std::max(kLength, validation_length / kCheckedWindows);
    bool is_stopped = false;
    examples::Progress progress(steps - first_, "tokens");
    examples::RateMeter meter;
    if (save_at_ == first_) training_.save(checkpoints_);
    training_.run_until(steps, [&](examples::StepRecord record) {
      record.tokens_per_s = meter.rate(kBatch * kLength);
      const int64_t step = training_.step();
      if (step == 1 && is_first_rank_) {
        examples::check_first_loss(record.loss, loss_of_one_rank_);
        tell("first loss", flow::str(examples::shortest(record.loss), "; on one rank ",
                                     examples::shortest(loss_of_one_rank_)));
      }
      if (step % std::max<int64_t>(1, steps / kValidations) == 0)
        record.validation_loss =
            validation_loss(evaluation_, corpus_.valid, layout_, sparse, [](auto...) {});
      log.add(record);
      progress.update(step - 1 - first_, record.loss, kBatch * kLength);
      is_stopped = flow::env::stop_requested();
      if (is_stopped || step == save_at_ || step % 500 == 0) training_.save(checkpoints_);
      meter.start();
      return is_stopped;
    });
    progress.finish();
    if (is_stopped && is_first_rank_) {
      std::printf("stopped at step %lld as requested; continue with --run %s --resume\n",
                  static_cast<long long>(training_.step()), arguments_.run.c_str());
    }
    return !is_stopped;
  }

  void conclude(const nn::CompiledGraph& plan) {
    const double loss = report_.validation_loss;
    tell("validation loss",
         flow::str(loss, ": ", loss / report_.unigram, " of the unigram entropy, ",
                   loss < report_.trigram ? "below" : "not below", " the trigram model's"));
    tell("checkpoint", flow::str("resumed from step ", save_at_, "; all losses after it, ",
                                 arguments_.steps - save_at_, ", are the same again"));
    const nn::Checkpoint last = checkpoints_.open(training_.step());
    if (!arguments_.save.empty()) {
      nn::save_safetensors(arguments_.save, last.read_all("graph.model."));
      tell("weights", arguments_.save);
    }
    const std::vector<int64_t> start(corpus_.valid.begin(), corpus_.valid.begin() + kLength / 4);
    report_.prompt = corpus_.vocabulary.decode(start);
    report_.sample = continued(corpus_, start, last);
    examples::write_report(run_, report_, plan, training_.model());
    std::printf("--- sample\n%s%s\n---\nreport: %s\n", report_.prompt.c_str(),
                report_.sample.c_str(), run_.report().c_str());
  }

  const Arguments& arguments_;
  const bool is_first_rank_ = flow::env::rank() == 0;
  GptLayout layout_;
  Corpus corpus_;
  double loss_of_one_rank_;
  Training training_;
  Evaluate evaluation_;
  examples::RunFolder run_;
  nn::CheckpointFolder checkpoints_;
  int64_t first_ = 0;    // the step at which this run begins
  int64_t save_at_ = 0;  // the step from which the last ones run again
  examples::RunReport report_;
};

}  // namespace

int main(int argc, char** argv) {
  return examples::run_main([&] {
    const Arguments arguments(argc, argv, "Trains a character GPT on text and writes a report.",
                              {.run = true, .parallel = true, .steps = 2000});
    flow::env::stop_requested();  // from now on SIGTERM only asks; steps look for it
    Job(arguments).run();
  });
}
