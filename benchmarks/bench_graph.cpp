// The cost of compiled graphs in addition to their kernels: a node of a replayed step, and the
// compilation. The baseline is the time of eager mode in the same run, for a node or for a step.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

#include "benchmarks/machine_limits.h"
#include "benchmarks/train_models.h"
#include "nn/flow.h"

namespace {

using flow::Tensor;

double seconds_of(const std::function<void()>& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  return took.count();
}

// A chain of this many additions of 4 x 4 floats.
Tensor chain(const Tensor& x, int64_t nodes) {
  Tensor y = x;
  for (int64_t i = 0; i < nodes; ++i)
    y = y + x;
  return y;
}

struct Chain : flow::nn::Graph<Chain> {
  int64_t nodes;

  explicit Chain(int64_t n, const std::string& plans = "") : nodes(n) {
    config().set_plan_cache(plans);
  }

  Tensor build(const Tensor& x) { return chain(x, nodes); }
};

// The best of many times, because other processes only make a run slower.
void replay(benchmark::State& state, int64_t nodes) {
  const flow::NoGradGuard no_grad;
  const Tensor x = flow::ones({4, 4});
  Chain graph(nodes);
  graph(x);
  double best = 1e9, eager = 1e9;
  for (auto _ : state) {
    best = std::min(best, seconds_of([&] { graph(x); }));
    eager = std::min(eager, seconds_of([&] { chain(x, nodes); }));
  }
  const double us = 1e6 / static_cast<double>(nodes);
  flow::bench::compare_time(state, best * us, eager * us, "us/node");
}

void compile_chain(benchmark::State& state, int64_t nodes) {
  const flow::NoGradGuard no_grad;
  const Tensor x = flow::ones({4, 4});
  double best = 1e9, eager = 1e9;
  for (auto _ : state) {
    Chain graph(nodes);
    best = std::min(best, seconds_of([&] { graph.compile(x); }));
    eager = std::min(eager, seconds_of([&] { chain(x, nodes); }));
  }
  flow::bench::compare_time(state, 1e3 * best, 1e3 * eager, "ms");
}

struct Lm : flow::nn::Graph<Lm> {
  flow::models::Gpt model;
  flow::optim::AdamW optimizer{model.parameters()};

  explicit Lm(const flow::models::Gpt& m = flow::models::Gpt(flow::bench::gpt_char_options()),
              const std::string& plans = "")
      : model(m) {
    add_optimizer(optimizer);
    config().set_plan_cache(plans);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor logits = model(x);
    Tensor loss = flow::cross_entropy(logits.reshape({y.numel(), logits.size(-1)}), y.flatten());
    loss.backward();
    return loss;
  }
};

void compile_gpt(benchmark::State& state) {
  const flow::models::GptOptions options = flow::bench::gpt_char_options();
  const flow::Shape shape{flow::bench::kGptCharBatch, options.block_size};
  const Tensor x = flow::randint(0, options.vocab_size, shape);
  double best = 1e9, step = 1e9;
  for (auto _ : state) {
    Lm graph;
    best = std::min(best, seconds_of([&] { graph.compile(x, x); }));
    graph(x, x);
    step = std::min(step, seconds_of([&] { graph(x, x); }));
  }
  flow::bench::compare_time(state, 1e3 * best, 1e3 * step, "ms");
}

// ---- from saved plans; the baseline is the time of the compilation

// A folder for plans; the destructor removes it.
class PlanFolder {
 public:
  PlanFolder()
      : path_(std::filesystem::temp_directory_path() / flow::str("flow_plans_", getpid())) {}

  ~PlanFolder() { std::filesystem::remove_all(path_); }

  PlanFolder(const PlanFolder&) = delete;
  PlanFolder& operator=(const PlanFolder&) = delete;

  std::string path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// Measures `compile(folder)`, which returns its seconds, with saved plans and without.
void compile_saved(benchmark::State& state,
                   const std::function<double(const std::string& folder)>& compile) {
  const PlanFolder folder;
  compile(folder.path());
  double best = 1e9, without_plan = 1e9;
  for (auto _ : state) {
    best = std::min(best, compile(folder.path()));
    without_plan = std::min(without_plan, compile(""));
  }
  flow::bench::compare_time(state, 1e3 * best, 1e3 * without_plan, "ms");
}

double compile_saved_chain(const std::string& folder, int64_t nodes) {
  const flow::NoGradGuard no_grad;
  const Tensor x = flow::ones({4, 4});
  Chain graph(nodes, folder);
  return seconds_of([&] { graph.compile(x); });
}

double compile_saved_gpt(const std::string& folder) {
  const flow::models::GptOptions options = flow::bench::gpt_char_options();
  const Tensor x =
      flow::randint(0, options.vocab_size, {flow::bench::kGptCharBatch, options.block_size});
  Lm graph(flow::models::Gpt(options), folder);
  return seconds_of([&] { graph.compile(x, x); });
}

// ---- on thread ranks: the time of the slowest rank; the baseline is the time of one rank alone

// Compiles on this many ranks, each with a share of the rows. Returns the time of the slowest rank.
double compile_rows_on(int64_t ranks,
                       const std::function<double(const flow::Placement&)>& compile) {
  std::atomic<double> longest = 0;
  flow::run_ranks(ranks, [&] {
    std::vector<int64_t> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), int64_t{0});
    const double took = compile(flow::Placement("cpu", all));
    flow::env::barrier();
    double known = longest;
    while (took > known && !longest.compare_exchange_weak(known, took)) {
    }
  });
  return longest;
}

