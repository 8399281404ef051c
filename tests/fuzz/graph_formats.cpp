// Graphs, plans and pipelines, and what describes their layouts and costs.
#include "boxing/cost.h"
#include "core/error.h"
#include "core/sbp.h"
#include "eager/runtime.h"
#include "graph/compile.h"
#include "graph/ir/ir.h"
#include "graph/ir/ir_text.h"
#include "graph/plan_file/plan_bytes.h"
#include "graph/plan_file/plan_reader.h"
#include "graph/plan_file/plan_writer.h"
#include "graph/program/planning_world.h"
#include "graph/trace/tracer.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/linear/cpu_table.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/reduce.h"
#include "pipeline/order.h"
#include "pipeline/schedule.h"
#include "pipeline/timeline_file.h"
#include "tests/fuzz/formats.h"
#include "tools/flow_plan/dot.h"
#include "tools/flow_plan/page.h"
#include "tools/flow_plan/plan_diff.h"
#include "tools/flow_plan/saved_plan.h"

namespace flow::fuzz {

namespace {

const std::string kSchedule = "0F0 0F1 0B0 0B1\n1F0 1B0 1F1 1B1\n";

// A text that is no file: errors quote what is wrong in it.
template <class Parse>
Format text_format(const std::string& name, const std::string& seed, Parse parse) {
  return {.name = name, .seeds = {seed}, .read = [parse](const std::string& text) {
            return reads_or_refuses<InvalidArgument>("", [&] { parse(text); });
          }};
}

template <class Parse>
Format file_format(const std::string& name, const std::string& seed, Parse parse) {
  return {.name = name, .seeds = {seed}, .read = [parse](const std::string& text) {
            return reads_or_refuses<BadFile>("fuzzed", [&] { parse(text, "fuzzed"); });
          }};
}

graph::TracedStep trace_step(const Placement& placement) {
  const bool is_global = placement.defined();
  const Tensor x =
      ones({2, 3}, {.placement = placement, .sbp = is_global ? NdSbp(sbp::split(0)) : NdSbp()});
  const Tensor w =
      ones({3, 2}, {.placement = placement, .sbp = is_global ? NdSbp(sbp::broadcast) : NdSbp()});
  graph::Trace trace;
  const Tensor tx = trace.add_input(x);
  return trace.finish({matmul(tx, w).sum({1}) * 2.0});
}

// The plan with the checksum of its content, as one who forges a file would give it.
std::string sealed(std::string bytes) {
  const size_t head = graph::internal::kPlanMagic.size() + sizeof(uint64_t);
  if (bytes.size() < head) return bytes;
  const uint64_t checksum = graph::internal::plan_checksum(std::string_view(bytes).substr(head));
  for (size_t i = 0; i < sizeof(checksum); ++i)
    bytes[graph::internal::kPlanMagic.size() + i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

// What flow-plan makes of a plan that the reader accepts. It may refuse to draw what contradicts
// itself.
void draw(const graph::SavedPlan& plan) {
  constexpr size_t kMostRanks = 64;
  if (plan.step.programs.size() > kMostRanks) return;
  const PlanningWorld world(static_cast<int64_t>(plan.step.programs.size()));
  try {
    tools::check_certificate(plan.step);
  } catch (const Error&) {
    return;
  }
  tools::page_of(plan.step, {.name = "fuzzed"});
  tools::dot_of(plan.step.graph);
  tools::dot_of(*plan.step.programs.front());
  require(tools::difference(plan, plan).empty(), "a plan differs from itself");
}

Format plan() {
  std::vector<std::string> seeds;
  std::vector<graph::Pass> in_parts = graph::plain_passes();
  in_parts.push_back(pipeline::micro_batching_pass({.micro_batches = 2, .num_arguments = 1}));
  const auto add = [&](int ranks, const std::vector<graph::Pass>& passes) {
    const PlanningWorld world(ranks);
    graph::TracedStep traced = trace_step(ranks == 1 ? Placement() : Placement("cpu", {0, 1}));
    const graph::PlanKey key = plan_key_of(traced.graph, passes);
    seeds.push_back(to_bytes(compile_artifact(std::move(traced.graph), passes), key));
  };
  add(1, graph::plain_passes());
  add(2, graph::plain_passes());
  add(1, in_parts);
  return {.name = "plan", .seeds = seeds, .read = [](const std::string& bytes) {
            const auto use = [](const std::string& plan) {
              draw(graph::parse_plan(plan, "fuzzed", op_table()));
            };
            if (reads_or_refuses<BadFile>("fuzzed", [&] { use(bytes); })) return true;
            return reads_or_refuses<BadFile>("fuzzed", [&] { use(sealed(bytes)); });
          }};
}

}  // namespace

void add_graph_formats(std::vector<Format>& formats) {
  const auto parse_graph = [](const std::string& text) { graph::parse_graph(text, op_table()); };
  formats.push_back(text_format("graph", to_string(trace_step({}).graph), parse_graph));
  formats.push_back(plan());
  formats.push_back(text_format("schedule", kSchedule, [](const std::string& text) {
    const pipeline::Schedule schedule = pipeline::parse_schedule(text);
    require(pipeline::parse_schedule(to_string(schedule)) == schedule,
            "a schedule does not read back");
  }));
  formats.push_back(
      text_format("layout", "(S(0), B)", [](const std::string& text) { NdSbp::parse(text); }));
  formats.push_back(
      file_format("cost_table", to_string(boxing::kCostTable), boxing::parse_cost_table));
  formats.push_back(file_format(
      "cpu_table", to_string(ops::committed_cpu_table(ops::CpuIsa::kAvx2)), ops::parse_cpu_table));
  const pipeline::TimelineFile timeline = pipeline::simulated_timeline(
      pipeline::parse_schedule(kSchedule), "by hand",
      std::vector<pipeline::StageCost>(2, {.forward = 2, .backward = 3}));
  formats.push_back(file_format("timeline", to_json(timeline), pipeline::parse_timeline));
  formats.push_back(file_format("events", events_to_json(timeline.events), pipeline::parse_events));
}

}  // namespace flow::fuzz
