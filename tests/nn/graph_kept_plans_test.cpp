// A graph keeps a limited number of plans: the memory of a program that meets many shapes is
// bounded, and its results are those of the eager step.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/storage.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/temp_folder.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Classify : nn::Graph<Classify> {
  models::Mlp model{{6, 8, 4}};
  int num_builds = 0;

  explicit Classify(int64_t max_plans = 0) {
    config().set_passes(nn::exact);
    if (max_plans != 0) config().set_max_plans(max_plans);
  }

  Tensor build(const Tensor& x) {
    ++num_builds;
    return softmax(model(x), 1);
  }

  std::string summary(const Tensor& x) { return compile(x).summary(); }
};

TEST(KeptPlans, MemoryStaysFlatOverManySequenceLengths) {
  Classify graph;
  const int64_t before = memory_stats().bytes_in_use;
  std::deque<int64_t> arenas;  // of the plans that are kept
  for (int64_t length = 1; length <= 300; ++length) {
    const NoGradGuard no_grad;
    {
      const Tensor x = randn({length, 6});
      EXPECT_EQ(graph(x).to_vector<float>(), softmax(graph.model(x), 1).to_vector<float>());
      arenas.push_back(
          static_cast<int64_t>(Storage::block_bytes(graph.compile(x).plan().arena_bytes())));
    }
    if (arenas.size() > 32) arenas.pop_front();
    ASSERT_EQ(memory_stats().bytes_in_use - before, *std::max_element(arenas.begin(), arenas.end()))
        << length;
  }
  EXPECT_EQ(graph.num_builds, 300);
  const NoGradGuard no_grad;
  EXPECT_TRUE(has(graph.summary(zeros({300, 6})),
                  "plans of the graph: 32 kept of at most 32, 268 dropped\n"));
}

TEST(KeptPlans, ShareOneArenaThatMovesAndGivesTheSameNumbers) {
  Classify graph(2);
  const auto run = [&](int64_t length) {
    const Tensor x = randn({length, 6});
    EXPECT_EQ(graph(x).to_vector<float>(), softmax(graph.model(x), 1).to_vector<float>()) << length;
    return Storage::block_bytes(graph.compile(x).plan().arena_bytes());
  };
  const NoGradGuard no_grad;
  const int64_t before = memory_stats().bytes_in_use;
  const auto in_use = [&] { return memory_stats().bytes_in_use - before; };
  const int64_t small = run(100);
  EXPECT_EQ(in_use(), small);
  const int64_t large = run(2000);
  EXPECT_GT(large, small);
  EXPECT_EQ(in_use(), large);
  EXPECT_EQ(run(100), small);
  EXPECT_EQ(in_use(), large) << "the larger plan is kept";
  run(200);  // drops the plan for 2000
  EXPECT_LT(in_use(), large);
  run(100);
}

TEST(KeptPlans, TheLeastRecentlyUsedPlanGoes) {
  Classify graph(2);
  const auto num_builds_after = [&](int64_t length) {
    graph(zeros({length, 6}));
    return graph.num_builds;
  };
  EXPECT_EQ(num_builds_after(1), 1);
  EXPECT_EQ(num_builds_after(2), 2);
  EXPECT_EQ(num_builds_after(1), 2);
  EXPECT_EQ(num_builds_after(3), 3);  // drops the plan for 2
  EXPECT_EQ(num_builds_after(1), 3);
  EXPECT_EQ(num_builds_after(2), 4);  // compiles again and drops the plan for 3
  EXPECT_EQ(num_builds_after(1), 4);
  EXPECT_TRUE(has(graph.summary(zeros({1, 6})), "2 kept of at most 2, 2 dropped"));
}

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact).set_max_plans(1);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

