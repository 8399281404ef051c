// FLOW_TIMELINE: what ranks record of eager calls, compiled steps and communication.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "boxing/ranks/run_ranks.h"
#include "core/timeline/merge.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/stage_list.h"

namespace flow {
namespace {

using Json = nlohmann::json;

const Placement k01("cpu", {0, 1}), k0("cpu", {0}), k1("cpu", {1});

// Runs on two thread ranks with FLOW_TIMELINE. All tests of the process share the files, because
// those belong to the process; each asks for the events that its own lines made.
class RecordedRun : public testing::Test {
 protected:
  RecordedRun() : folder_(testing::TempDir() + "recorded_run_" + std::to_string(getpid())) {}

  static void TearDownTestSuite() {
    std::filesystem::remove_all(testing::TempDir() + "recorded_run_" + std::to_string(getpid()));
  }

  void run(const std::function<void()>& body) {
    setenv("FLOW_TIMELINE", folder_.c_str(), 1);
    run_ranks(2, body);
    unsetenv("FLOW_TIMELINE");
    const std::string path = timeline::merged_file(folder_);
    const timeline::MergeResult result = timeline::merge_timelines(folder_, path);
    ASSERT_EQ(result.error, "");
    EXPECT_EQ(result.num_ranks, 2);
    all_ = Json::parse(nn::read_text(path))["traceEvents"];
  }

  // The events of a rank with this category and name, in the order of time.
  std::vector<Json> find(const std::string& category, const std::string& name, int rank) const {
    std::vector<Json> found;
    for (const Json& event : all_) {
      if (event.value("cat", "") == category && event["name"] == name && event["pid"] == rank)
        found.push_back(event);
    }
    return found;
  }

  // The name of the lane of an event.
  std::string lane_of(const Json& event) const {
    for (const Json& it : all_) {
      if (it["name"] == "thread_name" && it["pid"] == event["pid"] && it["tid"] == event["tid"])
        return it["args"]["name"];
    }
    return {};
  }

  static bool encloses(const Json& outer, const Json& inner) {
    const double begin = outer["ts"], end = begin + outer["dur"].get<double>();
    return begin <= inner["ts"].get<double>() &&
           inner["ts"].get<double>() + inner["dur"].get<double>() <= end + 1e-3;
  }

  std::string folder_;
  Json all_;
};

TEST_F(RecordedRun, EagerCallsHaveTheirLineModuleAndBytes) {
  run([] {
    nn::Linear layer(4, 3);
    const profiler::Scope scope("one step");
    layer(ones({2, 4})).exp();
  });
  for (const int rank : {0, 1}) {
    const auto exps = find("op", "exp", rank);
    ASSERT_EQ(exps.size(), 1U);
    EXPECT_EQ(exps[0]["args"]["bytes"], 2 * 3 * 4);
    EXPECT_TRUE(exps[0]["args"]["site"].get<std::string>().starts_with("timeline_test.cpp:"));
    EXPECT_EQ(lane_of(exps[0]), "program");
    const auto scopes = find("scope", "one step", rank);
    ASSERT_EQ(scopes.size(), 1U);
    EXPECT_TRUE(encloses(scopes[0], exps[0]));
  }
}

TEST_F(RecordedRun, AProfileRecordsTheSameCallsAsWithoutATimeline) {
  run([] {
    const Tensor x = ones({2, 4});
    x.sinh();
    profiler::Profile profile;
    x.cosh();
    profile.stop();
    x.sinh();
    EXPECT_EQ(profile.events().size(), 1U);
  });
  EXPECT_EQ(find("op", "sinh", 0).size(), 2U);
  EXPECT_EQ(find("op", "cosh", 0).size(), 1U);
}

TEST_F(RecordedRun, RedistributionsShowTheirCollectiveBytesAndLayouts) {
  run([] {
    const Tensor x = ones({6, 4}, {.placement = k01, .sbp = sbp::split(0)});
    x.to_global({.placement = k01, .sbp = sbp::broadcast});
  });
  const auto moves = find("op", "redistribute", 1);
  // Ranks that share memory read each other's parts.
  const auto gathers = find("collective", "exchange", 1);
  const auto gather = std::find_if(gathers.begin(), gathers.end(), [](const Json& event) {
    return event["args"].value("what", "").find("(6, 4)") != std::string::npos;
  });
  ASSERT_NE(gather, gathers.end());
  EXPECT_EQ((*gather)["args"]["bytes"], 3 * 4 * 4);  // what the rank shows to the other
  EXPECT_NE((*gather)["args"]["what"].get<std::string>().find("from S(0) on cpu:(0, 1) to B"),
            std::string::npos);
  EXPECT_TRUE(std::any_of(moves.begin(), moves.end(),
                          [&](const Json& move) { return encloses(move, *gather); }));
}

TEST_F(RecordedRun, BucketsOfGradientsAreOnTheCommunicationThread) {
  run([] {
    // Smaller buckets and the last one are summed by the rank's own thread.
    nn::parallel::DistributedDataParallel ddp(models::Mlp({256, 256, 256}), {.bucket_mb = 0.25});
    ddp(ones({2, 256})).sum().backward();
  });
  bool is_there = false;
  for (const Json& event : find("collective", "all_reduce", 0))
    is_there = is_there || lane_of(event) == "communication thread";
  EXPECT_TRUE(is_there);
}

struct Staged : nn::Graph<Staged> {
  models::Mlp model;

