// flow-conform train --graph: the losses of PyTorch from compiled steps, on one rank and on
// several.
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "tests/parity/golden_training.h"
#include "tests/support/temp_folder.h"
#include "tools/flow_conform/train_command.h"

namespace flow::parity {
namespace {

constexpr int64_t kAllSteps = 20;

// A folder with a golden training as flow-conform reads it, for the time of a test.
class GoldenRun {
 public:
  explicit GoldenRun(const std::string& id) : spec_(training_spec(id)) {
    nn::save_safetensors(folder_.file("init.safetensors"), make_trained_model(spec_).state_dict());
    const auto [x, y] = make_training_data(spec_);
    nn::save_safetensors(folder_.file("data.safetensors"), {{"x", x}, {"y", y}});
    const Json run = {{"model", spec_["model"]},         {"optimizer", spec_["optimizer"]},
                      {"optimizer_args", spec_["args"]}, {"init", "init.safetensors"},
                      {"data", "data.safetensors"},      {"steps", kAllSteps}};
    std::ofstream(folder_.file("run.json")) << run;
  }

  std::string out() const { return folder_.file("out"); }

  // A file beside the spec.
  std::string add(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.file(name)) << text;
    return folder_.file(name);
  }

  Json summary() const {
    std::ifstream file(out() + "/summary.json");
    return Json::parse(file);
  }

  conform::ExitCode run(conform::TrainOptions options, int64_t ranks) const {
    options.run.floating = float64;
    options.spec = folder_.file("run.json");
    options.folder = out();
    conform::ExitCode code = conform::kDone;
    run_ranks(ranks, [&] {
      const conform::ExitCode own = conform::run_training(options);
      if (env::rank() == 0) code = own;
    });
    return code;
  }

  void expect_golden(const std::string& layout, int64_t ranks, int64_t steps = kAllSteps) const {
    expect_golden_run({.layout = layout, .steps = steps, .in_graph = true}, ranks);
  }

  void expect_golden_run(const conform::TrainOptions& options, int64_t ranks) const {
    SCOPED_TRACE(str(spec_["id"], " ", options.layout, " ", options.schedule));
    const int64_t steps = options.steps < 0 ? kAllSteps : options.steps;
    ASSERT_EQ(run(options, ranks), conform::kDone);
    std::ifstream log(out() + "/log.jsonl");
    int64_t step = 0;
    for (std::string line; std::getline(log, line); ++step) {
      const Json entry = Json::parse(line);
      const auto at = static_cast<size_t>(step);
      EXPECT_PRED2(is_golden, entry["loss"], spec_["losses"][at]) << step;
      EXPECT_PRED2(is_golden, entry["grad_norm"], spec_["grad_norms"][at]) << step;
    }
    EXPECT_EQ(step, steps);
  }

