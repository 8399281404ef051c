// Timelines that graphs write of their runs.
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/run/compiled_step.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "pipeline/timeline_file.h"
#include "tests/support/stage_list.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

using pipeline::TimelineEvent;
using pipeline::TimelineFile;
using Kind = TimelineEvent::Kind;

const Placement k0("cpu", {0}), k1("cpu", {1}), k01("cpu", {0, 1});

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer, const pipeline::ScheduleRule& rule) : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(4).set_schedule(rule);
  }

  using GraphBase::config;

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

// The losses of `steps` steps of a pipeline of two ranks. The first rank writes the predicted
// timeline to the file `predicted`, if that has a name.
std::vector<double> train(const pipeline::ScheduleRule& rule, int steps,
                          const std::function<void(Train& graph)>& prepare,
                          const std::string& predicted = "") {
  manual_seed(5);
  models::Mlp model({6, 8, 3});
  place_stages(model.children(), {k0, k1});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer, rule);
  prepare(graph);
  const Tensor x = randn({8, 6}, {.placement = k0, .sbp = sbp::broadcast});
  const Tensor y = randint(0, 3, {8}, {.dtype = int64, .placement = k1, .sbp = sbp::broadcast});
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(graph(x, y).item<double>());
  const nn::CompiledGraph& compiled = graph.compile(x, y);
  if (!predicted.empty() && env::rank() == 0) compiled.write_predicted_timeline(predicted);
  return losses;
}

TimelineFile read(const std::string& path) {
  return pipeline::parse_timeline(nn::read_text(path), path);
}

TEST(GraphTimeline, AllRanksAreInOneFileByOneClock) {
  const TempFolder folder;
  const std::string path = folder.file("measured.json");
  run_ranks(2, [&] {
    const auto plain = train(pipeline::zb_h1(), 6, [](Train&) {});
    const auto timed = train(pipeline::zb_h1(), 6, [&](Train& graph) {
      graph.config().set_timeline(path, {.skip = 1, .runs = 3});
    });
    EXPECT_EQ(timed, plain);
  });
  const TimelineFile file = read(path);
  EXPECT_TRUE(file.is_measured);
  EXPECT_EQ(file.schedule_name, "zb-h1");
  EXPECT_EQ(file.schedule, pipeline::make_schedule(pipeline::zb_h1(), 2, 4));
  EXPECT_EQ(file.ranks, (std::vector<std::vector<int64_t>>{{0}, {1}}));
  ASSERT_EQ(file.costs.size(), 2U);
  EXPECT_GT(file.costs[0].weight, 0);

  std::map<std::pair<int64_t, pipeline::Action>, TimelineEvent> actions;
  int64_t messages = 0, phases = 0;
  for (const TimelineEvent& event : file.events) {
    if (event.kind == Kind::kAction) actions[{event.run, event.action}] = event;
    messages += event.kind == Kind::kTransfer ? event.bytes : 0;
    phases += event.kind == Kind::kPhase ? 1 : 0;
  }
  ASSERT_EQ(actions.size(), 3U * 24);
  // Two rows of the 8 hidden values go there, and their gradients back, for 4 micro-batches.
  EXPECT_EQ(messages, 3 * 2 * 4 * int64_t{2 * 8 * 4});
  EXPECT_GE(phases, 3 * 2);
  using pipeline::ActionKind;
  for (int64_t run = 0; run < 3; ++run) {
    for (int64_t m = 0; m < 4; ++m) {
      const auto start = [&](int64_t stage, ActionKind kind) {
        return actions.at({run, {stage, kind, m}}).start_us;
      };
      EXPECT_LT(start(0, ActionKind::kForward), start(1, ActionKind::kForward));
      EXPECT_LT(start(1, ActionKind::kForward), start(1, ActionKind::kBackward));
      EXPECT_LT(start(1, ActionKind::kBackward), start(0, ActionKind::kBackward));
      EXPECT_LT(start(0, ActionKind::kBackward), start(0, ActionKind::kWeight));
      EXPECT_GE(actions.at({run, {0, ActionKind::kForward, m}}).predicted_us, 0);
    }
  }
}

TEST(GraphTimeline, KernelsAreThereWhereAsked) {
  const TempFolder folder;
  const std::string path = folder.file("kernels.json");
  models::Mlp model({4, 3});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer, pipeline::gpipe());
  graph.config().set_micro_batches(1).set_timeline(path, {.skip = 0, .runs = 1, .kernels = true});
  const Tensor x = randn({2, 4}), y = randint(0, 3, {2}, {.dtype = int64});
  graph(x, y);
  EXPECT_TRUE(graph.compile(x, y).plan().last_steps().empty()) << "off again";
  const TimelineFile file = read(path);
  ASSERT_GT(file.events.size(), 1U);
  EXPECT_EQ(file.events[0].kind, Kind::kPhase);
  EXPECT_EQ(file.events[0].name, "step");
  EXPECT_EQ(file.events[1].kind, Kind::kKernel);
  EXPECT_EQ(file.events[1].name, "linear");
}

