// The pages, graphs and differences that flow-plan makes of plans.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "eager/runtime.h"
#include "graph/compile.h"
#include "graph/ir/ir_text.h"
#include "graph/passes/pass.h"
#include "graph/program/certificate.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "ops/elementwise/unary.h"
#include "tools/flow_plan/dot.h"
#include "tools/flow_plan/forecast.h"
#include "tools/flow_plan/memory_use.h"
#include "tools/flow_plan/page.h"
#include "tools/flow_plan/page_parts.h"
#include "tools/flow_plan/plan_diff.h"
#include "tools/flow_plan/sequence_diff.h"
#include "tools/flow_plan/transfers.h"
#include "tools/page/markup.h"

namespace flow {
namespace {

using graph::CompiledArtifact;
using graph::SavedPlan;
using tools::common_subsequence;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t number = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++number;
  return number;
}

// A training of two layers in two stages, in micro-batches.
struct Pipelined : nn::Graph<Pipelined> {
  nn::Linear first, last;

  Pipelined(nn::Linear a, nn::Linear b, const Placement& on_first, const Placement& on_last,
            optim::Optimizer& optimizer, int64_t micro_batches)
      : first(a), last(b) {
    nn::graph_module(first).set_stage(0, on_first);
    nn::graph_module(last).set_stage(1, on_last);
    add_optimizer(optimizer);
    config().set_micro_batches(micro_batches).set_schedule(pipeline::one_f_one_b());
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(last(relu(first(x))), y);
    loss.backward();
    return loss;
  }
};

// Each stage has two ranks, which share the batch.
SavedPlan pipelined_plan(int64_t hidden = 8, int64_t micro_batches = 4) {
  const PlanningWorld world(4);
  const Placement on_first("cpu", {0, 1}), on_last("cpu", {2, 3});
  const auto layer = [](const Placement& ranks, int64_t in, int64_t out) {
    const PlacementGuard guard(ranks, sbp::broadcast);
    return nn::Linear(in, out);
  };
  const nn::Linear first = layer(on_first, 6, hidden), last = layer(on_last, hidden, 4);
  std::vector<Tensor> parameters = first.parameters();
  for (const Tensor& parameter : last.parameters())
    parameters.push_back(parameter);
  optim::SGD optimizer(parameters, {.lr = 0.1});
  Pipelined graph(first, last, on_first, on_last, optimizer, micro_batches);
  const auto& compiled = graph.compile(
      randn({16, 6}, {.placement = on_first, .sbp = sbp::split(0)}),
      randint(0, 4, {16}, {.dtype = int64, .placement = on_last, .sbp = sbp::split(0)}));
  const CompiledArtifact& step = compiled.plan().step();
  return {.key = step.key, .step = step};
}

// Copies a plan's programs so that they can be changed.
graph::Program& own_program(SavedPlan& plan, size_t rank) {
  auto own = std::make_shared<graph::Program>(*plan.step.programs[rank]);
  plan.step.programs[rank] = own;
  return *own;
}

TEST(FlowPlanPage, ShowsTimeMemoryTransfersAndPassesWithoutScriptsOrLinks) {
  const SavedPlan plan = pipelined_plan();

  const std::string page = tools::page_of(plan.step, {.name = "train.plan"});

  for (const char* part :
       {"<title>Plan train.plan</title>", "<b>4</b><span>ranks</span>",
        "<b>4</b><span>micro-batches</span>", "<b>rank 0</b><small>stage 0", ">F0</text>",
        ">B3</text>", "peak memory of a rank", ", the largest part by ", "Transfers in one run",
        "message", "P -&gt; B on cpu:(0, 1)", "flow_plan_page_test.cpp:", "settle_stages",
        "prefers-color-scheme: dark"}) {
    EXPECT_TRUE(has(page, part)) << part;
  }
  for (const char* part :
       {"<script", "javascript:", "http:", "https:", "src=", "href=", "url(", "@import"})
    EXPECT_FALSE(has(page, part)) << part;
}

// A sum over micro-batches begins with a copy in the first and goes on with additions in the
// others.
TEST(FlowPlanPage, KernelsAreCountedInTheRunsThatHaveThem) {
  const SavedPlan plan = pipelined_plan(8, 4);
  const graph::Program& program = *plan.step.programs[0];
  const graph::ProgramRuns runs(program);
  std::map<std::string_view, int64_t> times;
  for (const graph::BlockRun& run : runs.runs()) {
    const graph::Block& block = runs.block_of(run);
    for (size_t i = block.first_step; i < block.end_step; ++i) {
      const graph::Step& step = program.steps[i];
      if (step.line == 0 && step.op_call() != nullptr && takes_turn(step.turn, run))
        ++times[step.name()];
    }
  }
  ASSERT_EQ(times["add"], 3 * 2) << "weight and bias";

  const std::string html = tools::lines_html(program);

  for (const auto& [op, number] : times) {
    EXPECT_TRUE(
        has(html, str("<td>", op, "</td><td></td><td></td><td class=\"n\">", number, "</td>")))
        << op << ' ' << number << '\n'
        << html;
  }
}

TEST(FlowPlanPage, TextsOfAPlanAreNoMarkup) {
  const std::string evil = "\"'></title></style><script>alert(1)</script><img onerror=x>&";
  SavedPlan plan = pipelined_plan();
  for (size_t rank = 0; rank < plan.step.programs.size(); ++rank) {
    graph::Program& program = own_program(plan, rank);
    for (graph::Step& step : program.steps) {
      step.file = evil;
      step.module = evil;
      step.line = 1;
    }
    for (graph::ProgramPart& part : program.parts)
      part.name = "1F" + evil;
    plan.step.certificate.ranks[rank].peak_at = evil;
    plan.step.certificate.ranks[rank].scratch_at = evil;
  }
  plan.step.passes.push_back({evil, 1});
  plan.step.key.facts.emplace_back(evil, evil);

  const std::string page = tools::page_of(plan.step, {.name = evil});

  EXPECT_FALSE(has(page, "<script"));
  EXPECT_FALSE(has(page, "<img"));
  EXPECT_FALSE(has(page, "\"'>"));
  EXPECT_EQ(count(page, "</style>"), 1);
  EXPECT_GE(count(page, "&quot;&#39;&gt;&lt;/title&gt;&lt;/style&gt;&lt;script&gt;"), 10);
  const std::string dot = tools::dot_of(*plan.step.programs[0]);
  EXPECT_GE(count(dot, "\\\"'>"), 10);
  EXPECT_EQ(count(dot, "\\\"'>"), count(dot, "\"'>"));
}

TEST(FlowPlanPage, OneRankCanBeDrawnAlone) {
  const SavedPlan plan = pipelined_plan();
  const std::string page = tools::page_of(plan.step, {.name = "p", .rank = 3});
  EXPECT_TRUE(has(page, "<b>rank 3</b>"));
  EXPECT_FALSE(has(page, "<b>rank 0</b>"));
  EXPECT_THROW(tools::page_of(plan.step, {.name = "p", .rank = 4}), InvalidArgument);
}

// Ranks of a pipeline in which stages take one micro-batch after the other.
CompiledArtifact large_step(int64_t ranks, int32_t micro_batches) {
  CompiledArtifact step;
  const graph::Step add{.body = graph::KernelStep{.op_call = {.op = op_table().find("relu")}},
                        .inputs = {0},
                        .outputs = {1},
                        .file = "train.cpp",
                        .line = 3,
                        .module = "block"};
  const MetaPtr meta = local_meta({1000}, DType::kFloat32, DeviceType::kCpu);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    auto program = std::make_shared<graph::Program>();
    program->rank = rank;
    program->buffers = {{.meta = meta, .arena_offset = 0}, {.meta = meta, .arena_offset = 4032}};
    program->arena_bytes = 8064;
    program->steps = {add, add};
    program->blocks = {{0, 1}, {1, 2}};
    for (int32_t m = 0; m < 2 * micro_batches; ++m) {
      program->parts.push_back({program->runs.size(), str(rank, m % 2 == 0 ? "F" : "B", m / 2)});
      program->runs.push_back({.block = m % 2, .micro_batch = m / 2});
    }
    step.programs.push_back(program);
    step.certificate.ranks.emplace_back().rank = rank;
  }
  return step;
}

