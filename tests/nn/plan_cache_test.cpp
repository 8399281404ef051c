// Plans that are kept in a folder: a run that reads them trains as the one that compiled them.
#include "nn/graphs/plan_cache.h"

#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/plan_file/plan_reader.h"
#include "graph/run/compiled_step.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

class PlanCache : public testing::Test {
 protected:
  std::vector<std::filesystem::path> files() const {
    std::vector<std::filesystem::path> all;
    if (!std::filesystem::exists(folder_)) return all;
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      all.push_back(entry.path());
    return all;
  }

  const TempFolder temp_;
  const std::filesystem::path folder_ = temp_.file("plans");
};

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer, const std::string& folder,
        int64_t micro_batches = 1)
      : model(m) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    config().set_plan_cache(folder).set_micro_batches(micro_batches);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    // The last row is read by its position in the batch.
    Tensor loss = cross_entropy(dropout(out, {.p = 0.2}), y) + out[-1].sum() * 0.01;
    loss.backward();
    return loss;
  }
};

struct Outcome {
  std::vector<float> losses;
  std::string summary;
};

// Three steps on the ranks of a placement (none: one local rank), as rank 0 sees them.
Outcome train(const std::string& folder, const Placement& ranks, int64_t micro_batches = 1) {
  manual_seed(5);
  const auto layout = [&](const Sbp& sbp) {
    return ranks.defined() ? TensorOptions{.placement = ranks, .sbp = sbp} : TensorOptions{};
  };
  models::Mlp model({6, 8, 4});
  if (ranks.defined()) model.to_global(ranks, sbp::broadcast);
  optim::AdamW optimizer(model.parameters());
  Train graph(model, optimizer, folder, micro_batches);
  const Tensor x = randn({8, 6}, layout(sbp::split(0)));
  TensorOptions labels = layout(sbp::split(0));
  labels.dtype = int64;
  const Tensor y = randint(0, 4, {8}, labels);
  Outcome run;
  for (int step = 0; step < 3; ++step)
    run.losses.push_back(graph(x, y).item<float>());
  run.summary = graph.compile(x, y).summary();
  return run;
}

Outcome train_on_two(const std::string& folder, int64_t micro_batches = 1) {
  Outcome first;
  run_ranks(2, [&] {
    Outcome own = train(folder, Placement("cpu", {0, 1}), micro_batches);
    if (env::rank() == 0) first = std::move(own);
  });
  return first;
}

bool is_from_cache(const Outcome& run) {
  return run.summary.find("read from the plan") != std::string::npos;
}

TEST_F(PlanCache, ARunThatReadsItsPlanTrainsAsTheOneThatCompiledIt) {
  const Outcome none = train("", {}), first = train(folder_, {}), second = train(folder_, {});
  EXPECT_FALSE(is_from_cache(first));
  EXPECT_TRUE(is_from_cache(second)) << second.summary;
  EXPECT_EQ(first.losses, none.losses);
  EXPECT_EQ(second.losses, none.losses);
  EXPECT_EQ(files().size(), 1U);
}