// Training steps and those of a smaller batch.
TEST(GraphTimeline, PlansThatTakeTurnsCountTheirOwnRuns) {
  const TempFolder folder;
  const std::string path = folder.file("turns.json");
  models::Mlp model({4, 3});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer, pipeline::gpipe());
  graph.config().set_micro_batches(1).set_timeline(path, {.skip = 1, .runs = 2});
  const Tensor x = randn({2, 4}), y = randint(0, 3, {2}, {.dtype = int64});
  const Tensor row = x.narrow(0, 0, 1), label = y.narrow(0, 0, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(std::filesystem::exists(path));
    graph(row, label);
    if (i < 2) graph(x, y);
  }
  EXPECT_EQ(read(path).events.back().run, 1);
  EXPECT_TRUE(graph.compile(x, y).plan().last_steps().empty()) << "off again";
  EXPECT_TRUE(graph.compile(row, label).plan().last_steps().empty()) << "off again";
}

// A sum over micro-batches begins with a copy in the first and goes on with additions in the
// others, and a scaler that has found an infinity leaves the update out.
TEST(GraphTimeline, KernelsThatWereLeftOutAreNotThere) {
  const TempFolder folder;
  const std::string path = folder.file("left_out.json");
  models::Mlp model({4, 3});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer, pipeline::gpipe());
  graph.config().enable_amp(bfloat16, {.init_scale = 1});
  graph.config().set_timeline(path, {.skip = 0, .runs = 1, .kernels = true});
  Tensor x = randn({8, 4});
  x.index({0, 0}).fill_(INFINITY);
  const Tensor y = randint(0, 3, {8}, {.dtype = int64});
  graph(x, y);
  std::map<std::string, int64_t> left_out, want, found;
  const graph::Program& program = graph.compile(x, y).plan().program();
  const graph::ProgramRuns runs(program);
  for (const graph::BlockRun& run : runs.runs()) {
    const graph::Block& block = runs.block_of(run);
    for (size_t i = block.first_step; i < block.end_step; ++i) {
      const graph::Step& step = program.steps[i];
      const bool runs_now = takes_turn(step.turn, run) && step.guard == graph::kNoBuffer;
      ++(runs_now ? want : left_out)[std::string(step.name())];
    }
  }
  EXPECT_GT(left_out["copy_"], 0);
  EXPECT_GT(left_out["add"], 0);
  EXPECT_GT(left_out["sgd_update"], 0) << testing::PrintToString(left_out);
  for (const TimelineEvent& event : read(path).events) {
    if (event.kind == Kind::kKernel) ++found[event.name];
  }
  EXPECT_EQ(found, want);
}

// A W has no messages within it. ZeRO reduces its gradients there.
TEST(GraphTimeline, WaitsForCollectivesInTheBackgroundAreTimeInCollectives) {
  const TempFolder folder;
  const std::string path = folder.file("background.json");
  run_ranks(4, [&] {
    const Placement on_first("cpu", {0, 1}), on_last("cpu", {2, 3});
    models::Mlp model({6, 8, 3});
    place_stages(model.children(), {on_first, on_last});
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Train graph(model, optimizer, pipeline::zb_h1());
    graph.config().enable_zero({.stage = 2});
    graph.config().set_overlap({.least_kb = 0, .least_hidden_us = 0, .most_memory_share = 1});
    graph.config().set_timeline(path, {.skip = 0, .runs = 1, .kernels = true});
    graph(randn({8, 6}, {.placement = on_first, .sbp = sbp::split(0)}),
          randint(0, 3, {8}, {.dtype = int64, .placement = on_last, .sbp = sbp::split(0)}));
  });
  int64_t waits = 0;
  const TimelineFile file = read(path);
  for (const TimelineEvent& action : file.events) {
    if (action.kind != Kind::kAction || action.action.kind != pipeline::ActionKind::kWeight)
      continue;
    EXPECT_EQ(action.waiting_us, 0) << to_string(action.action);
    double waited = 0;
    for (const TimelineEvent& kernel : file.events) {
      // A kernel may begin at the instant at which the action ends, so its middle decides.
      const double middle = kernel.start_us + kernel.duration_us / 2;
      const bool is_within = kernel.rank == action.rank && middle > action.start_us &&
                             middle < action.start_us + action.duration_us;
      if (kernel.kind != Kind::kKernel || kernel.name != "wait" || !is_within) continue;
      waited += kernel.duration_us;
      ++waits;
    }
    EXPECT_LE(waited, action.collective_us) << to_string(action.action);
  }
  EXPECT_GT(waits, 0);
}

