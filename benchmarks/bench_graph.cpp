// What compiled graphs cost beside their kernels: a node of a replayed plan, and making a plan. The
// limit is the eager way of the same run: its time a node, or its time a step.
#include <algorithm>
#include <chrono>
#include <functional>

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

// So many additions of 4 x 4 floats, each of the last result.
Tensor chain(const Tensor& x, int64_t nodes) {
  Tensor y = x;
  for (int64_t i = 0; i < nodes; ++i)
    y = y + x;
  return y;
}

struct Chain : flow::nn::Graph<Chain> {
  int64_t nodes;

  explicit Chain(int64_t n) : nodes(n) {}

  Tensor build(const Tensor& x) { return chain(x, nodes); }
};

// The best time of many, as other processes can only make one slower.
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
  flow::bench::report_time(state, best * us, eager * us, "us/node");
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
  flow::bench::report_time(state, 1e3 * best, 1e3 * eager, "ms");
}

struct Lm : flow::nn::Graph<Lm> {
  flow::models::Gpt model{flow::bench::gpt_char_options()};
  flow::optim::AdamW optimizer{model.parameters()};

  Lm() { add_optimizer(optimizer); }

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
  flow::bench::report_time(state, 1e3 * best, 1e3 * step, "ms");
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int64_t kReplayed = 1000, kCompiled = 20000;
  benchmark::RegisterBenchmark("replay/nodes1000",
                               [](benchmark::State& state) { replay(state, kReplayed); });
  benchmark::RegisterBenchmark("compile/gpt-char", compile_gpt);
  benchmark::RegisterBenchmark("compile/nodes20000",
                               [](benchmark::State& state) { compile_chain(state, kCompiled); });
  return flow::bench::run_benchmarks(argc, argv);
}
