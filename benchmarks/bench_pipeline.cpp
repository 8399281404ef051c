// Training steps of gpt-char as a pipeline of two stages on two ranks, compared with two processes
// that train separately. A program that is started alone starts itself as two processes through
// flowrun. All ranks run the same calls; rank 0 prints.
//
// The baseline of a row is the tokens per second of both ranks when each trains its own model with
// one thread and no communication, as a compiled step. Blocks of all kinds take turns, so that
// other work on the machine slows all. A row is the best block of each kind. `bound` is the ratio
// that the predicted bubble of the schedule leaves, and `peak_mib` is the peak memory of a rank's
// program. With
// --timelines=FOLDER the program measures the second block of each row and writes the predicted and
// the measured timeline (docs/timelines.md) to FOLDER: 1f1b-m8.predicted.json, 1f1b-m8.json.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "benchmarks/start_ranks.h"
#include "benchmarks/train_models.h"
#include "flow/flow.h"
#include "graph/run/compiled_step.h"
#include "pipeline/simulate.h"

namespace {

namespace pipeline = flow::pipeline;
namespace sbp = flow::sbp;
using flow::Tensor;

constexpr int kRounds = 5;
constexpr int kSteps = 3;

struct Row {
  std::string name;
  int64_t micro_batches = 1;
  pipeline::ScheduleRule rule = {};
  bool is_staged = true;  // false: each rank trains separately
};

std::vector<Row> rows() {
  std::vector<Row> all{{.name = "alone", .is_staged = false}};
  for (const int64_t m : {4, 8}) {
    for (const auto& rule : {pipeline::gpipe(), pipeline::one_f_one_b(), pipeline::zb_h1()}) {
      all.push_back({"pipeline/gpt-char/" + to_string(rule) + "/m" + std::to_string(m), m, rule});
    }
  }
  return all;
}

struct Step : flow::nn::Graph<Step> {
  flow::models::Gpt model;

  Step(flow::models::Gpt m, flow::optim::AdamW& optimizer, const Row& row,
       const std::string& timeline)
      : model(std::move(m)) {
    add_optimizer(optimizer);
    config().set_micro_batches(row.micro_batches).set_schedule(row.rule);
    if (!timeline.empty() && row.is_staged)
      config().set_timeline(timeline + ".json", {.skip = 1 + kSteps, .runs = kSteps});
  }

  Tensor build(const Tensor& tokens, const Tensor& targets) {
    const Tensor logits = model(tokens);
    Tensor loss = flow::cross_entropy(logits.flatten(0, 1), targets.flatten());
    loss.backward();
    return loss;
  }
};

// Model, optimizer and batch of a row, and the times of its blocks.
class Training {
 public:
  // `folder` is for timelines; empty: write none.
  Training(const Row& row, const std::string& folder)
      : row_(row), model_(flow::bench::gpt_char_options()) {
    const flow::Placement first("cpu", {0}), last("cpu", {1});
    if (row.is_staged) cut(first, last);
    optimizer_ = std::make_unique<flow::optim::AdamW>(model_.parameters(),
                                                      flow::optim::AdamWOptions{.lr = 1e-3});
    const flow::models::GptOptions options = flow::bench::gpt_char_options();
    const auto draw = [&](const flow::Placement& placement) {
      flow::TensorOptions layout;
      if (row.is_staged) layout = {.placement = placement, .sbp = sbp::broadcast};
      return flow::randint(0, options.vocab_size, {flow::bench::kGptCharBatch, options.block_size},
                           layout);
    };
    tokens_ = draw(first);
    targets_ = draw(last);
    const std::string timeline = folder.empty() ? ""
                                                : folder + '/' + to_string(row.rule) + "-m" +
                                                      std::to_string(row.micro_batches);
    graph_ = std::make_unique<Step>(model_, *optimizer_, row, timeline);
    (*graph_)(tokens_, targets_);
    if (!timeline.empty() && row.is_staged && flow::env::rank() == 0) {
      graph_->compile(tokens_, targets_).write_predicted_timeline(timeline + ".predicted.json");
    }
  }

  void run_block() {
    flow::env::barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i)
      (*graph_)(tokens_, targets_);
    flow::env::barrier();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best_s_ = std::min(best_s_, took.count());
  }

  // Of all ranks together.
  double tokens_per_s() const {
    const double rate = kSteps * static_cast<double>(tokens_.numel()) / best_s_;
    if (row_.is_staged) return rate;
    return flow::comm::all_reduce(flow::tensor(std::vector<double>{rate}, {1})).item<double>();
  }

  double peak_mib() {
    int64_t most = 0;
    for (const auto& rank : graph_->compile(tokens_, targets_).plan().certificate().ranks)
      most = std::max(most, rank.peak_bytes);
    return static_cast<double>(most) / (1 << 20);
  }

 private:
  // The first half of GPT's blocks is the first stage.
  void cut(const flow::Placement& first, const flow::Placement& last) {
    model_.to_global(first, sbp::broadcast);
    model_.ln_f.to_global(last, sbp::broadcast);
    for (int64_t i = 0; i < model_.blocks.size(); ++i) {
      const bool is_late = 2 * i >= model_.blocks.size();
      if (is_late) model_.blocks[i].to_global(last, sbp::broadcast);
      flow::nn::graph_module(model_.blocks[i]).set_stage(is_late ? 1 : 0, is_late ? last : first);
    }
  }

  Row row_;
  flow::models::Gpt model_;
  std::unique_ptr<flow::optim::AdamW> optimizer_;
  Tensor tokens_, targets_;
  std::unique_ptr<Step> graph_;
  double best_s_ = 1e12;
};

// Removes --timelines=FOLDER from the arguments. Returns an empty string if it is not there.
std::string take_timelines(int& argc, char** argv) {
  constexpr std::string_view kOption = "--timelines=";
  std::string folder;
  int kept = 0;
  for (int i = 0; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with(kOption)) {
      folder = word.substr(kOption.size());
    } else {
      argv[kept++] = argv[i];
    }
  }
  argc = kept;
  return folder;
}

}  // namespace

int main(int argc, char** argv) {
  if (flow::env::world_size() == 1) flow::bench::start_two_ranks(argc, argv);
  const std::string folder = take_timelines(argc, argv);
  std::vector<std::unique_ptr<Training>> trainings;
  for (const Row& row : rows())
    trainings.push_back(std::make_unique<Training>(row, folder));
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& training : trainings)
      training->run_block();
  }
  std::vector<double> rates;
  for (const auto& training : trainings)
    rates.push_back(training->tokens_per_s());
  if (flow::env::rank() != 0) return 0;
  for (size_t i = 1; i < rates.size(); ++i) {
    const Row row = rows()[i];
    const double rate = rates[i], alone = rates[0], peak_mib = trainings[i]->peak_mib();
    const double bubble =
        pipeline::simulate(pipeline::make_schedule(row.rule, 2, row.micro_batches)).bubble();
    benchmark::RegisterBenchmark(row.name.c_str(), [=](benchmark::State& state) {
      for (auto _ : state) {
      }
      flow::bench::compare_rate(state, rate, alone, "tokens/s");
      state.counters["vs_two_processes"] = rate / alone;
      state.counters["bound"] = 1 - bubble;
      state.counters["peak_mib"] = peak_mib;
    });
  }
  benchmark::AddCustomContext("baseline",
                              "two processes that train separately, in turns with the row");
  return flow::bench::run_benchmarks(argc, argv);
}