TEST_F(PlanCache, ThreadRanksTrainAlikeWithPlansAndWithout) {
  for (const int64_t micro_batches : {1, 2}) {
    const Outcome none = train_on_two("", micro_batches);
    const Outcome first = train_on_two(folder_, micro_batches);
    const Outcome second = train_on_two(folder_, micro_batches);
    EXPECT_FALSE(is_from_cache(first));
    EXPECT_TRUE(is_from_cache(second)) << second.summary;
    EXPECT_EQ(first.losses, none.losses);
    EXPECT_EQ(second.losses, none.losses);
  }
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(PlanCache, ConvolutionsFindTheirMemoryLayoutsAgain) {
  struct LenetStep : nn::Graph<LenetStep> {
    models::Lenet model;
    optim::SGD optimizer{model.parameters(), {.lr = 0.1}};

    explicit LenetStep(const std::string& folder) {
      add_optimizer(optimizer);
      config().set_plan_cache(folder);
    }

    Tensor build(const Tensor& x, const Tensor& y) {
      Tensor loss = cross_entropy(model(x), y);
      loss.backward();
      return loss;
    }
  };

  const auto losses = [](const std::string& folder) {
    manual_seed(3);
    LenetStep graph(folder);
    const Tensor x = randn({4, 1, 28, 28}), y = randint(0, 10, {4});
    std::vector<float> all;
    for (int step = 0; step < 3; ++step)
      all.push_back(graph(x, y).item<float>());
    return std::pair(all, graph.compile(x, y).plan().step().from_cache);
  };
  const auto [none, none_read] = losses("");
  const auto [first, first_read] = losses(folder_);
  const auto [second, second_read] = losses(folder_);
  EXPECT_FALSE(first_read);
  EXPECT_TRUE(second_read);
  EXPECT_EQ(first, none);
  EXPECT_EQ(second, none);
}

// The gradient of a column is a sum over the others, whose shape is given for the whole batch.
TEST_F(PlanCache, MicroBatchesMayHaveSumsToTheirColumns) {
  struct Gated : nn::Graph<Gated> {
    models::Mlp model;

    Gated(models::Mlp m, optim::Optimizer& optimizer, const std::string& folder) : model(m) {
      add_optimizer(optimizer);
      config().set_plan_cache(folder).set_micro_batches(3);
    }

    Tensor build(const Tensor& x) {
      const Tensor out = model(x);
      Tensor loss = (out * sigmoid(out.narrow(1, 0, 1))).square().mean();
      loss.backward();
      return loss;
    }
  };

  const auto run = [&] {
    manual_seed(5);
    models::Mlp model({6, 8, 4});
    optim::AdamW optimizer(model.parameters());
    Gated graph(model, optimizer, folder_);
    const Tensor x = randn({8, 6});
    Outcome outcome{.losses = {graph(x).item<float>(), graph(x).item<float>()}, .summary = {}};
    outcome.summary = graph.summary();
    return outcome;
  };
  const Outcome first = run(), second = run();
  EXPECT_TRUE(is_from_cache(second)) << second.summary;
  EXPECT_EQ(second.losses, first.losses);
}

TEST_F(PlanCache, AnotherStepHasAnotherPlan) {
  train(folder_, {});
  train_on_two(folder_);
  EXPECT_EQ(files().size(), 2U);
}

TEST_F(PlanCache, ADamagedFileIsRefusedWithAReasonAndReplaced) {
  const Outcome first = train(folder_, {});
  const std::filesystem::path path = files().at(0);
  std::string bytes = nn::read_text(path);
  bytes[bytes.size() / 2] ^= 1;
  nn::OutputFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();

  const Outcome second = train(folder_, {});
  EXPECT_NE(second.summary.find("what was saved is not used"), std::string::npos) << second.summary;
  EXPECT_NE(second.summary.find("it is damaged"), std::string::npos) << second.summary;
  EXPECT_EQ(second.losses, first.losses);
  EXPECT_TRUE(is_from_cache(train(folder_, {})));
}

TEST_F(PlanCache, AForeignFileIsRefusedWithAReason) {
  train(folder_, {});
  const std::filesystem::path own = files().at(0);
  train_on_two(folder_);
  for (const auto& path : files()) {
    if (path != own)
      std::filesystem::copy_file(path, own, std::filesystem::copy_options::overwrite_existing);
  }
  const Outcome run = train(folder_, {});
  EXPECT_FALSE(is_from_cache(run));
  EXPECT_NE(run.summary.find("ranks 2 instead of 1"), std::string::npos) << run.summary;
}

TEST_F(PlanCache, AFolderThatCannotBeWrittenCostsNothingElse) {
  EXPECT_EQ(train("/proc/no/such/folder", {}).losses, train("", {}).losses);
}

TEST_F(PlanCache, APlanningWorldCompilesForRunsToCome) {
  {
    const PlanningWorld world(2);
    manual_seed(5);
    const Placement ranks("cpu", {0, 1});
    const PlacementGuard guard(ranks, sbp::broadcast);
    models::Mlp model({6, 8, 4});
    optim::AdamW optimizer(model.parameters());
    Train graph(model, optimizer, folder_);
    graph.compile(randn({8, 6}, {.placement = ranks, .sbp = sbp::split(0)}),
                  randint(0, 4, {8}, {.dtype = int64, .placement = ranks, .sbp = sbp::split(0)}));
  }
  EXPECT_TRUE(is_from_cache(train_on_two(folder_)));
}

TEST_F(PlanCache, APlanIsSavedWhereOneAsks) {
  std::filesystem::create_directories(folder_);

  struct Double : nn::Graph<Double> {
    Tensor build(const Tensor& x) { return x + x; }
  };

  Double graph;
  const std::string path = folder_ / "double.plan";
  graph.compile(ones({4})).save(path);
  const graph::SavedPlan saved = graph::parse_plan(nn::read_text(path), path, op_table());
  EXPECT_EQ(saved.step.graph, graph.compile(ones({4})).plan().graph());
}

}  // namespace
}  // namespace flow
