#include "tools/flow_conform/train_summary.h"

#include <algorithm>

#include "boxing/report.h"
#include "core/allocator.h"
#include "core/context.h"
#include "core/grad_mode.h"
#include "core/storage.h"
#include "eager/runtime.h"
#include "graph/run/compiled_step.h"
#include "nn/comm.h"
#include "ops/creation/creation.h"
#include "pipeline/order.h"
#include "pipeline/report.h"
#include "pipeline/simulate.h"
#include "tools/flow_conform/attrs.h"

namespace flow::conform {

namespace {

// The rows of all ranks, concatenated.
template <class T>
std::vector<T> of_all_ranks(const std::vector<T>& row, DType dtype) {
  if (env::world_size() == 1) return row;
  const NoGradGuard no_grad;
  const auto size = static_cast<int64_t>(row.size());
  return comm::all_gather(tensor(row, Shape{1, size}, {.dtype = dtype})).template to_vector<T>();
}

Json memory_of_all(const RunRecord& own) {
  const auto all = of_all_ranks(std::vector{own.stated_peak_bytes, own.measured_peak_bytes}, int64);
  Json list = Json::array();
  for (size_t rank = 0; rank < all.size() / 2; ++rank) {
    list.push_back({{"rank", rank},
                    {"stated_peak_bytes", all[2 * rank]},
                    {"measured_peak_bytes", all[2 * rank + 1]}});
  }
  return list;
}

// The share of time, until the last rank ends, in which the ranks do not compute. The first run
// allocates memory and is ignored if there are others.
double measured_bubble(const std::vector<graph::RunTimes>& runs) {
  std::vector<double> own;
  for (size_t i = runs.size() > 1 ? 1 : 0; i < runs.size(); ++i)
    own.insert(own.end(), {runs[i].total, runs[i].waiting});
  const std::vector<double> all = of_all_ranks(own, float64);
  const auto num_ranks = static_cast<size_t>(env::world_size());
  double busy = 0;
  double available = 0;
  for (size_t at = 0; at < own.size(); at += 2) {
    double longest = 0;
    for (size_t rank = 0; rank < num_ranks; ++rank) {
      const double total = all[rank * own.size() + at];
      longest = std::max(longest, total);
      busy += total - all[rank * own.size() + at + 1];
    }
    available += longest * static_cast<double>(num_ranks);
  }
  return available > 0 ? 1 - busy / available : 0;
}

// The redistributions that this rank carried out.
Json redistributions() {
  Json list = Json::array();
  for (const BoxingEntry& entry : boxing_report().entries) {
    Json one = {{"site", str(entry.site.file(), ":", entry.site.line())},
                {"shape", str(entry.shape)},
                {"dtype", str(entry.dtype)},
                {"from", str(entry.from_sbp, " on ", entry.from_placement)},
                {"to", str(entry.to_sbp, " on ", entry.to_placement)},
                {"route", entry.route},
                {"bytes", entry.bytes},
                {"predicted_us", entry.predicted_us},
                {"runs", entry.runs},
                {"measured_us", entry.total_us / static_cast<double>(entry.runs)}};
    if (!entry.runner_up.empty()) {
      one["runner_up"] = {{"route", entry.runner_up},
                          {"bytes", entry.runner_up_bytes},
                          {"predicted_us", entry.runner_up_us}};
    }
    list.push_back(one);
  }
  return list;
}

}  // namespace

int64_t stated_peak_bytes(const nn::CompiledGraph& compiled, int64_t other_bytes) {
  return memory_stats().bytes_in_use - other_bytes + compiled.plan().peak_bytes();
}

double predicted_bubble(const nn::CompiledGraph& compiled, const Pipelining& pipelining) {
  constexpr size_t kArguments = 2;  // the arguments that are split: inputs and targets
  const graph::Graph& step = compiled.plan().graph();
  int64_t num_stages = 1;
  for (const graph::Node& node : step.nodes)
    num_stages = std::max(num_stages, node.stage + 1);
  if (num_stages == 1) return 0;
  const auto cut =
      pipeline::plan_micro_batches(step, pipelining.micro_batches, step.inputs.size() - kArguments);
  const auto schedule =
      pipeline::make_schedule(pipelining.rule, num_stages, pipelining.micro_batches);
  const auto stages = pipeline::plan_stages(step, cut, schedule.has_weights());
  return pipeline::simulate(pipeline::schedule_on_ranks(schedule, stages),
                            pipeline::stage_costs(step, cut))
      .bubble();
}

std::string summary_of(const RunRecord& record) {
  const double measured = record.predicted_bubble > 0 ? measured_bubble(record.runs) : 0;
  const Json summary = {
      {"memory", memory_of_all(record)},
      {"bubble", {{"predicted", record.predicted_bubble}, {"measured", measured}}},
      {"boxing", redistributions()}};
  return summary.dump(2) + '\n';
}

}  // namespace flow::conform