  Staged(models::Mlp m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(2).set_schedule(pipeline::one_f_one_b());
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

TEST_F(RecordedRun, CompiledStepsShowPartsKernelsAndMessages) {
  run([] {
    models::Mlp model({6, 8, 3});
    place_stages(model.children(), {k0, k1});
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Staged graph(model, optimizer);
    const Tensor x = randn({4, 6}, {.placement = k0, .sbp = sbp::broadcast});
    const Tensor y = randint(0, 3, {4}, {.dtype = int64, .placement = k1, .sbp = sbp::broadcast});
    for (int step = 0; step < 2; ++step)
      graph(x, y);
  });
  for (const auto& [name, rank] : {std::pair("0F1", 0), {"0B0", 0}, {"1F0", 1}, {"1B1", 1}}) {
    const auto parts = find("part", name, rank);
    ASSERT_EQ(parts.size(), 2U) << name;
    EXPECT_EQ(parts[0]["args"]["run"], 0);
    EXPECT_EQ(parts[1]["args"]["run"], 1);
  }
  const auto forward = find("part", "1F0", 1).at(0);
  const auto kernels = find("kernel", "linear", 1);
  EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(), [&](const Json& kernel) {
    return encloses(forward, kernel) && kernel["args"].contains("site");
  }));
  // The gradients of the first micro-batch begin the sums, to which those of the second are added.
  const auto adds_in = [&](const char* part) {
    const auto adds = find("kernel", "add", 0);
    return std::count_if(adds.begin(), adds.end(), [&](const Json& add) {
      return encloses(find("part", part, 0).at(0), add);
    });
  };
  EXPECT_EQ(adds_in("0B0"), 0);
  EXPECT_EQ(adds_in("0B1"), 2);
  // There is a wait only if the message was not there yet.
  const auto receives = find("message", "receive from 0", 1);
  ASSERT_EQ(receives.size(), 4U) << "two micro-batches in two runs";
  EXPECT_EQ(receives[0]["args"]["peer"], 0);
  EXPECT_EQ(receives[0]["args"]["bytes"], 2 * 8 * 4);
  EXPECT_FALSE(find("message", "send to 1", 0).empty());
}

// What the process writes at its exit needs no file of such a rank.
TEST_F(RecordedRun, ARankWhoseFileCannotBeWrittenHasAnError) {
  const std::string file = folder_ + "/rank_2.events";
  std::filesystem::create_directories(file);
  setenv("FLOW_TIMELINE", folder_.c_str(), 1);
  std::string error;
  try {
    run_ranks(3, [] {});
  } catch (const IoError& caught) {
    error = caught.what();
  }
  unsetenv("FLOW_TIMELINE");
  std::filesystem::remove(file);
  EXPECT_NE(error.find("cannot write " + file + ": Is a directory"), std::string::npos) << error;
}

TEST_F(RecordedRun, ACallThatThrowsIsMarked) {
  run([] {
    const Tensor table = ones({3, 2});
    const Tensor index = full({1}, 7, {.dtype = int64});
    EXPECT_THROW(embedding(index, table), InvalidArgument);
  });
  const auto calls = find("op", "embedding", 0);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0]["args"]["failed"], true);
}

}  // namespace
}  // namespace flow
