// The common ops on one thread, at a small and a large size, forward and, where training needs it,
// forward and backward. The limit of a row is the time in which the machine moves what the row must
// read and write. bench_ops --list prints the rows as JSON for tools/bench_torch.py.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "benchmarks/machine_limits.h"
#include "benchmarks/op_rows.h"
#include "nn/flow.h"

namespace {

using flow::Tensor;
using flow::bench::Inputs;
using flow::bench::OpRow;

constexpr double kMicro = 1e6;

int64_t bytes_of(const Tensor& x) {
  int64_t elements = 1;
  for (int64_t i = 0; i < x.dim(); ++i)
    elements *= x.stride(i) == 0 ? 1 : x.size(i);
  return elements * static_cast<int64_t>(x.element_size());
}

struct Work {
  std::function<void()> call;
  int64_t bytes = 0;  // that a call must read or write
};

// Index ops read only what the indices select, so their limit counts the results alone.
bool reads_all(const OpRow& row) {
  for (const char* op : {"gather", "index", "embedding", "copy_", "arange", "zeros", "rand"}) {
    if (row.name.starts_with(op)) return false;
  }
  return true;
}

Work forward(const OpRow& row, const Inputs& inputs) {
  Work work;
  work.call = [&row, inputs] { benchmark::DoNotOptimize(row.call(inputs)); };
  work.bytes = bytes_of(row.call(inputs));
  if (reads_all(row)) {
    for (const Tensor& x : inputs)
      work.bytes += bytes_of(x);
  }
  return work;
}

Work forward_and_backward(const OpRow& row, const Inputs& inputs) {
  Inputs leaves(inputs.begin(), inputs.begin() + row.num_gradients);
  for (Tensor& leaf : leaves)
    leaf.requires_grad_(true);
  if (row.parameters) {
    for (const Tensor& parameter : row.parameters(inputs))
      leaves.push_back(parameter);
  }
  Work work = forward(row, inputs);
  const Tensor gradient = ones_like(row.call(inputs).detach());
  // Results that show the given gradient move nothing, and if all of them do, nothing reads it.
  bool is_read = false;
  for (const Tensor& result :
       flow::grad({row.call(inputs)}, leaves, {.grad_outputs = {gradient}})) {
    if (!result.defined() || result.impl().storage.get() == gradient.impl().storage.get()) continue;
    work.bytes += bytes_of(result);
    is_read = true;
  }
  if (is_read) work.bytes += bytes_of(gradient);
  work.call = [&row, inputs, leaves, gradient] {
    benchmark::DoNotOptimize(flow::grad({row.call(inputs)}, leaves, {.grad_outputs = {gradient}}));
  };
  return work;
}

// Reports the best block of calls, because other processes only make a block slower.
void measure(benchmark::State& state, const Work& work) {
  using Clock = std::chrono::steady_clock;
  static flow::bench::MachineLimits limits;
  const auto seconds = [&](int64_t calls) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i)
      work.call();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  seconds(2);  // memory that is touched for the first time
  constexpr double kBlock = 1e-3;
  const auto calls = static_cast<int64_t>(std::clamp(kBlock / seconds(1), 1.0, 1e4));
  double best = 1e30;
  for (auto _ : state)
    best = std::min(best, seconds(calls) / static_cast<double>(calls));
  const double limit = static_cast<double>(work.bytes) / limits.move_bytes(work.bytes);
  flow::bench::report_time(state, best * kMicro, limit * kMicro, "us");
}

void add_row(const OpRow& row, const std::string& size, const std::vector<std::string>& words) {
  if (words.empty()) return;
  const auto add = [&](const std::string& suffix, auto make_work) {
    const std::string name = "ops/" + row.name + "/" + size + suffix;
    benchmark::RegisterBenchmark(name.c_str(), [&row, words, make_work](benchmark::State& state) {
      Inputs inputs;
      for (const std::string& input : words)
        inputs.push_back(flow::bench::make_input(input));
      measure(state, make_work(row, inputs));
    });
  };
  add("", forward);
  if (row.num_gradients > 0) add("/backward", forward_and_backward);
}

void print_rows() {
  for (const OpRow& row : flow::bench::op_rows()) {
    for (const auto& [size, words] : {std::pair{"small", row.small}, {"large", row.large}}) {
      if (words.empty()) continue;
      const nlohmann::json line = {
          {"name", row.name}, {"size", size}, {"inputs", words}, {"gradients", row.num_gradients}};
      std::cout << line << '\n';
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    print_rows();
    return 0;
  }
  flow::RankContext one_thread({}, 1);
  const flow::RankScope scope(one_thread);
  for (const OpRow& row : flow::bench::op_rows()) {
    add_row(row, "small", row.small);
    add_row(row, "large", row.large);
  }
  return flow::bench::run_benchmarks(argc, argv);
}