TEST(FlowPlanPage, ManyRanksAndMicroBatchesAreDrawnAsShares) {
  const CompiledArtifact step = large_step(64, 512);

  const std::string page = tools::page_of(step, {.name = "large"});

  EXPECT_TRUE(has(page, "These are 65536 bars, and at most 8000 are drawn one by one"));
  EXPECT_TRUE(has(page, "forward (F): 50.0 % of"));
  EXPECT_LT(count(page, "<rect"), 40'000);
  EXPECT_LT(page.size(), size_t{12} << 20);
}

TEST(FlowPlanPage, MoreProgramsThanFitAreCounted) {
  const std::string page = tools::page_of(large_step(70, 1), {.name = "wide"});
  EXPECT_TRUE(has(page, "The plan has 70 different programs; the first 64 are shown"));
  EXPECT_EQ(count(page, "<details"), 64);
}

TEST(FlowPlanPage, AStepOfManyNodesIsDrawnAsShares) {
  CompiledArtifact step = large_step(1, 1);
  auto program = std::make_shared<graph::Program>(*step.programs[0]);
  const graph::Step relu = program->steps[0];
  program->blocks.clear();
  program->runs.clear();
  program->parts.clear();
  program->steps.clear();
  for (int i = 0; i < 20'000; ++i) {
    program->steps.push_back(relu);
    program->steps.back().module = str("block.", i);
  }
  step.programs[0] = program;

  const std::string page = tools::page_of(step, {.name = "long"});

  EXPECT_TRUE(has(page, "These are 20000 bars"));
  EXPECT_TRUE(has(page, "and 19970 others"));  // lines of the table of kernels
  EXPECT_LT(page.size(), size_t{2} << 20);
}

TEST(FlowPlanMemory, ThePeakIsTheCertificatesAndItsOwnersAddUp) {
  for (const SavedPlan& plan : {pipelined_plan(), pipelined_plan(32, 1), pipelined_plan(64, 3)}) {
    for (size_t rank = 0; rank < plan.step.programs.size(); ++rank) {
      const tools::MemoryUse use = tools::memory_use(*plan.step.programs[rank], 50, 3);

      EXPECT_EQ(use.peak_bytes, plan.step.certificate.ranks[rank].peak_bytes);
      int64_t owned = 0;
      for (const tools::OwnedBytes& owner : use.at_peak) {
        EXPECT_GT(owner.bytes, 0);
        owned += owner.bytes;
      }
      EXPECT_EQ(owned, use.peak_bytes);
      int64_t most = 0;
      for (const tools::MemoryColumn& column : use.columns) {
        int64_t shown = 0;
        for (const int64_t bytes : column.by_owner)
          shown += bytes;
        EXPECT_LE(shown, column.bytes);
        most = std::max(most, column.bytes);
      }
      EXPECT_LE(use.columns.size(), 50U);
      EXPECT_EQ(most, use.peak_bytes);
    }
  }
}

TEST(FlowPlanForecast, StagesFollowEachOtherAndRanksOfAStageAreAlike) {
  const SavedPlan plan = pipelined_plan();

  const tools::Forecast times = tools::forecast(plan.step.programs, {0, 1, 2, 3});

  ASSERT_EQ(times.obstacle, "");
  ASSERT_EQ(times.ranks.size(), 4U);
  EXPECT_GT(times.ranks[0].busy_us, 0);
  EXPECT_DOUBLE_EQ(times.ranks[0].busy_us, times.ranks[1].busy_us);
  double end = 0;
  for (const tools::RankForecast& rank : times.ranks) {
    double last = 0;
    for (const tools::TimeSpan& position : rank.positions) {
      EXPECT_EQ(position.begin, last);
      last = position.end;
    }
    EXPECT_NEAR(rank.busy_us + rank.exchange_us, last, 1e-6);
    end = std::max(end, last);
  }
  EXPECT_DOUBLE_EQ(times.span_us, end);
  // The last stage waits for the first message before it works.
  ASSERT_FALSE(times.ranks[2].exchanges.empty());
  EXPECT_GT(times.ranks[2].exchanges[0].time.end, 0);
}

TEST(FlowPlanForecast, ProgramsThatWaitForeverHaveNoTimes) {
  SavedPlan plan = pipelined_plan();
  for (const size_t rank : {0U, 1U}) {
    graph::Program& program = own_program(plan, rank);
    for (graph::Step& step : program.steps) {
      if (auto* send = step.as<graph::SendStep>()) send->tag += 1000;
    }
  }
  EXPECT_TRUE(has(tools::forecast(plan.step.programs, {0}).obstacle, "a rank waits forever"));
  EXPECT_TRUE(has(tools::page_of(plan.step, {.name = "p"}), "There are no times: a rank waits"));
}

TEST(FlowPlanTransfers, HaveReasonBytesAndNumberOfTimes) {
  const SavedPlan plan = pipelined_plan();

  const std::vector<tools::Transfer> all = tools::transfers_of(*plan.step.programs[0], 0);

  const auto sent = std::find_if(
      all.begin(), all.end(), [](const tools::Transfer& it) { return it.reason == "to rank 2"; });
  ASSERT_NE(sent, all.end());
  EXPECT_EQ(sent->count, 4);
  EXPECT_EQ(sent->bytes, 2 * 8 * 4);  // two rows of eight hidden values
  const auto sum = std::find_if(all.begin(), all.end(),
                                [](const tools::Transfer& it) { return it.route == "all_reduce"; });
  ASSERT_NE(sum, all.end());
  EXPECT_EQ(sum->count, 1);
  EXPECT_TRUE(has(sum->reason, "P -> B on cpu:(0, 1)")) << sum->reason;
}

TEST(FlowPlanDiff, EqualPlansHaveNoDifferenceWhateverTheBuild) {
  const SavedPlan a = pipelined_plan();
  SavedPlan b = a;
  for (auto& [name, value] : b.key.facts) {
    if (name == "build") value = "another";
  }
  EXPECT_EQ(tools::difference(a, b), "");
}

TEST(FlowPlanDiff, ChangedSizesMemoryAndTransfersAreNamed) {
  const std::string text = tools::difference(pipelined_plan(8), pipelined_plan(16));
  for (const char* part :
       {"compiled from:\n  ~ step: ",
        "inputs, tensors from outside and outputs:\n  - tensor from outside, written,",
        "steps of rank 0 (", "  ~ linear", "memory of rank 0:\n  ~ arena bytes: ",
        "transfers of rank 2:\n", "to rank 0, 4 times 64 bytes"}) {
    EXPECT_TRUE(has(text, part)) << part << '\n' << text;
  }
}

TEST(FlowPlanDiff, StepsAreMatchedByOpShapesAndLine) {
  const SavedPlan a = pipelined_plan();
  SavedPlan b = a;
  const size_t rank = 0;
  graph::Program& program = own_program(b, rank);
  const auto relu = std::find_if(program.steps.begin(), program.steps.end(),
                                 [](const graph::Step& step) { return step.name() == "relu"; });
  ASSERT_NE(relu, program.steps.end());
  relu->as<graph::KernelStep>()->op_call.op = op_table().find("tanh");
  program.steps.front().line += 5;

  const std::string text = tools::difference(a, b);

  EXPECT_TRUE(has(text, "  - relu ((")) << text;
  EXPECT_TRUE(has(text, "  + tanh ((")) << text;
  EXPECT_TRUE(has(text, "1 step differs only in the line or module, for example ")) << text;
  EXPECT_FALSE(has(text, "memory of")) << text;
}

// A plan of one rank for a step in the text form of graphs.
SavedPlan plan_of(const std::string& text) {
  graph::Graph step = graph::parse_graph(text, op_table());
  return {.key = {}, .step = graph::compile_artifact(std::move(step), graph::plain_passes())};
}

const std::string kStep =
    "input %0 : (2, 3) float32 cpu\n"
    "capture %1 : (3, 2) float32 cpu\n"
    "%2 = relu(%0) {} : (2, 3) float32 cpu @F0 in model.act src/train.cpp:7\n"
    "%3 = exp(%1) {} : (3, 2) float32 cpu @U0 src/train.cpp:9\n"
    "write %1 <- %3\n"
    "return %2\n";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

TEST(FlowPlanDiff, TheTextIsThis) {
  const SavedPlan a = plan_of(kStep);

  EXPECT_EQ(tools::difference(a, plan_of(kStep)), "");
  EXPECT_EQ(tools::difference(a, plan_of(replaced(kStep, "relu", "tanh"))),
            "steps of rank 0 (4 -> 4):\n"
            "  - relu ((2, 3) float32) -> (2, 3) float32 at train.cpp:7 in model.act\n"
            "  + tanh ((2, 3) float32) -> (2, 3) float32 at train.cpp:7 in model.act\n");
  EXPECT_EQ(tools::difference(a, plan_of(replaced(kStep, "train.cpp:7", "train.cpp:8"))),
            "steps of rank 0 (4 -> 4):\n"
            "  ~ 1 step differs only in the line or module, for example relu at train.cpp:7 in "
            "model.act -> train.cpp:8 in model.act\n");
}

TEST(FlowPlanDot, TheTextIsThis) {
  const std::string two_stages = replaced(kStep, "@U0", "@U1");
  EXPECT_EQ(tools::dot_of(graph::parse_graph(two_stages, op_table())),
            "digraph plan {\n"
            "  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n"
            "  edge [fontname=\"sans-serif\", fontsize=9];\n"
            "  in0 [label=\"input 0\", shape=ellipse];\n"
            "  outside0 [label=\"tensor from outside 0\", shape=cylinder];\n"
            "  out0 [label=\"output 0\", shape=ellipse];\n"
            "  subgraph cluster_0 {\n"
            "    label=\"stage 0\";\n"
            "    n0 [label=\"relu\\nmodel.act\\ntrain.cpp:7\"];\n"
            "  }\n"
            "  subgraph cluster_1 {\n"
            "    label=\"stage 1\";\n"
            "    n1 [label=\"exp\\ntrain.cpp:9\"];\n"
            "  }\n"
            "  in0 -> n0 [label=\"(2, 3) float32\"];\n"
            "  outside0 -> n1 [label=\"(3, 2) float32\"];\n"
            "  n0 -> out0 [label=\"(2, 3) float32\"];\n"
            "  n1 -> outside0 [style=dashed];\n"
            "}\n");
}

TEST(FlowPlanDot, StepsOfARankAreConnectedByTheirBuffers) {
  const SavedPlan plan = plan_of(kStep);
  EXPECT_EQ(tools::dot_of(*plan.step.programs[0]),
            "digraph plan {\n"
            "  node [shape=box, fontname=\"sans-serif\", fontsize=11];\n"
            "  edge [fontname=\"sans-serif\", fontsize=9];\n"
            "  x0 [label=\"x0\\n(2, 3)\", shape=cylinder];\n"
            "  x1 [label=\"x1\\n(3, 2)\", shape=cylinder];\n"
            "  x2 [label=\"x2\\n(2, 3)\", shape=cylinder];\n"
            "  s0 [label=\"relu\\nmodel.act\\ntrain.cpp:7\"];\n"
            "  s1 [label=\"exp\\ntrain.cpp:9\"];\n"
            "  s2 [label=\"copy_\"];\n"
            "  s3 [label=\"copy_\"];\n"
            "  x0 -> s0 [label=\"(2, 3) float32\"];\n"
            "  x1 -> s1 [label=\"(3, 2) float32\"];\n"
            "  x2 -> s2 [label=\"(2, 3) float32\"];\n"
            "  s0 -> s2 [label=\"(2, 3) float32\"];\n"
            "  s2 -> x2 [style=dashed];\n"
            "  x1 -> s3 [label=\"(3, 2) float32\"];\n"
            "  s1 -> s3 [label=\"(3, 2) float32\"];\n"
            "  s3 -> x1 [style=dashed];\n"
            "}\n");
}

// The length of a longest common subsequence, by a table.
size_t longest(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  std::vector<std::vector<size_t>> table(a.size() + 1, std::vector<size_t>(b.size() + 1, 0));
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      table[i][j] = a[i - 1] == b[j - 1] ? table[i - 1][j - 1] + 1
                                         : std::max(table[i - 1][j], table[i][j - 1]);
    }
  }
  return table[a.size()][b.size()];
}