TEST(KeptPlans, TrainingWithPlansMadeAgainEqualsEagerTraining) {
  manual_seed(3);
  models::Mlp eager({6, 8, 4}), compiled({6, 8, 4});
  compiled.load_state_dict(eager.state_dict());
  optim::AdamW of_eager(eager.parameters()), of_compiled(compiled.parameters());
  Train graph(compiled, of_compiled);
  std::vector<int64_t> live;
  for (const int64_t length : {5, 7, 5, 7, 5, 7}) {
    {
      const Tensor x = randn({length, 6}), y = randint(0, 4, {length}, {.dtype = int64});
      const Tensor loss = cross_entropy(eager(x), y);
      of_eager.zero_grad();
      loss.backward();
      of_eager.step();
      EXPECT_EQ(graph(x, y).item<float>(), loss.item<float>());
    }
    live.push_back(memory_stats().bytes_in_use);
  }
  EXPECT_EQ(live[2], live[4]);
  EXPECT_EQ(live[3], live[5]);
  for (const auto& [name, tensor] : eager.state_dict())
    EXPECT_EQ(compiled.state_dict().at(name).to_vector<float>(), tensor.to_vector<float>());
}

struct OnTwoRanks : nn::Graph<OnTwoRanks> {
  int num_builds = 0;

  OnTwoRanks() { config().set_max_plans(2); }

  std::pair<Tensor, Tensor> build(const Tensor& global, const Tensor& local) {
    ++num_builds;
    return {global.sum(), local + 1};
  }
};

// Ranks whose local tensors differ in shape drop different plans; compiling again waits for nobody.
TEST(KeptPlans, RanksMayKeepDifferentPlans) {
  run_ranks(2, [&] {
    OnTwoRanks graph;
    for (const int64_t step : {1, 2, 3, 4, 1, 2, 3, 4}) {
      const int64_t length = env::rank() == 0 ? 1 : step;
      const Tensor global = ones({4}, {.placement = kPair, .sbp = sbp::split(0)});
      const auto [sum, local] = graph(global, zeros({length}));
      EXPECT_EQ(sum.item<float>(), 4);
      EXPECT_EQ(local.to_vector<float>(), std::vector<float>(static_cast<size_t>(length), 1));
    }
    EXPECT_EQ(graph.num_builds, env::rank() == 0 ? 1 : 8);
  });
}

// The new plan may be at the address of a dropped one.
TEST(KeptPlans, ATimelineStartsAgainWithAPlanMadeAgain) {
  struct Timed : nn::Graph<Timed> {
    explicit Timed(const std::string& path) {
      config().set_max_plans(1).set_timeline(path, {.skip = 0, .runs = 2});
    }

    Tensor build(const Tensor& x) { return x + 1; }
  };

  const TempFolder folder;
  const std::string path = folder.file("timeline.json");
  Timed graph(path);
  graph(zeros({5}));
  graph.compile(zeros({7}));  // drops the plan that is recorded
  graph(zeros({5}));
  EXPECT_FALSE(std::filesystem::exists(path));
  graph(zeros({5}));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST(KeptPlans, LessThanOneIsRefused) {
  for (const int64_t count : {int64_t{-1}, int64_t{-32}})
    EXPECT_THROW(Classify{count}, InvalidArgument);

  struct None : nn::Graph<None> {
    None() { config().set_max_plans(0); }

    Tensor build(const Tensor& x) { return x + 1; }
  };

  EXPECT_THROW(None{}, InvalidArgument);
}

TEST(KeptPlans, ALowerLimitAppliesAtTheNextCall) {
  struct Add : nn::Graph<Add> {
    Tensor build(const Tensor& x) { return x + 1; }

    void limit(int64_t count) { config().set_max_plans(count); }
  } graph;

  for (const int64_t length : {1, 2, 3, 4})
    graph(zeros({length}));
  graph.limit(1);
  EXPECT_TRUE(has(graph.compile(zeros({2})).summary(), "1 kept of at most 1, 3 dropped"));
}

}  // namespace
}  // namespace flow
