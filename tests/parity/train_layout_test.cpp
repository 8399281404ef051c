// flow-conform train on several ranks gives what it gives on one.
#include "tools/flow_conform/train_layout.h"

#include <filesystem>
#include <fstream>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tools/flow_conform/train_command.h"

namespace flow::parity {
namespace {

constexpr int64_t kBatches = 2, kRows = 6, kInputs = 4, kHidden = 8, kClasses = 3;

// A folder with a spec and its files, for the time of a test.
class Spec {
 public:
  Spec() : folder_(testing::TempDir() + "train_layout_XXXXXX") {
    EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    manual_seed(3);
    nn::save_safetensors(folder_ + "/init.safetensors",
                         models::Mlp({kInputs, kHidden, kClasses}).state_dict());
    nn::save_safetensors(
        folder_ + "/data.safetensors",
        {{"x", randn({kBatches, kRows, kInputs})}, {"y", randint(0, kClasses, {kBatches, kRows})}});
    std::ofstream(path()) << R"({"model": {"kind": "mlp", "sizes": [4, 8, 3]},
        "optimizer": "SGD", "optimizer_args": {"lr": 0.5, "momentum": 0.9},
        "init": "init.safetensors", "data": "data.safetensors", "steps": 5})";
  }

  ~Spec() { std::filesystem::remove_all(folder_); }

  Spec(const Spec&) = delete;
  Spec& operator=(const Spec&) = delete;

  std::string path() const { return folder_ + "/run.json"; }

  // Losses and norms of gradients, in turn.
  std::vector<double> train(const std::string& layout, int64_t ranks) const {
    const std::string out = folder_ + "/out_" + layout;
    conform::TrainOptions options;
    options.run.floating = float64;
    options.spec = path();
    options.folder = out;
    options.layout = layout;
    run_ranks(ranks, [&] { EXPECT_EQ(conform::run_training(options), conform::kDone); });
    std::vector<double> numbers;
    std::ifstream log(out + "/log.jsonl");
    for (std::string line; std::getline(log, line);) {
      const auto entry = conform::Json::parse(line);
      numbers.push_back(entry["loss"]);
      numbers.push_back(entry["grad_norm"]);
    }
    return numbers;
  }

 private:
  std::string folder_;
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
