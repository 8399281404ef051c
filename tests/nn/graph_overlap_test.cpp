// Transfers that run while a compiled step computes: results, errors and saved plans.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/loopback_ranks.h"
#include "tests/support/ranks_fixture.h"
#include "tests/support/temp_folder.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

constexpr nn::OverlapOptions kOff{.enabled = false};

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer, const nn::OverlapOptions& overlap,
        int64_t zero_stage)
      : model(m) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    config().set_overlap(overlap).enable_zero({.stage = zero_stage});
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

struct Trained {
  std::vector<double> losses;
  std::vector<double> weights;
  size_t num_in_background = 0;  // steps of the program
  friend bool operator==(const Trained&, const Trained&) = default;
};

Trained train(const TrainingLayout& layout, const nn::OverlapOptions& overlap, int64_t zero_stage) {
  manual_seed(4);
  models::Mlp model({24, 40, 32, 5});
  model.to_global(layout.placement, layout.model);
  optim::AdamW optimizer(model.parameters(), {.lr = 0.01});
  Train graph(model, optimizer, overlap, zero_stage);
  const TensorOptions options{.placement = layout.placement, .sbp = layout.data};
  TensorOptions classes = options;
  classes.dtype = int64;
  Trained trained;
  for (int step = 0; step < 4; ++step) {
    const Tensor x = randn({13, 24}, options), y = randint(0, 5, {13}, classes);
    trained.losses.push_back(graph(x, y).item<double>());
    if (step > 0) continue;
    for (const graph::Step& it : graph.compile(x, y).plan().program().steps)
      trained.num_in_background += it.in_background ? 1 : 0;
  }
  for (const Tensor& weight : model.parameters()) {
    const std::vector<double> values = weight.detach().full().to(float64).to_vector<double>();
    trained.weights.insert(trained.weights.end(), values.begin(), values.end());
  }
  return trained;
}

class GraphOverlap : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Ranks, GraphOverlap,
                         testing::Values(run_ranks, run_loopback_ranks, run_shared_memory_ranks));

TEST_P(GraphOverlap, LeavesResultsAsTheyAreBitForBit) {
  const std::vector<TrainingLayout> layouts = {
      {"data parallel", kPair, kS0, {{"*", kB}}},
      {"data parallel on 3", kThree, kS0, {{"*", kB}}},
      {"tensor parallel", kPair, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"*", kB}}},
      {"2 x 2",
       kGrid,
       {kS0, kB},
       {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}}},
  };
  for (const TrainingLayout& layout : layouts) {
    for (const int64_t zero_stage : {0, 1, 2, 3}) {
      SCOPED_TRACE(str(layout.name, ", ZeRO ", zero_stage));
      run_on_ranks(layout.ranks(), [&] {
        Trained here = train(layout, kOff, zero_stage);
        Trained overlapped = train(layout, kOverlapsAll, zero_stage);
        EXPECT_EQ(here.num_in_background, 0U);
        EXPECT_GE(overlapped.num_in_background, 2U);
        here.num_in_background = overlapped.num_in_background;
        EXPECT_EQ(here, overlapped);
      });
    }
  }
}

// Returns the whole weight as it was before the step, whose update writes the part that is
// gathered.
struct ReturnsWeight : nn::Graph<ReturnsWeight> {
  models::Mlp model;

  ReturnsWeight(models::Mlp m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer);
    config().set_overlap(kOverlapsAll);
  }

  Tensor build(const Tensor& x) {
    const Tensor whole = model.named_parameters().front().second.to_global({.sbp = kB});
    mean(model(x)).backward();
    return whole;
  }
};

TEST_P(GraphOverlap, AWeightIsWrittenAfterItHasMoved) {
  run_on_ranks(2, [] {
    manual_seed(4);
    models::Mlp model({24, 40, 5});
    model.to_global(kPair, {{"*", kS0}});
    optim::SGD optimizer(model.parameters(), {.lr = 0.5});
    ReturnsWeight graph(model, optimizer);
    const Tensor x = randn({8, 24}, {.placement = kPair, .sbp = kB});
    for (int step = 0; step < 3; ++step) {
      const Tensor before = model.named_parameters().front().second.detach().full().clone();
      EXPECT_EQ(graph(x).full().to_vector<float>(), before.to_vector<float>()) << step;
      EXPECT_NE(model.named_parameters().front().second.detach().full().to_vector<float>(),
                before.to_vector<float>());
    }
    bool moves = false;
    for (const graph::Step& it : graph.compile(x).plan().program().steps)
      moves = moves || (it.in_background && it.as<graph::CollectiveStep>() != nullptr);
    EXPECT_TRUE(moves);
  });
}

