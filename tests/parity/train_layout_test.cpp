// flow-conform train on several ranks gives what it gives on one.
#include "tools/flow_conform/train_layout.h"

#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"
#include "tools/flow_conform/train_command.h"
#include "tools/flow_conform/train_job.h"

namespace flow::parity {
namespace {

constexpr int64_t kBatches = 2, kRows = 6, kInputs = 4, kHidden = 8, kClasses = 3;

// A folder with a spec and its files, for the time of a test.
class Spec {
 public:
  Spec() {
    manual_seed(3);
    nn::save_safetensors(folder_.file("init.safetensors"),
                         models::Mlp({kInputs, kHidden, kClasses}).state_dict());
    nn::save_safetensors(
        folder_.file("data.safetensors"),
        {{"x", randn({kBatches, kRows, kInputs})}, {"y", randint(0, kClasses, {kBatches, kRows})}});
    std::ofstream(path()) << R"({"model": {"kind": "mlp", "sizes": [4, 8, 3]},
        "optimizer": "SGD", "optimizer_args": {"lr": 0.5, "momentum": 0.9},
        "init": "init.safetensors", "data": "data.safetensors", "steps": 5})";
  }

  // Of another model, whose weights are `init`.
  Spec(const std::string& model, const nn::StateDict& init, const Tensor& x, const Tensor& y) {
    nn::save_safetensors(folder_.file("init.safetensors"), init);
    nn::save_safetensors(folder_.file("data.safetensors"), {{"x", x}, {"y", y}});
    std::ofstream(path()) << R"({"model": )" << model << R"(, "optimizer": "AdamW",
        "optimizer_args": {"lr": 0.01, "weight_decay": 0.1},
        "init": "init.safetensors", "data": "data.safetensors", "steps": 3})";
  }

  std::string path() const { return folder_.file("run.json"); }

  std::string folder_of(const std::string& layout) const { return folder_.file("out_" + layout); }

  conform::TrainOptions options(const std::string& layout) const {
    conform::TrainOptions options;
    options.run.floating = float64;
    options.spec = path();
    options.folder = folder_of(layout);
    options.layout = layout;
    return options;
  }

  // Losses and norms of gradients, in turn.
  std::vector<double> train(const std::string& layout, int64_t ranks) const {
    const conform::TrainOptions how = options(layout);
    run_ranks(ranks, [&] { EXPECT_EQ(conform::run_training(how), conform::kDone); });
    return log_of(layout);
  }

  // Through job functions, from a thread that is no rank.
  conform::ExitCode train_job(const std::string& layout) const {
    conform::ExitCode code = conform::kFailed;
    std::thread([&] { code = conform::run_training(options(layout)); }).join();
    return code;
  }

  std::vector<double> log_of(const std::string& layout) const {
    std::vector<double> numbers;
    std::ifstream log(folder_of(layout) + "/log.jsonl");
    for (std::string line; std::getline(log, line);) {
      const auto entry = conform::Json::parse(line);
      numbers.push_back(entry["loss"]);
      numbers.push_back(entry["grad_norm"]);
    }
    return numbers;
  }

 private:
  const TempFolder folder_;
};

TEST(TrainLayout, EveryOneGivesTheLossesOfOneRank) {
  const Spec spec;
  const std::vector<double> whole = spec.train("", 1);
  ASSERT_EQ(whole.size(), 10U);

  for (const auto& [layout, ranks] : {std::pair<std::string, int64_t>{"dp2", 2},
                                      {"tp2", 2},
                                      {"dp2+tp2", 4},
                                      {"dp2+zero1", 2},
                                      {"ddp2", 2},
                                      {"ddp3", 3}}) {
    const std::vector<double> parts = spec.train(layout, ranks);
    ASSERT_EQ(parts.size(), whole.size()) << layout;
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(parts[i], whole[i], 1e-12) << layout << ' ' << i;
  }
}

