// Saved plans: bytes that read back to the same plan, and bytes that are refused.

#include <array>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <random>
#include <set>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/redistribute.h"
#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/compile.h"
#include "graph/plan_file/plan_bytes.h"
#include "graph/plan_file/plan_check.h"
#include "graph/plan_file/plan_reader.h"
#include "graph/plan_file/plan_writer.h"
#include "graph/program/planning_world.h"
#include "graph/trace/tracer.h"
#include "ops/creation/copy_op.h"
#include "ops/creation/creation.h"
#include "ops/kernel/cpu_features.h"
#include "ops/linear/matmul.h"
#include "ops/random/dropout.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/env_number.h"

namespace flow::graph {
namespace {

// A step with gradients, random numbers, views and, on two ranks, redistributions.
TracedStep trace_step(const Placement& placement) {
  const TensorOptions options{.placement = placement,
                              .sbp = placement.defined() ? NdSbp(sbp::split(0)) : NdSbp()};
  const Tensor x = ones({4, 6}, options);
  Tensor w = ones({6, 3}, {.placement = placement,
                           .sbp = placement.defined() ? NdSbp(sbp::broadcast) : NdSbp()});
  w.requires_grad_();
  Trace trace;
  const Tensor tx = trace.add_input(x);
  const Tensor loss = dropout(matmul(tx, w), {.p = 0.5}).t().sum();
  loss.backward();
  return trace.finish({loss, w.grad()});
}

struct Made {
  CompiledArtifact step;
  PlanKey key;
};

Made make(const Placement& placement = {}) {
  TracedStep traced = trace_step(placement);
  Made made;
  made.key = plan_key_of(traced.graph, plain_passes());
  made.step = compile_artifact(std::move(traced.graph), plain_passes());
  return made;
}

std::string error_of(const std::string& bytes) {
  try {
    parse_plan(bytes, "it", op_table());
  } catch (const BadFile& error) {
    return error.what();
  }
  return "accepted";
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// With the checksum of its content, as one who forges a file would give it.
std::string sealed(std::string bytes) {
  const size_t head = internal::kPlanMagic.size() + sizeof(uint64_t);
  if (bytes.size() < head) return bytes;
  const uint64_t checksum = internal::plan_checksum(std::string_view(bytes).substr(head));
  for (size_t i = 0; i < sizeof(checksum); ++i)
    bytes[internal::kPlanMagic.size() + i] = static_cast<char>(checksum >> (8 * i));
  return bytes;
}

TEST(PlanFile, ReadsBackWhatWasWritten) {
  const PlanningWorld world(2);
  const Made made = make(Placement("cpu", {0, 1}));
  const std::string bytes = to_bytes(made.step, made.key);

  const SavedPlan saved = parse_plan(bytes, "it", op_table());

  EXPECT_EQ(saved.key, made.key);
  EXPECT_EQ(saved.step.graph, made.step.graph);
  EXPECT_EQ(to_string(saved.step.certificate), to_string(made.step.certificate));
  ASSERT_EQ(saved.step.programs.size(), 2U);
  EXPECT_EQ(saved.step.programs[0], saved.step.programs[1]) << "the ranks are alike";
  EXPECT_EQ(to_string(*saved.step.programs[0]), to_string(*made.step.programs[0]));
  EXPECT_EQ(to_bytes(saved.step, saved.key), bytes);
}

TEST(PlanFile, StepsKeepTheirModuleAndPhase) {
  TracedStep traced = trace_step({});
  for (Node& node : traced.graph.nodes)
    node.module = str("layer.", node.op->name);
  const CompiledArtifact step = compile_artifact(std::move(traced.graph), plain_passes());

  const SavedPlan saved = parse_plan(to_bytes(step, {}), "it", op_table());

  std::set<Phase> phases;
  for (const Step& it : saved.step.programs[0]->steps) {
    if (it.line == 0) continue;
    EXPECT_EQ(it.module, str("layer.", it.name()));
    phases.insert(it.phase);
  }
  EXPECT_EQ(phases, (std::set<Phase>{Phase::kForward, Phase::kBackward}));
}

TEST(PlanFile, RedistributionsToOtherRanksReadBack) {
  const PlanningWorld world(3);
  const auto on = [](std::vector<int64_t> ranks, const Sbp& sbp) {
    return ToGlobalOptions{.placement = Placement("cpu", std::move(ranks)), .sbp = sbp};
  };
  Trace trace;
  const Tensor x =
      trace.add_input(ones({4, 6}, {.placement = Placement("cpu", {0}), .sbp = sbp::broadcast}));
  // The split of one rank means nothing.
  TracedStep traced =
      trace.finish({x.to_global(on({1}, sbp::broadcast)),
                    x.to_global(on({2}, sbp::split(0))).to_global(on({0, 1}, sbp::broadcast))});
  const CompiledArtifact step = compile_artifact(std::move(traced.graph), plain_passes());
  const std::string bytes = to_bytes(step, {});

  const SavedPlan saved = parse_plan(bytes, "it", op_table());

  EXPECT_EQ(to_bytes(saved.step, {}), bytes);
}

// The same step, but one of its ops is defined at this address.
Graph with_op_at(void* room) {
  Graph graph = trace_step({}).graph;
  Node& node = graph.nodes.front();
  node.op = new (room) OpDef(*node.op);
  return graph;
}

TEST(PlanFile, TheLibrariesOfAllOpsAreKnownByTheirBuildIds) {
  const std::string own = plan_key_of(trace_step({}).graph, plain_passes()).fact("build");
  EXPECT_FALSE(own.empty());
  alignas(OpDef) static std::array<std::byte, sizeof(OpDef)> here;
  EXPECT_EQ(plan_key_of(with_op_at(here.data()), plain_passes()).fact("build"), own);

  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  void* const library = dlopen((folder / "no_build_id.so").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  const Graph graph = with_op_at(dlsym(library, "flow_test_room"));

  EXPECT_FALSE(plan_key_of(graph, plain_passes()).tells_programs_apart());
  int num_reads = 0;
  const auto read = [&](const std::string& /*name*/) {
    ++num_reads;
    return std::optional<std::string>();
  };
  EXPECT_THROW(compile_once(graph, plain_passes(), {.read = read}), Error) << "it has no kernel";
  EXPECT_EQ(num_reads, 0) << "a plan of another program may have the same key";
  dlclose(library);
}

// A plan has the layouts and the scratch memory of the kernels of one.
TEST(PlanFile, TheInstructionSetIsPartOfTheKey) {
  EXPECT_EQ(make().key.fact("instruction set"), ops::to_string(ops::active_isa()));
}

TEST(PlanFile, AnOriginIsTheSameAtEveryTraceAndDiffersWithTheStep) {
  const Made first = make(), second = make();
  EXPECT_EQ(first.key, second.key);
  const PlanningWorld world(2);
  const Made other = make(Placement("cpu", {0, 1}));
  EXPECT_NE(first.key.name(), other.key.name());
  EXPECT_TRUE(has(other.key.difference_from(first.key), "ranks 2 instead of 1"));
}

TEST(PlanFile, SaysWhyAFileIsRefused) {
  const Made made = make();
  const std::string bytes = to_bytes(made.step, made.key);
  EXPECT_EQ(error_of(bytes), "accepted");
  EXPECT_TRUE(has(error_of("a text"), "it is no saved plan"));
  EXPECT_TRUE(has(error_of(bytes.substr(0, bytes.size() / 2)), "damaged"));
  std::string other_version = bytes;
  other_version[internal::kPlanMagic.size() + sizeof(uint64_t)] = 4;  // a 2, as it is written
  EXPECT_TRUE(has(error_of(sealed(other_version)), "version is 2, not 9"));
  EXPECT_TRUE(has(error_of(sealed(bytes + '\0')), "something follows its end"));
}

TEST(PlanFile, EveryCutAndEveryFlippedByteIsFound) {
  const Made made = make();
  const std::string bytes = to_bytes(made.step, made.key);
  for (size_t size = 0; size < bytes.size(); ++size)
    ASSERT_NE(error_of(bytes.substr(0, size)), "accepted") << size;
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string flipped = bytes;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    ASSERT_NE(error_of(flipped), "accepted") << at;
  }
}

// Whatever a forged file says, reading it ends with a plan or a BadFile.
TEST(PlanFile, ForgedFilesNeverHarmTheReader) {
  const PlanningWorld world(2);
  const Made made = make(Placement("cpu", {0, 1}));
  const std::string bytes = to_bytes(made.step, made.key);
  const auto count = static_cast<int>(env_number("FLOW_TEST_CASES", 3000));
  std::mt19937_64 random(1);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    std::string forged = bytes;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      forged[16 + random() % (forged.size() - 16)] = static_cast<char>(random());
    if (i % 4 == 0) forged.resize(16 + random() % (forged.size() - 16));
    refused += error_of(sealed(forged)) == "accepted" ? 0 : 1;
  }
  EXPECT_GT(refused, count / 2);
}

// A program of rank 0 with steps on two buffers of four floats, and one of rank 1.
std::string refusal_of(const std::vector<Step>& steps) {
  const MetaPtr meta = local_meta({4}, float32, DeviceType::kCpu);
  const MetaPtr elsewhere =
      global_meta({4}, float32, Placement("cpu", {1}), NdSbp(sbp::broadcast), 0);
  Program program;
  program.buffers = {
      {.meta = meta, .arena_offset = 0}, {.meta = meta, .arena_offset = 64}, {.meta = elsewhere}};
  program.arena_bytes = 128;
  program.steps = steps;
  try {
    check_program(program, Graph(), "it");
  } catch (const BadFile& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PlanFile, ARankMayHaveNothingOfTheLastMicroBatches) {
  Program program;
  program.blocks = {{.first_step = 0, .end_step = 0}};
  program.runs = {{.block = 0, .micro_batch = 0}, {.block = 0, .micro_batch = 1}};
  program.tables = {{0, 4, 8}};
  EXPECT_NO_THROW(check_program(program, Graph(), "it"));
  program.tables = {{0}};
  EXPECT_THROW(check_program(program, Graph(), "it"), BadFile);
}

TEST(PlanFile, ChecksWhatEachKindOfStepNeeds) {
  const Step send{.body = SendStep{.peer = 1}, .inputs = {0}};
  const Step wait{.body = WaitStep{.started = 0}, .inputs = {0}};
  EXPECT_EQ(refusal_of({send, wait}), "accepted");
  EXPECT_TRUE(has(refusal_of({send, {.body = WaitStep{.started = 0}, .inputs = {1}}}),
                  "step 1 waits for a step that was not started with its buffers"));
  EXPECT_TRUE(has(refusal_of({send, wait, wait}), "step 2 waits for"));
  Step in_background = send;
  in_background.in_background = true;
  EXPECT_TRUE(has(refusal_of({in_background, wait}), "step 0 cannot be in the background"));
  EXPECT_TRUE(has(refusal_of({{.body = SendStep{.peer = 0}, .inputs = {0}}}), "no valid message"));
  const Step receive{.body = ReceiveStep{.peer = 1}, .outputs = {0}};
  EXPECT_EQ(refusal_of({receive, {.body = WaitStep{.started = 0}, .outputs = {0}}}), "accepted");
  EXPECT_TRUE(has(refusal_of({receive}), "no step waits for a step that was started"));
  EXPECT_TRUE(has(refusal_of({{.body = ReceiveStep{.peer = 1}, .inputs = {0}}}),
                  "does not have the buffers that it needs"));
  EXPECT_TRUE(has(refusal_of({{.body = ConvertStep{}, .inputs = {0}, .outputs = {1}}}),
                  "not the strided one"));
  const OpCall clone{.op = &ops::kClone};
  EXPECT_EQ(refusal_of({{.body = KernelStep{clone}, .inputs = {0}, .outputs = {1}}}), "accepted");
  Step guarded{.body = KernelStep{clone}, .inputs = {0}, .outputs = {1}};
  guarded.guard = 0;
  EXPECT_TRUE(has(refusal_of({guarded}), "step 0 has a guard that is not a bool scalar"));
  EXPECT_TRUE(has(refusal_of({{.body = CollectiveStep{clone}, .inputs = {0}, .outputs = {1}}}),
                  "step 0, clone, has a route"));
  const OpCall redistribute{.op = &boxing::kRedistribute};
  EXPECT_TRUE(has(refusal_of({{.body = KernelStep{redistribute}, .inputs = {0}, .outputs = {1}}}),
                  "step 0, redistribute, has no route"));
  for (const auto& [from, to] : {std::pair<BufferId, BufferId>{0, 2}, {2, 0}, {2, 2}}) {
    EXPECT_TRUE(has(refusal_of({{.body = KernelStep{clone}, .inputs = {from}, .outputs = {to}}}),
                    "step 0, clone, works on a tensor of other ranks"));
  }
}

}  // namespace
}  // namespace flow::graph