// The second call has a class that does not exist, on one rank only, whose bucket may be moving
// then.
TEST_P(GraphOverlap, ErrorsOfOneRankReachTheOthers) {
  struct Late : nn::Graph<Late> {
    models::Mlp model;

    Late(models::Mlp m, optim::Optimizer& optimizer) : model(m) {
      add_optimizer(optimizer);
      config().set_overlap(kOverlapsAll);
    }

    // The second loss comes after the first one's backward, whose sums are then in the background.
    Tensor build(const Tensor& x, const Tensor& y, const Tensor& z) {
      Tensor loss = cross_entropy(model(x), y);
      loss.backward();
      return cross_entropy(model(x), z);
    }
  };

  std::vector<std::string> errors(2);
  run_on_ranks(2, [&] {
    manual_seed(4);
    models::Mlp model({24, 40, 5});
    model.to_global(kPair, kB);
    optim::SGD optimizer(model.parameters(), {.lr = 0.01});
    Late graph(model, optimizer);
    const auto labels = [](int64_t last) {
      return tensor(std::vector<int64_t>{0, 1, 2, last}, {4}, {.placement = kPair, .sbp = kB})
          .to_global({.sbp = kS0});
    };
    const Tensor x = randn({4, 24}, {.placement = kPair, .sbp = kS0});
    graph(x, labels(0), labels(0));
    try {
      graph(x, labels(0), labels(5));
    } catch (const Error& error) {
      errors[static_cast<size_t>(env::rank())] = error.what();
    }
  });
  for (const std::string& error : errors)
    EXPECT_NE(error.find("cross_entropy"), std::string::npos) << error;
}

// Sums a partial value twice, in one bucket.
struct SumTwice : nn::Graph<SumTwice> {
  SumTwice() { config().enable_pass("merge_common_subexpressions", false); }

  Tensor build(const Tensor& a, const Tensor& b) {
    const Tensor partial = matmul(a, b);
    return sum(partial.to_global(kPair, kB) * partial.to_global(kPair, kB));
  }
};

TEST_P(GraphOverlap, AnAddendOfTwoSumsIsNotOverwritten) {
  run_on_ranks(2, [] {
    const Tensor a = ones({3, 4}, {.placement = kPair, .sbp = kS1});
    const Tensor b = ones({4, 5}, {.placement = kPair, .sbp = kS0});
    SumTwice graph;
    EXPECT_EQ(graph(a, b).item<double>(), 4 * 4 * 3 * 5);
    EXPECT_EQ(graph.compile(a, b).plan().certificate().ranks[0].num_collectives, 1);
  });
}

TEST(GraphOverlapPlans, AreSavedWithWhatRunsInTheBackground) {
  const TempFolder folder;
  const TrainingLayout layout{"data parallel", kPair, kS0, {{"*", kB}}};
  setenv("FLOW_PLAN_CACHE", folder.path().c_str(), 1);
  std::vector<Trained> runs(4);
  for (size_t turn = 0; turn < 2; ++turn) {
    run_ranks(2, [&] {
      runs[turn * 2 + static_cast<size_t>(env::rank())] = train(layout, kOverlapsAll, 0);
    });
  }
  unsetenv("FLOW_PLAN_CACHE");
  EXPECT_GE(runs[0].num_in_background, 2U);
  EXPECT_EQ(runs[2], runs[0]);
  EXPECT_EQ(runs[3], runs[1]);
}

TEST(GraphOverlapOptions, ThatMeanNothingAreRefused) {
  nn::GraphConfig config;
  EXPECT_THROW(config.set_overlap({.bucket_mb = 0}), InvalidArgument);
  EXPECT_THROW(config.set_overlap({.first_bucket_mb = -1}), InvalidArgument);
  EXPECT_THROW(config.set_overlap({.least_kb = -1}), InvalidArgument);
  EXPECT_THROW(config.set_overlap({.least_hidden_us = -1}), InvalidArgument);
}

}  // namespace
}  // namespace flow