TEST(GraphTimeline, PredictionsAreOfTheSameFormat) {
  const TempFolder folder;
  const std::string path = folder.file("predicted.json");
  run_ranks(2, [&] {
    train(
        pipeline::one_f_one_b(), 0, [](Train&) {}, path);
  });
  const TimelineFile file = read(path);
  EXPECT_FALSE(file.is_measured);
  EXPECT_EQ(file.events.size(), 16U);
}

// The schedule's two workers are the same rank, which does one action at a time.
TEST(GraphTimeline, ARankOfSeveralStagesIsPredictedToDoOneActionAtATime) {
  const TempFolder folder;
  const std::string path = folder.file("one_rank.json");
  models::Mlp model({6, 8, 3});
  nn::graph_module(model.children()[0].second).set_stage(0);
  nn::graph_module(model.children()[1].second).set_stage(1);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer, pipeline::one_f_one_b());
  const nn::CompiledGraph& compiled =
      graph.compile(randn({8, 6}), randint(0, 3, {8}, {.dtype = int64}));
  EXPECT_NE(compiled.explain().find("2 stages, schedule 1f1b on 1 workers: predicted bubble 0 %"),
            std::string::npos)
      << compiled.explain();
  compiled.write_predicted_timeline(path);
  const TimelineFile file = read(path);
  EXPECT_EQ(file.schedule.actions.size(), 1U);
  ASSERT_EQ(file.events.size(), 16U);
  double end = 0;
  std::vector<std::string> predicted, program;
  for (const TimelineEvent& event : file.events) {
    EXPECT_GE(event.start_us, end - 1e-9) << to_string(event.action);
    end = event.start_us + event.duration_us;
    predicted.push_back(to_string(event.action));
  }
  for (const graph::ProgramPart& part : compiled.plan().program().parts) {
    if (part.name != "before" && part.name != "after") program.push_back(part.name);
  }
  EXPECT_EQ(predicted, program);
}

// Only one rank writes the file; the step counts on all.
TEST(GraphTimeline, AFileThatCannotBeWrittenLosesNoStep) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    models::Mlp model({4, 3});
    model.to_global(both, sbp::broadcast);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    optim::lr_scheduler::StepLR schedule(optimizer, {.step_size = 1, .gamma = 0.5});

    struct Step : nn::Graph<Step> {
      models::Mlp model;

      explicit Step(models::Mlp m) : model(m) {}

      using GraphBase::add_optimizer;
      using GraphBase::config;

      Tensor build(const Tensor& x) {
        Tensor loss = model(x).square().mean();
        loss.backward();
        return loss;
      }
    };

    Step graph(model);
    graph.add_optimizer(optimizer, {.lr_scheduler = &schedule});
    graph.config().set_timeline("/nowhere/x.json", {.skip = 0, .runs = 1});
    const Tensor x = ones({2, 4}, {.placement = both, .sbp = sbp::split(0)});
    if (env::rank() == 0) {
      EXPECT_THROW(graph(x), IoError);
    } else {
      graph(x);
    }
    EXPECT_EQ(optimizer.lr(), 0.05);
    graph(x);  // ranks whose steps differ would raise
    EXPECT_EQ(optimizer.lr(), 0.025);
  });
}

TEST(GraphTimeline, WhatCannotBeMeasuredIsRefused) {
  models::Mlp model({4, 3});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer, pipeline::gpipe());
  EXPECT_THROW(graph.config().set_timeline("x.json", {.runs = 0}), InvalidArgument);
  graph.config().set_micro_batches(1);
  const Tensor x = randn({2, 4}), y = randint(0, 3, {2}, {.dtype = int64});
  EXPECT_THROW(graph.compile(x, y).write_predicted_timeline("x.json"), InvalidArgument);
  graph.config().set_timeline("/nowhere/x.json", {.skip = 0, .runs = 1});
  EXPECT_THROW(graph(x, y), IoError);

  run_ranks(2, [] {
    models::Mlp own({4, 3});
    optim::SGD sgd(own.parameters(), {.lr = 0.1});
    Train local(own, sgd, pipeline::gpipe());
    local.config().set_micro_batches(1).set_timeline("x.json");
    EXPECT_THROW(local(randn({2, 4}), randint(0, 3, {2}, {.dtype = int64})), Unsupported);
  });
}

}  // namespace
}  // namespace flow