TEST(SequenceDiff, FindsALongestCommonSubsequence) {
  const uint32_t seed = 7;
  std::mt19937 random(seed);
  for (int round = 0; round < 2000; ++round) {
    const auto letters = static_cast<uint32_t>(1 + random() % 6);
    std::vector<uint32_t> a(random() % 14), b(random() % 14);
    for (auto* list : {&a, &b}) {
      for (uint32_t& element : *list)
        element = static_cast<uint32_t>(random() % letters);
    }

    const auto pairs = common_subsequence(a, b);

    EXPECT_EQ(pairs.size(), longest(a, b)) << "seed " << seed << ", round " << round;
    for (size_t i = 0; i < pairs.size(); ++i) {
      EXPECT_EQ(a[pairs[i].first], b[pairs[i].second]);
      if (i == 0) continue;
      EXPECT_LT(pairs[i - 1].first, pairs[i].first);
      EXPECT_LT(pairs[i - 1].second, pairs[i].second);
    }
  }
}

TEST(Markup, TextsAndUnits) {
  EXPECT_EQ(tools::escaped("a<b & \"c\"'\n"), "a&lt;b &amp; &quot;c&quot;&#39; ");
  EXPECT_EQ(tools::bytes_text(1), "1 byte");
  EXPECT_EQ(tools::bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(tools::time_text(0.5), "0.50 us");
  EXPECT_EQ(tools::time_text(12345), "12.35 ms");
  EXPECT_EQ(tools::share_text(1, 0), "0 %");
}

}  // namespace
}  // namespace flow
