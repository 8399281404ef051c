// Training steps of gpt-char on two ranks, compared with two processes that train separately. A
// program that is started alone starts itself as two processes through flowrun. All ranks run the
// same calls; rank 0 prints.
//
// The baseline of a row is the tokens per second of both ranks when each trains its own model with
// one thread and no communication, so that the same cores do nothing else. Blocks of both kinds
// take turns, so that other work on the machine slows both. A row is the best block of each kind.
//
// `redistributions` and `received_kib` are those of a step on rank 0. `bound` is the ratio that
// traffic alone would leave: each redistribution takes its best time in this run, nothing overlaps,
// and all work is divided. A row `/graph/blocking` is a compiled step that waits for each transfer.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "benchmarks/start_ranks.h"
#include "benchmarks/train_models.h"
#include "flow/flow.h"

namespace {

namespace sbp = flow::sbp;
using flow::Tensor;

constexpr int kRounds = 5;
constexpr int kSteps = 3;

struct Layout {
  std::string name;
  flow::Placement placement = {};  // undefined: each rank trains separately
  flow::NdSbp data = {};
  flow::nn::SbpPatterns model = {};
  int64_t batch = flow::bench::kGptCharBatch;
  bool is_compiled = false;
  bool overlaps = true;  // transfers with work, in a compiled step
};

std::vector<Layout> layouts() {
  const flow::Placement both("cpu", {0, 1});
  const flow::nn::SbpPatterns heads_and_widths = {{"*.attn.c_[qkv].*", sbp::split(0)},
                                                  {"*.attn.c_proj.weight", sbp::split(1)},
                                                  {"*.mlp.c_fc.*", sbp::split(0)},
                                                  {"*.mlp.c_proj.weight", sbp::split(1)},
                                                  {"*", sbp::broadcast}};
  std::vector<Layout> all = {
      {.name = "alone"},
      {.name = "dp2",
       .placement = both,
       .data = sbp::split(0),
       .model = {{"*", sbp::broadcast}},
       .batch = 2 * flow::bench::kGptCharBatch},
      {.name = "tp2", .placement = both, .data = sbp::broadcast, .model = heads_and_widths},
      // Weights split in the same way. With split samples they are gathered, because they are
      // smaller.
      {.name = "tp2_rows", .placement = both, .data = sbp::split(0), .model = heads_and_widths}};
  for (const size_t i : {size_t{1}, size_t{2}}) {
    Layout compiled = all[i];
    compiled.name += "/graph";
    compiled.is_compiled = true;
    all.push_back(compiled);
    compiled.name += "/blocking";
    compiled.overlaps = false;
    all.push_back(compiled);
  }
  return all;
}

struct Step : flow::nn::Graph<Step> {
  flow::models::Gpt model;

  Step(flow::models::Gpt m, flow::optim::AdamW& optimizer, bool overlaps) : model(std::move(m)) {
    add_optimizer(optimizer);
    config().set_overlap({.enabled = overlaps});
  }

  Tensor build(const Tensor& tokens, const Tensor& targets) {
    Tensor loss = flow::cross_entropy(model(tokens).flatten(0, 1), targets.flatten());
    loss.backward();
    return loss;
  }
};

// Model, optimizer and batch of a layout, and the times of its blocks.
class Training {
 public:
  explicit Training(const Layout& layout)
      : layout_(layout), model_(flow::bench::gpt_char_options()) {
    if (layout.placement.defined()) model_.to_global(layout.placement, layout.model);
    optimizer_ = std::make_unique<flow::optim::AdamW>(model_.parameters(),
                                                      flow::optim::AdamWOptions{.lr = 1e-3});
    const flow::models::GptOptions options = flow::bench::gpt_char_options();
    const auto draw = [&] {
      return flow::randint(0, options.vocab_size, {layout.batch, options.block_size},
                           {.placement = layout.placement, .sbp = layout.data});
    };
    tokens_ = draw();
    targets_ = draw();
    if (layout.is_compiled) graph_ = std::make_unique<Step>(model_, *optimizer_, layout.overlaps);
    for (int i = 0; i < 2; ++i)  // in the second step the optimizer has its state
      step();
  }

  void run_block() {
    flow::reset_boxing_report();
    flow::env::barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kSteps; ++i)
      step();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best_s_ = std::min(best_s_, took.count());
    note_traffic(flow::boxing_report());
  }

  double traffic_s() const { return traffic_s_; }

  double redistributions() const { return redistributions_; }

  double received_kib() const { return received_kib_; }

  // Of a step.
  double tokens() const { return static_cast<double>(tokens_.numel()); }

  // Of all ranks together.
  double tokens_per_s() const {
    const double rate = kSteps * tokens() / best_s_;
    if (layout_.placement.defined()) return rate;
    return flow::comm::all_reduce(flow::tensor(std::vector<double>{rate}, {1})).item<double>();
  }

 private:
  void step() {
    if (graph_) {
      (*graph_)(tokens_, targets_);
      return;
    }
    const Tensor logits = model_(tokens_);
    flow::cross_entropy(logits.flatten(0, 1), targets_.flatten()).backward();
    optimizer_->step();
    optimizer_->zero_grad();
  }

  void note_traffic(const flow::BoxingReport& report) {
    double runs = 0, bytes = 0, us = 0;
    for (const flow::BoxingEntry& entry : report.entries) {
      const auto count = static_cast<double>(entry.runs) / kSteps;
      runs += count;
      bytes += count * entry.bytes;
      us += count * entry.least_us;
    }
    redistributions_ = runs;
    received_kib_ = bytes / 1024;
    traffic_s_ = std::min(traffic_s_, us * 1e-6);
  }

  Layout layout_;
  flow::models::Gpt model_;
  std::unique_ptr<flow::optim::AdamW> optimizer_;
  std::unique_ptr<Step> graph_;  // null: the steps are eager
  Tensor tokens_, targets_;
  double best_s_ = 1e12;
  double traffic_s_ = 1e12;  // of a step, at best
  double redistributions_ = 0, received_kib_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (flow::env::world_size() == 1) flow::bench::start_two_ranks(argc, argv);
  std::vector<std::unique_ptr<Training>> trainings;
  for (const Layout& layout : layouts())
    trainings.push_back(std::make_unique<Training>(layout));
  for (int round = 0; round < kRounds; ++round) {
    for (const auto& training : trainings)
      training->run_block();
  }
  std::vector<double> rates;
  for (const auto& training : trainings)
    rates.push_back(training->tokens_per_s());
  if (flow::env::rank() != 0) return 0;
  for (size_t i = 1; i < rates.size(); ++i) {
    const std::string name = "parallel/gpt-char/" + layouts()[i].name;
    const double rate = rates[i], alone = rates[0];
    const Training& training = *trainings[i];
    const double divided_s = training.tokens() / alone;
    const double bound = divided_s / (divided_s + training.traffic_s());
    const double redistributions = training.redistributions();
    const double received_kib = training.received_kib();
    benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
      for (auto _ : state) {
      }
      flow::bench::compare_rate(state, rate, alone, "tokens/s");
      state.counters["vs_two_processes"] = rate / alone;
      state.counters["bound"] = bound;
      state.counters["redistributions"] = redistributions;
      state.counters["received_kib"] = received_kib;
    });
  }
  benchmark::AddCustomContext("baseline",
                              "two processes that train separately, in turns with the row");
  return flow::bench::run_benchmarks(argc, argv);
}
