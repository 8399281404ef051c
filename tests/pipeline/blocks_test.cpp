// Programs in which micro-batches are a loop over blocks: their size, their memory, and saved plans
// of them. That they compute what one rank computes is tested with nn::Graph.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/redistribute.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "graph/compile.h"
#include "graph/plan_file/plan_bytes.h"
#include "graph/plan_file/plan_check.h"
#include "graph/plan_file/plan_reader.h"
#include "graph/plan_file/plan_writer.h"
#include "graph/program/memory_check.h"
#include "graph/program/planning_world.h"
#include "graph/trace/tracer.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/random/dropout.h"
#include "ops/reduce/reduce.h"
#include "pipeline/order.h"
#include "tests/support/env_number.h"

namespace flow::pipeline {
namespace {

using graph::BlockRun;
using graph::CompiledArtifact;
using graph::Program;

// Two stages on two ranks, with gradients, random numbers and a result for each sample.
graph::TracedStep two_stages(int64_t rows) {
  const Placement first("cpu", {0}), last("cpu", {1});
  const auto on = [](const Placement& placement) {
    return TensorOptions{.placement = placement, .sbp = sbp::broadcast};
  };
  const Tensor x = ones({rows, 3}, on(first));
  Tensor w1 = ones({3, 4}, on(first)), w2 = ones({4, 2}, on(last));
  w1.requires_grad_();
  w2.requires_grad_();
  graph::Trace trace;
  const Tensor tx = trace.add_input(x);
  Tensor hidden, loss;
  {
    const graph::StageGuard stage(0);
    hidden = dropout(exp(matmul(tx, w1)), {.p = 0.5});
  }
  const Tensor moved = hidden.to_global({.placement = last, .sbp = sbp::broadcast});
  {
    const graph::StageGuard stage(1);
    loss = exp(matmul(moved, w2)).sum();
  }
  loss.backward();
  return trace.finish({hidden, loss, w1.grad(), w2.grad()});
}

std::vector<graph::Pass> passes_of(int64_t micro_batches, bool receives_early = true) {
  std::vector<graph::Pass> passes = graph::plain_passes();
  passes.push_back(micro_batching_pass({.micro_batches = micro_batches,
                                        .rule = one_f_one_b(),
                                        .num_arguments = 1,
                                        .receives_early = receives_early}));
  return passes;
}

// For two ranks that exist only for planning.
CompiledArtifact compiled(int64_t rows, int64_t micro_batches, bool receives_early = true) {
  const PlanningWorld world(2);
  return compile_artifact(two_stages(rows).graph, passes_of(micro_batches, receives_early));
}

TEST(Blocks, MicroBatchesOfOneSizeShareThem) {
  const CompiledArtifact few = compiled(8, 4), many = compiled(128, 64);
  for (size_t rank = 0; rank < 2; ++rank) {
    const Program &a = *few.programs[rank], &b = *many.programs[rank];
    EXPECT_EQ(a.steps.size(), b.steps.size());
    EXPECT_EQ(a.blocks.size(), b.blocks.size());
    EXPECT_EQ(a.buffers.size(), b.buffers.size());
    EXPECT_EQ(a.frames.size(), b.frames.size());
    EXPECT_GT(b.runs.size(), 10 * a.runs.size());
    // 1F1B keeps as many micro-batches as there are stages.
    EXPECT_EQ(a.arena_bytes, b.arena_bytes);
  }
}

TEST(Blocks, EachSizeHasItsOwn) {
  const CompiledArtifact even = compiled(8, 4), uneven = compiled(9, 4);
  const Program &a = *even.programs[0], &b = *uneven.programs[0];
  EXPECT_LT(a.steps.size(), b.steps.size());
  EXPECT_LE(b.steps.size(), 3 * a.steps.size());
  // Rows 0 to 2 are micro-batch 0, the others have two each.
  std::vector<int64_t> runs_of(b.blocks.size(), 0);
  for (const BlockRun& run : b.runs)
    ++runs_of[static_cast<size_t>(run.block)];
  EXPECT_TRUE(std::find(runs_of.begin(), runs_of.end(), 3) != runs_of.end());
  EXPECT_EQ(*std::max_element(runs_of.begin(), runs_of.end()), 3);
}

TEST(Blocks, RunsAreListedByAction) {
  const CompiledArtifact step = compiled(4, 2);
  const std::string text = to_string(*step.programs[1], 1);
  EXPECT_NE(text.find("\n1F0: "), std::string::npos) << text;
  EXPECT_NE(text.find("\n1B1: "), std::string::npos) << text;
  EXPECT_NE(text.find(" in the first run"), std::string::npos) << text;
  EXPECT_NE(text.find(" in later runs"), std::string::npos) << text;
}

// Three stages on a rank each. The last one uses what the first one makes, which passes through the
// rank of the second.
graph::TracedStep relayed(bool middle_computes) {
  const Placement ranks[] = {Placement("cpu", {0}), Placement("cpu", {1}), Placement("cpu", {2})};
  const auto moved = [&](const Tensor& x, size_t stage) {
    return x.to_global({.placement = ranks[stage], .sbp = sbp::broadcast});
  };
  const Tensor x = ones({4, 3}, {.placement = ranks[0], .sbp = sbp::broadcast});
  Tensor w = ones({3, 3}, {.placement = ranks[0], .sbp = sbp::broadcast});
  w.requires_grad_();
  graph::Trace trace;
  const Tensor tx = trace.add_input(x);
  Tensor first, middle, last;
  {
    const graph::StageGuard stage(0);
    first = exp(matmul(tx, w));
  }
  {
    const graph::StageGuard stage(1);
    middle = moved(first, 1);
  }
  {
    const graph::StageGuard stage(2);
    last = exp(moved(middle, 2));
  }
  if (middle_computes) {
    const graph::StageGuard stage(1);
    middle = exp(moved(first, 1));
  }
  {
    const graph::StageGuard stage(2);
    if (middle_computes) last = last + moved(middle, 2);
    last = last.sum();
  }
  last.backward();
  return trace.finish({w.grad()});
}

// Without the passes that would send the value straight to the last stage.
CompiledArtifact compile_relayed(bool middle_computes, int64_t micro_batches) {
  std::vector<graph::Pass> passes = passes_of(micro_batches);
  std::erase_if(passes, [](const graph::Pass& pass) {
    return pass.name == "join_redistributions" || pass.name == "merge_common_subexpressions";
  });
  return compile_artifact(relayed(middle_computes).graph, passes);
}

TEST(Blocks, AValuePassesThroughTheRanksOfAStage) {
  const PlanningWorld world(3);
  for (const int64_t micro_batches : {1, 2})
    EXPECT_EQ(compile_relayed(true, micro_batches).programs.size(), 3U);
}

TEST(Blocks, RanksThatOnlyPassAValueOnAreRefused) {
  const PlanningWorld world(3);
  try {
    compile_relayed(false, 2);
    FAIL() << "compiled";
  } catch (const Unsupported& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("but computes nothing between 0F and it"), std::string::npos) << what;
    EXPECT_NE(what.find("blocks_test.cpp:"), std::string::npos) << what;
  }
}

// ---- receives

const graph::Step& first_step_of(const Program& program, const BlockRun& run) {
  return program.steps[program.block(run.block).first_step];
}

bool is_start(const Program& program, const BlockRun& run) {
  return first_step_of(program, run).as<graph::ReceiveStep>() != nullptr;
}

bool is_arrival(const Program& program, const BlockRun& run) {
  const auto* wait = first_step_of(program, run).as<graph::WaitStep>();
  return wait != nullptr && program.steps[wait->started].as<graph::ReceiveStep>() != nullptr;
}

// What the runs of each action do.
std::string runs_of_actions(const Program& program) {
  std::string text;
  for (size_t i = 0; i < program.parts.size(); ++i) {
    const graph::ProgramPart& part = program.parts[i];
    if (part.name == "before" || part.name == "after") continue;
    text += part.name + ':';
    const size_t end =
        i + 1 < program.parts.size() ? program.parts[i + 1].first_run : program.runs.size();
    for (size_t at = part.first_run; at < end; ++at) {
      const BlockRun& run = program.runs[at];
      const bool is_wait = first_step_of(program, run).as<graph::WaitStep>() != nullptr;
      text += is_start(program, run)     ? " start"
              : is_arrival(program, run) ? " receive"
              : is_wait                  ? " sent"
                                         : " run";
      text += str(' ', run.micro_batch);
    }
    text += '\n';
  }
  return text;
}

TEST(Blocks, ReceivesStartOneActionEarly) {
  const CompiledArtifact late = compiled(6, 3, false), early = compiled(6, 3);
  EXPECT_EQ(runs_of_actions(*late.programs[1]),
            "1F0: start 0 receive 0 run 0\n"
            "1B0: run 0\n"
            "1F1: start 1 receive 1 run 1 sent 0\n"
            "1B1: run 1\n"
            "1F2: start 2 receive 2 run 2 sent 1\n"
            "1B2: run 2\n");
  EXPECT_EQ(runs_of_actions(*early.programs[1]),
            "1F0: start 0 receive 0 run 0\n"
            "1B0: start 1 run 0\n"
            "1F1: receive 1 run 1 sent 0\n"
            "1B1: start 2 run 1\n"
            "1F2: receive 2 run 2 sent 1\n"
            "1B2: run 2\n");
  EXPECT_EQ(runs_of_actions(*early.programs[0]),
            "0F0: run 0\n"
            "0F1: start 0 run 1\n"
            "0B0: receive 0 run 0 sent 0\n"
            "0F2: start 1 run 2 sent 1\n"
            "0B1: receive 1 start 2 run 1\n"
            "0B2: receive 2 run 2 sent 2\n");
}

// ---- what the certificate finds

std::string problem(Program program, const std::function<void(Program&)>& change) {
  change(program);
  try {
    check_memory(graph::BufferUses(program));
  } catch (const InternalError& error) {
    return error.what();
  }
  return "certified";
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// A frame that two micro-batches use at the same time.
size_t shared_frame(const Program& program) {
  const auto is_used = [](int64_t offset) { return offset >= 0; };
  for (size_t i = 0; i < program.frames.size(); ++i) {
    const std::vector<int64_t>& offsets = program.frames[i].arena_offsets;
    if (std::count_if(offsets.begin(), offsets.end(), is_used) > 1 && offsets[0] != offsets[1])
      return i;
  }
  ADD_FAILURE() << "no frame of two micro-batches";
  return 0;
}

TEST(Blocks, TheCertificateFindsMemoryThatMicroBatchesShareWrongly) {
  const CompiledArtifact step = compiled(8, 4);
  const Program& program = *step.programs[0];
  EXPECT_EQ(problem(program, [](Program&) {}), "certified");

  const size_t frame = shared_frame(program);
  const std::string overlap = problem(program, [&](Program& p) {
    p.frames[frame].arena_offsets[1] = p.frames[frame].arena_offsets[0];
  });
  EXPECT_TRUE(has(overlap, "of micro-batch 1, used from")) << overlap;
  EXPECT_TRUE(has(overlap, "of micro-batch 0, used until")) << overlap;

  const std::string outside =
      problem(program, [&](Program& p) { p.frames[frame].arena_offsets[1] = p.arena_bytes; });
  EXPECT_TRUE(has(outside, "bytes")) << outside;

  const std::string beyond = problem(program, [&](Program& p) {
    for (graph::Buffer& buffer : p.buffers) {
      if (buffer.frame == static_cast<int32_t>(frame)) buffer.arena_offset += p.frames[frame].bytes;
    }
  });
  EXPECT_TRUE(has(beyond, "outside of its frame")) << beyond;
}

TEST(Blocks, TheCertificateFindsDataOfAnotherMicroBatch) {
  const CompiledArtifact step = compiled(8, 4);
  const Program& program = *step.programs[0];
  // Backward of micro-batch 0 before its forward.
  const std::string early = problem(program, [](Program& p) {
    const auto first = std::find_if(p.runs.begin(), p.runs.end(),
                                    [](const BlockRun& run) { return run.micro_batch == 0; });
    const auto last = std::find_if(p.runs.rbegin(), p.runs.rend(), [&](const BlockRun& run) {
      return run.micro_batch == 0 && run.block != first->block && !run.is_first;
    });
    std::iter_swap(first, last == p.runs.rend() ? std::prev(p.runs.end()) : last.base() - 1);
  });
  EXPECT_NE(early, "certified");
  const std::string lost = problem(program, [](Program& p) {
    std::erase_if(p.runs, [&](const BlockRun& run) {
      return run.micro_batch == 2 && !is_arrival(p, run) &&
             first_step_of(p, run).as<graph::WaitStep>() != nullptr;
    });
  });
  EXPECT_TRUE(has(lost, "no step waits for the end of")) << lost;
}

TEST(Blocks, TheCertificateFindsMessagesThatArriveInMemoryInUse) {
  const CompiledArtifact step = compiled(8, 4);
  const Program& program = *step.programs[1];
  EXPECT_EQ(problem(program, [](Program&) {}), "certified");
  const auto find = [](Program& p, bool (*is_wanted)(const Program&, const BlockRun&), int32_t m) {
    return std::find_if(p.runs.begin(), p.runs.end(), [&](const BlockRun& run) {
      return run.micro_batch == m && is_wanted(p, run);
    });
  };
  const std::string unfinished = problem(program, [&](Program& p) {
    const auto arrival = find(p, is_arrival, 1);
    std::iter_swap(arrival, arrival + 2);
  });
  EXPECT_TRUE(has(unfinished, "uses a buffer before")) << unfinished;
  EXPECT_TRUE(has(unfinished, "(recv) at ")) << unfinished;
  const std::string too_early = problem(program, [&](Program& p) {
    std::rotate(find(p, is_start, 0), find(p, is_start, 3), find(p, is_start, 3) + 1);
  });
  EXPECT_TRUE(has(too_early, "of micro-batch 1, used from")) << too_early;
  EXPECT_TRUE(has(too_early, " of micro-batch 3, used until")) << too_early;
}

// ---- saved plans

TEST(Blocks, PlansOfThemReadBack) {
  const PlanningWorld world(2);
  graph::TracedStep traced = two_stages(9);
  const std::vector<graph::Pass> passes = passes_of(4);
  const graph::PlanKey key = plan_key_of(traced.graph, passes);
  const CompiledArtifact step = compile_artifact(std::move(traced.graph), passes);
  const std::string bytes = to_bytes(step, key);
  const graph::SavedPlan saved = graph::parse_plan(bytes, "it", op_table());
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(to_string(*saved.step.programs[rank]), to_string(*step.programs[rank]));
    EXPECT_NO_THROW(check_memory(graph::BufferUses(*saved.step.programs[rank])));
  }
  EXPECT_EQ(to_bytes(saved.step, saved.key), bytes);
}

std::string refusal(const CompiledArtifact& step, const std::function<void(Program&)>& change) {
  Program program = *step.programs[0];
  change(program);
  try {
    check_program(program, step.graph, "it");
  } catch (const BadFile& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Blocks, PlansWithWrongOnesAreRefused) {
  const CompiledArtifact step = compiled(9, 4);
  EXPECT_EQ(refusal(step, [](Program&) {}), "accepted");
  const auto expect = [&](const char* why, const std::function<void(Program&)>& change) {
    const std::string error = refusal(step, change);
    EXPECT_TRUE(has(error, why)) << error << ", expected " << why;
  };
  expect("blocks or runs only", [](Program& p) { p.runs.clear(); });
  expect("belongs to no block", [](Program& p) { --p.blocks.back().end_step; });
  expect("runs twice", [](Program& p) { p.runs.push_back(p.runs.back()); });
  expect("has no runs", [](Program& p) { p.runs.back().micro_batch = 1 << 19; });
  expect("a number for each micro-batch", [](Program& p) { p.tables[0].pop_back(); });
  expect("a number for each micro-batch", [](Program& p) { p.tables[0][0] = -1; });
  expect("a frame is outside", [](Program& p) { p.frames[0].arena_offsets[0] = p.arena_bytes; });
  expect("has no memory in micro-batch 1", [](Program& p) {
    for (graph::Frame& frame : p.frames)
      frame.arena_offsets[1] = -1;
  });
  expect("a table that does not exist", [](Program& p) { p.buffers.back().begins = 1000; });
  expect("a frame that does not exist", [](Program& p) { p.buffers.back().frame = 1000; });
  expect("extends beyond", [](Program& p) {
    for (std::vector<int64_t>& table : p.tables)
      table.back() += 1 << 20;
  });
  expect("waits for a step that has not begun",
         [](Program& p) { std::reverse(p.runs.begin(), p.runs.end()); });
}

// Whatever a forged file says, reading it ends with a plan or a BadFile.
TEST(Blocks, ForgedPlansNeverHarmTheReader) {
  const PlanningWorld world(2);
  graph::TracedStep traced = two_stages(5);
  const std::vector<graph::Pass> passes = passes_of(2);
  const graph::PlanKey key = plan_key_of(traced.graph, passes);
  const std::string bytes = to_bytes(compile_artifact(std::move(traced.graph), passes), key);
  const size_t head = graph::internal::kPlanMagic.size() + sizeof(uint64_t);
  std::mt19937_64 random(1);
  int refused = 0;
  const auto count = static_cast<int>(env_number("FLOW_TEST_CASES", 3000));
  for (int i = 0; i < count; ++i) {
    std::string forged = bytes;
    for (uint64_t changes = 1 + random() % 3; changes > 0; --changes)
      forged[head + random() % (forged.size() - head)] = static_cast<char>(random());
    const uint64_t checksum = graph::internal::plan_checksum(std::string_view(forged).substr(head));
    for (size_t k = 0; k < sizeof(checksum); ++k)
      forged[head - sizeof(checksum) + k] = static_cast<char>(checksum >> (8 * k));
    try {
      graph::parse_plan(forged, "it", op_table());
    } catch (const BadFile&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, count / 2);
}

}  // namespace
}  // namespace flow::pipeline