 private:
  Json spec_;
  const TempFolder folder_;
};

TEST(GraphTraining, MlpFollowsPyTorch) {
  const GoldenRun mlp("mlp");
  mlp.expect_golden("", 1);
  mlp.expect_golden("dp2", 2);
  mlp.expect_golden("tp2", 2);
  mlp.expect_golden("dp2+tp2", 4);
  for (const char* zero : {"dp2+zero1", "dp2+zero2", "dp2+zero3"})
    mlp.expect_golden(zero, 2);
  mlp.expect_golden("pp3", 3);
}

TEST(GraphTraining, LenetFollowsPyTorch) {
  constexpr int64_t kSomeSteps = 3;
  const GoldenRun lenet("lenet");
  lenet.expect_golden("", 1);
  lenet.expect_golden("dp2", 2, kSomeSteps);
  lenet.expect_golden("tp2", 2, kSomeSteps);
  lenet.expect_golden("dp2+tp2", 4, kSomeSteps);
}

TEST(GraphTraining, GptFollowsPyTorch) {
  for (const char* id : {"gpt", "gpt_tied"}) {
    const GoldenRun gpt(id);
    gpt.expect_golden("", 1);
    gpt.expect_golden("recompute", 1);
    gpt.expect_golden("dp2", 2);
    gpt.expect_golden("tp2", 2);
    gpt.expect_golden("dp2+tp2", 4);
    gpt.expect_golden("pp2", 2);
    gpt.expect_golden("pp2+dp2+zero1+recompute", 4);
    gpt.expect_golden("pp2+dp2+zero3+recompute", 4);
  }
}

TEST(GraphTraining, MobileNetV2FollowsPyTorch) {
  const GoldenRun mobilenet("mobilenet_v2");
  mobilenet.expect_golden("", 1);
  mobilenet.expect_golden("recompute", 1);
  mobilenet.expect_golden("dp2", 2);
  mobilenet.expect_golden("tp2", 2);
  mobilenet.expect_golden("dp2+tp2", 4);
  mobilenet.expect_golden("pp2", 2);
}

TEST(GraphTraining, MobileNetV2InMicroBatchesTrainsAlikeInAPipeline) {
  const GoldenRun mobilenet("mobilenet_v2");
  ASSERT_EQ(mobilenet.run({.micro_batches = 2, .steps = 3}, 1), conform::kDone);
  const auto wanted = nn::load_safetensors(mobilenet.out() + "/final.safetensors");
  ASSERT_EQ(
      mobilenet.run({.layout = "pp2", .schedule = "zb-h1", .micro_batches = 2, .steps = 3}, 2),
      conform::kDone);
  for (const auto& [name, value] : nn::load_safetensors(mobilenet.out() + "/final.safetensors")) {
    EXPECT_LE(relative_distance(value.to_vector<double>(), wanted.at(name).to_vector<double>()),
              1e-9)
        << name;
  }
}

TEST(GraphTraining, PipelinesFollowPyTorchUnderEverySchedule) {
  const GoldenRun gpt("gpt");
  for (const char* schedule : {"", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"}) {
    gpt.expect_golden_run({.layout = "pp2", .schedule = schedule, .micro_batches = 2}, 2);
    const Json bubble = gpt.summary()["bubble"];
    for (const char* share : {"predicted", "measured"}) {
      EXPECT_GT(bubble[share], 0) << schedule;
      EXPECT_LT(bubble[share], 1) << schedule;
    }
  }
  const std::string table = gpt.add("order.txt", "0F0 0F1 0B1 0B0\n1F0 1F1 1B1 1B0\n");
  gpt.expect_golden_run({.layout = "pp2", .schedule = table}, 2);
  for (const char* schedule : {"zb-h1", "zb-v"}) {
    GoldenRun("gpt_tied")
        .expect_golden_run({.layout = "pp2", .schedule = schedule, .micro_batches = 2}, 2);
  }
}

TEST(GraphTraining, MicroBatchesOfUnevenSizesFollowPyTorch) {
  constexpr int64_t kParts = 3, kSomeSteps = 3;
  GoldenRun("mlp").expect_golden_run({.layout = "dp2+zero1", .micro_batches = kParts}, 2);
  GoldenRun("gpt").expect_golden_run({.micro_batches = kParts}, 1);
  GoldenRun("lenet").expect_golden_run({.micro_batches = kParts, .steps = kSomeSteps}, 1);
  GoldenRun("mlp").expect_golden_run({.layout = "pp2+tp2", .micro_batches = kParts}, 4);
}

TEST(GraphTraining, ReplicasFollowPyTorch) {
  GoldenRun("mlp").expect_golden("ddp2", 2);
  GoldenRun("mlp").expect_golden_run({.layout = "ddp2", .micro_batches = 2}, 2);
}

TEST(GraphTraining, GradientsAndWeightsAreThoseOfEagerSteps) {
  const GoldenRun gpt("gpt");
  ASSERT_EQ(gpt.run({.steps = 3}, 1), conform::kDone);
  const auto gradients = nn::load_safetensors(gpt.out() + "/grad_step0.safetensors");
  const auto weights = nn::load_safetensors(gpt.out() + "/final.safetensors");

  ASSERT_EQ(gpt.run({.layout = "pp2+tp2", .micro_batches = 2, .steps = 3}, 4), conform::kDone);
  for (const auto& [file, wanted] : {std::pair("grad_step0", gradients), {"final", weights}}) {
    const auto got = nn::load_safetensors(str(gpt.out(), '/', file, ".safetensors"));
    ASSERT_EQ(got.size(), wanted.size());
    for (const auto& [name, value] : wanted) {
      EXPECT_LE(relative_distance(got.at(name).to_vector<double>(), value.to_vector<double>()),
                1e-9)
          << file << ' ' << name;
    }
  }
}

TEST(GraphTraining, SummaryStatesThePeakOfEveryRank) {
  const GoldenRun mlp("mlp");
  ASSERT_EQ(mlp.run({.layout = "dp2", .steps = 2, .in_graph = true}, 2), conform::kDone);
  const Json summary = mlp.summary();

  ASSERT_EQ(summary["memory"].size(), 2U);
  EXPECT_EQ(summary["memory"][1]["rank"], 1);
  for (const Json& rank : summary["memory"]) {
    EXPECT_GT(rank["stated_peak_bytes"], 10'000);
    EXPECT_EQ(rank["measured_peak_bytes"], rank["stated_peak_bytes"]);
  }
  ASSERT_FALSE(summary["boxing"].empty());
  EXPECT_GT(summary["boxing"][0]["predicted_us"], 0);
  EXPECT_TRUE(summary["bubble"].contains("measured"));
}

TEST(GraphTraining, WhatGraphsLackIsNotSupported) {
  const GoldenRun mlp("mlp");
  EXPECT_EQ(mlp.run({.layout = "dp2+zero4", .in_graph = true}, 2), conform::kNotSupported);
  EXPECT_EQ(mlp.run({.layout = "dp2+zero2"}, 2), conform::kNotSupported) << "eagerly";
  EXPECT_EQ(mlp.run({.schedule = "no_such_schedule"}, 1), conform::kNotSupported);
  EXPECT_EQ(mlp.run({.layout = "pp4"}, 4), conform::kNotSupported) << "more stages than layers";
}

}  // namespace
}  // namespace flow::parity