double compile_gpt_rows(const flow::Placement& placement) {
  const flow::models::GptOptions options = flow::bench::gpt_char_options();
  flow::models::Gpt model(options);
  model.to_global(placement, flow::sbp::broadcast);
  Lm graph(model);
  const flow::Shape shape{flow::bench::kGptCharBatch, options.block_size};
  const Tensor x =
      flow::randint(0, options.vocab_size, shape,
                    {.dtype = flow::int64, .placement = placement, .sbp = flow::sbp::split(0)});
  flow::env::barrier();
  return seconds_of([&] { graph.compile(x, x); });
}

double compile_chain_rows(const flow::Placement& placement, int64_t nodes) {
  const flow::NoGradGuard no_grad;
  const Tensor x = flow::ones({16, 4}, {.placement = placement, .sbp = flow::sbp::split(0)});
  Chain graph(nodes);
  flow::env::barrier();
  return seconds_of([&] { graph.compile(x); });
}

void compile_on_ranks(benchmark::State& state, int64_t ranks,
                      const std::function<double(const flow::Placement&)>& compile) {
  double best = 1e9, alone = 1e9;
  for (auto _ : state) {
    best = std::min(best, compile_rows_on(ranks, compile));
    alone = std::min(alone, compile_rows_on(1, compile));
  }
  flow::bench::compare_time(state, 1e3 * best, 1e3 * alone, "ms");
}

// ---- pipelines, compiled for ranks that exist only for that

// A layer for each stage.
struct Stages : flow::nn::Graph<Stages> {
  flow::nn::Sequential layers;

  Stages(const flow::nn::Sequential& all, flow::optim::SGD& optimizer, int64_t micro_batches,
         int64_t chunks)
      : layers(all) {
    add_optimizer(optimizer);
    config().set_micro_batches(micro_batches).set_schedule(flow::pipeline::interleaved(chunks));
  }

  Tensor build(const Tensor& x) {
    Tensor loss = layers(x).square().mean();
    loss.backward();
    return loss;
  }
};

// The schedule, the programs of all ranks and their certificate.
double compile_pipeline(int64_t ranks, int64_t chunks, int64_t micro_batches) {
  const flow::PlanningWorld world(ranks);
  flow::nn::Sequential layers;
  for (int64_t stage = 0; stage < ranks * chunks; ++stage) {
    const flow::Placement own("cpu", {stage % ranks});
    const flow::PlacementGuard parameters(own, flow::sbp::broadcast);
    flow::nn::Linear layer(8, 8);
    flow::nn::graph_module(layer).set_stage(stage, own);
    layers.push_back(layer);
  }
  flow::optim::SGD optimizer(layers.parameters(), {.lr = 0.1});
  Stages graph(layers, optimizer, micro_batches, chunks);
  const Tensor x = flow::ones({2 * micro_batches, 8}, {.placement = flow::Placement("cpu", {0}),
                                                       .sbp = flow::sbp::broadcast});
  return seconds_of([&] { graph.compile(x); });
}

int64_t peak_resident_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

void compile_pipeline_row(benchmark::State& state, int64_t ranks, int64_t chunks,
                          int64_t micro_batches) {
  const int64_t mib_before = peak_resident_mib();
  double best = 1e9, with_two = 1e9;
  for (auto _ : state) {
    best = std::min(best, compile_pipeline(ranks, chunks, micro_batches));
    with_two = std::min(with_two, compile_pipeline(ranks, chunks, 2 * ranks));
  }
  flow::bench::compare_time(state, 1e3 * best, 1e3 * with_two, "ms");
  state.counters["added_mib"] = static_cast<double>(peak_resident_mib() - mib_before);
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int64_t kReplayed = 1000, kCompiled = 20000;
  benchmark::RegisterBenchmark("replay/nodes1000",
                               [](benchmark::State& state) { replay(state, kReplayed); });
  benchmark::RegisterBenchmark("compile/gpt-char", compile_gpt);
  benchmark::RegisterBenchmark("compile/nodes20000",
                               [](benchmark::State& state) { compile_chain(state, kCompiled); });
  benchmark::RegisterBenchmark("compile/gpt-char/saved", [](benchmark::State& state) {
    compile_saved(state, compile_saved_gpt);
  });
  benchmark::RegisterBenchmark("compile/nodes20000/saved", [](benchmark::State& state) {
    compile_saved(state,
                  [](const std::string& folder) { return compile_saved_chain(folder, kCompiled); });
  });
  for (const int64_t ranks : {2, 4, 8}) {
    const std::string suffix = flow::str("/threads:", ranks);
    benchmark::RegisterBenchmark(
        ("compile/gpt-char" + suffix).c_str(),
        [ranks](benchmark::State& state) { compile_on_ranks(state, ranks, compile_gpt_rows); });
    benchmark::RegisterBenchmark(("compile/nodes20000" + suffix).c_str(),
                                 [ranks](benchmark::State& state) {
                                   compile_on_ranks(state, ranks, [](const flow::Placement& p) {
                                     return compile_chain_rows(p, kCompiled);
                                   });
                                 });
  }
  // The baseline has two micro-batches a rank.
  benchmark::RegisterBenchmark(
      "compile/pipeline/ranks64/chunks4/m512",
      [](benchmark::State& state) { compile_pipeline_row(state, 64, 4, 512); });
  return flow::bench::run_benchmarks(argc, argv);
}