void expect_near(const std::string& got, const std::string& want) {
  const auto mine = load_arrays(got), theirs = load_arrays(want);
  ASSERT_EQ(mine.size(), theirs.size()) << got;
  for (const auto& [name, array] : theirs) {
    const auto a = mine.at(name).to_vector<double>(), b = array.to_vector<double>();
    ASSERT_EQ(mine.at(name).shape(), array.shape()) << name;
    double distance = 0, norm = 0;
    for (size_t i = 0; i < b.size(); ++i) {
      distance += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
    EXPECT_LE(std::sqrt(distance), 1e-12 + 1e-9 * std::sqrt(norm)) << got << ' ' << name;
  }
}

void expect_jobs_equal_one_rank(const Spec& spec, const std::vector<std::string>& layouts) {
  const std::vector<double> whole = spec.train("", 1);
  ASSERT_FALSE(whole.empty());
  for (const std::string& layout : layouts) {
    ASSERT_EQ(spec.train_job(layout), conform::kDone) << layout;
    const std::vector<double> numbers = spec.log_of(layout);
    ASSERT_EQ(numbers.size(), whole.size()) << layout;
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(numbers[i], whole[i], 1e-11) << layout << ' ' << i;
    for (const char* file : {"/grad_step0.safetensors", "/final.safetensors"})
      expect_near(spec.folder_of(layout) + file, spec.folder_of("") + file);
  }
}

TEST(TrainJob, AnMlpIsThatOfOneRankInBothViews) {
  expect_jobs_equal_one_rank(Spec(), {"job1", "job2", "job4", "mirrored2", "mirrored3"});
}

TEST(TrainJob, ALenetIsThatOfOneRankInBothViews) {
  manual_seed(4);
  const Spec spec(R"({"kind": "lenet"})", models::Lenet().state_dict(), randn({1, 4, 1, 28, 28}),
                  randint(0, 10, {1, 4}));
  expect_jobs_equal_one_rank(spec, {"job2", "mirrored2"});
}

TEST(TrainJob, AGptIsThatOfOneRankInBothViews) {
  manual_seed(6);
  const models::Gpt model(
      {.vocab_size = 7, .block_size = 5, .n_layer = 1, .n_head = 2, .n_embd = 8, .tied = false});
  const Spec spec(
      R"({"kind": "gpt", "layers": 1, "d": 8, "heads": 2, "T": 5, "vocab": 7, "tied": false})",
      model.state_dict(), randint(0, 7, {2, 4, 5}), randint(0, 7, {2, 4, 5}));
  expect_jobs_equal_one_rank(spec, {"job2", "mirrored2"});
}

TEST(TrainJob, WhatJobsCannotDoIsSaid) {
  const Spec spec;
  EXPECT_EQ(spec.train_job("mirrored4"), conform::kNotSupported) << "6 rows";
  EXPECT_FALSE(conform::job_layout("job2+amp"));
  EXPECT_FALSE(conform::job_layout("job0"));
  EXPECT_FALSE(conform::job_layout("mirrored"));
  EXPECT_EQ(conform::job_layout("mirrored12")->num_devices, 12);
  run_ranks(1,
            [&] { EXPECT_THROW(conform::run_training(spec.options("job1")), conform::BadSpec); });
}

TEST(TrainLayout, WhatDoesNotGoTogetherIsRefused) {
  run_ranks(2, [] {
    EXPECT_THROW(conform::TrainLayout("ddp2+zero1"), conform::NotSupported);
    EXPECT_THROW(conform::TrainLayout("sp2"), conform::NotSupported);
    EXPECT_THROW(conform::TrainLayout("recompute"), conform::BadSpec);
    EXPECT_THROW(conform::TrainLayout("dp3"), conform::BadSpec);
    EXPECT_THROW(conform::TrainLayout("ddp3"), conform::BadSpec);
  });
}

}  // namespace
}  // namespace flow::parity
