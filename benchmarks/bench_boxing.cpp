// Redistributions of global tensors between two ranks. A program that is started alone starts
// itself as two processes through flowrun; under flowrun --ranks=threads:2 it measures threads. All
// ranks run the same calls; rank 0 prints. The limit of a row is the time in which copies
// move the bytes that the busiest rank has to read and write. All ranks copy at the same time in
// the same run, because the cores share the memory bandwidth.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "benchmarks/start_ranks.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"

namespace {

namespace sbp = flow::sbp;
using flow::Tensor;

constexpr int64_t kLarge = int64_t{16} << 20;  // floats: 64 MiB

struct Row {
  std::string name;
  flow::Shape shape;
  flow::Sbp from, to;
  int calls;
  // The bytes that the busiest rank reads and writes at least, as a multiple of the tensor's bytes.
  // Of two addends it sums one half, which reads both; for B it also copies the other half.
  double moved;
};

const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
      {"boxing/S0_B/4x4", {4, 4}, sbp::split(0), sbp::broadcast, 2000, 2},
      {"boxing/P_B/4x4", {4, 4}, sbp::partial_sum, sbp::broadcast, 2000, 2.5},
      {"boxing/S0_B/64MiB", {4096, kLarge / 4096}, sbp::split(0), sbp::broadcast, 1, 2},
      {"boxing/B_S0/64MiB", {4096, kLarge / 4096}, sbp::broadcast, sbp::split(0), 1, 1},
      {"boxing/S0_S1/64MiB", {4096, kLarge / 4096}, sbp::split(0), sbp::split(1), 1, 1},
      {"boxing/P_B/64MiB", {4096, kLarge / 4096}, sbp::partial_sum, sbp::broadcast, 1, 2.5},
      {"boxing/P_S0/64MiB", {4096, kLarge / 4096}, sbp::partial_sum, sbp::split(0), 1, 1.5}};
  return all;
}

// Microseconds per call, in the best of several blocks, because other processes only make a block
// slower.
double measure(const Row& row) {
  const flow::Placement both("cpu", {0, 1});
  const Tensor x = flow::ones(row.shape, {.placement = both, .sbp = row.from});
  constexpr int kBlocks = 15;
  double best = 1e12;
  for (int block = 0; block < kBlocks; ++block) {
    flow::env::barrier();
    const auto start = std::chrono::steady_clock::now();
    for (int call = 0; call < row.calls; ++call)
      benchmark::DoNotOptimize(x.to_global({.sbp = row.to}));
    const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count() / row.calls);
  }
  return best;
}

// The time that a copy of the bytes of a row takes while the other rank copies as well.
double limit_us(const Row& row) {
  const double bytes = static_cast<double>(row.shape.numel()) * sizeof(float) * row.moved;
  // The rate counts the bytes that it reads and the bytes that it writes.
  const double rate = flow::bench::copy_bytes_together(static_cast<int64_t>(bytes / 2),
                                                       [] { flow::env::barrier(); });
  return bytes / rate * 1e6;
}

}  // namespace

int main(int argc, char** argv) {
  if (flow::env::world_size() == 1) flow::bench::start_two_ranks(argc, argv);
  std::vector<double> times;
  std::vector<double> bounds;
  for (const Row& row : rows()) {
    // Before and after, because a virtual machine's memory is not equally fast all the time.
    const double before = limit_us(row);
    times.push_back(measure(row));
    bounds.push_back(std::min(before, limit_us(row)));
  }
  if (flow::env::rank() != 0) return 0;
  for (size_t i = 0; i < times.size(); ++i) {
    benchmark::RegisterBenchmark(rows()[i].name.c_str(),
                                 [time = times[i], bound = bounds[i]](benchmark::State& state) {
                                   for (auto _ : state) {
                                   }
                                   flow::bench::report_time(state, time, bound, "us");
                                 });
  }
  benchmark::AddCustomContext(
      "limit",
      "b / the rate of copies, all ranks at once; b, read and written by the busiest rank, is of "
      "the tensor's n bytes: S -> "
      "B 2 n, B -> S and S -> S n, P -> B 2.5 n, P -> S 1.5 n");
  return flow::bench::run_benchmarks(argc, argv);
}
