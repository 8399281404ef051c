// Training steps of two ranks under DistributedDataParallel, each with its own batch, compared with
// two processes that train separately. The steps of rows whose names end in /graph are compiled,
// and their baseline is eager like that of the others. A program that is started alone starts
// itself as two processes through flowrun. All ranks run the same calls; rank 0 prints.
//
// The baseline of a row is the time of a step when each rank trains its own model without
// communication, so that the same cores do nothing else. Blocks of both kinds take turns, so that
// other work on the machine slows both. A row is the best block of each kind; a block ends when the
// slower rank has finished it.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/machine_limits.h"
#include "benchmarks/start_ranks.h"
#include "benchmarks/train_models.h"
#include "flow/flow.h"

namespace {

using flow::bench::Copies;
using flow::bench::TrainModel;

constexpr int kRounds = 30;
constexpr int kWarmUpSteps =
    3;  // in the second step the optimizer has its state and the caches are filled
constexpr double kBlockSeconds = 0.06;  // a short block can run while no other process does

double seconds_of(const std::function<void()>& step, int64_t steps) {
  flow::env::barrier();
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < steps; ++i)
    step();
  flow::env::barrier();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct Row {
  std::string name;
  double ddp_ms = 1e12;
  double alone_ms = 1e12;
};

// The rows of eager and of compiled steps.
std::array<Row, 2> measure(const TrainModel& model) {
  std::array<Row, 2> rows = {Row{"ddp/" + model.name}, Row{"ddp/" + model.name + "/graph"}};
  double alone_ms = 1e12;
  const std::array steps = {model.make_step(Copies::kAlone), model.make_step(Copies::kAveraged),
                            model.make_step(Copies::kCompiledAveraged)};
  const std::array best = {&alone_ms, &rows[0].ddp_ms, &rows[1].ddp_ms};
  for (const auto& step : steps)
    seconds_of(step, kWarmUpSteps);
  // The same number of steps on all ranks.
  const double wanted = kBlockSeconds / seconds_of(steps[0], 1);
  const flow::Tensor agreed =
      flow::comm::broadcast(flow::tensor(std::vector<double>{wanted}, {1}), 0);
  const int64_t count = std::max<int64_t>(1, std::llround(agreed.item<double>()));
  for (int round = 0; round < kRounds; ++round) {
    for (size_t kind = 0; kind < steps.size(); ++kind) {
      const double took = seconds_of(steps[kind], count);
      *best[kind] = std::min(*best[kind], 1e3 * took / static_cast<double>(count));
    }
  }
  for (Row& row : rows)
    row.alone_ms = alone_ms;
  return rows;
}

}  // namespace

int main(int argc, char** argv) {
  if (flow::env::world_size() == 1) flow::bench::start_two_ranks(argc, argv);
  std::vector<Row> rows;
  for (const TrainModel& model : flow::bench::train_models()) {
    if (model.name != "mlp64" && model.name != "gpt-char") continue;
    for (Row& row : measure(model))
      rows.push_back(std::move(row));
  }
  if (flow::env::rank() != 0) return 0;
  for (const Row& row : rows) {
    benchmark::RegisterBenchmark(row.name.c_str(), [row](benchmark::State& state) {
      for (auto _ : state) {
      }
      flow::bench::compare_time(state, row.ddp_ms, row.alone_ms, "ms");
      state.counters["vs_two_processes"] = row.alone_ms / row.ddp_ms;
    });
  }
  benchmark::AddCustomContext("baseline",
                              "two processes that train separately, in turns with the row");
  return flow::bench::run_benchmarks(argc, argv);
}
