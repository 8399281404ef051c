// What is known of a compiled graph before it runs: memory, programs of all ranks, its text.
#include <atomic>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/storage.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"

namespace flow {
namespace {

const Placement kGrid("cpu", {{0, 1}, {2, 3}});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer) : model(m) { add_optimizer(optimizer); }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

// Compiles a training on 2 x 2 ranks and gives what `look` gives of it.
template <class Look>
auto compile_on_grid(const Look& look) {
  manual_seed(2);
  const PlacementGuard guard(kGrid, {kB, kB});
  models::Mlp model({6, 8, 4});
  model.to_global(kGrid, {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}});
  optim::AdamW optimizer(model.parameters());
  Train graph(model, optimizer);
  const NdSbp rows{kS0, kB};
  return look(graph.compile(randn({8, 6}, {.placement = kGrid, .sbp = rows}),
                            randint(0, 4, {8}, {.dtype = int64, .placement = kGrid, .sbp = rows})));
}

TEST(GraphPlan, APlanningWorldCompilesTheProgramsOfAllRanks) {
  std::vector<std::string> planned;
  {
    const PlanningWorld world(4);
    planned = compile_on_grid([](const nn::CompiledGraph& compiled) {
      std::vector<std::string> texts;
      const graph::Programs& programs = compiled.plan().programs();
      for (size_t rank = 0; rank < programs.size(); ++rank)
        texts.push_back(to_string(*programs[rank], static_cast<int64_t>(rank)));
      return texts;
    });
  }
  ASSERT_EQ(planned.size(), 4U);
  run_ranks(4, [&] {
    const std::string own = compile_on_grid([](const nn::CompiledGraph& compiled) {
      return to_string(compiled.plan().program(), env::rank());
    });
    EXPECT_EQ(own, planned[static_cast<size_t>(env::rank())]);
  });
}

// The programs that four thread ranks have of a batch of so many rows.
std::set<const graph::Program*> programs_of_rows(int64_t rows) {
  const Placement four("cpu", {0, 1, 2, 3});
  std::set<const graph::Program*> all;
  std::mutex mutex;
  run_ranks(4, [&] {
    manual_seed(2);
    models::Mlp model({6, 8, 4});
    model.to_global(four, kB);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Train graph(model, optimizer);
    const Tensor x = randn({rows, 6}, {.placement = four, .sbp = kS0});
    const Tensor y = randint(0, 4, {rows}, {.dtype = int64, .placement = four, .sbp = kS0});
    graph(x, y);
    {
      const std::lock_guard lock(mutex);
      all.insert(&graph.compile(x, y).plan().program());
    }
    env::barrier();  // plans live as long as somebody has them
  });
  return all;
}

TEST(GraphPlan, ThreadRanksShareTheProgramsThatOneOfThemMakes) {
  EXPECT_EQ(programs_of_rows(8).size(), 1U);
  EXPECT_EQ(programs_of_rows(10).size(), 2U) << "ranks with three rows and with two";
}

TEST(GraphPlan, GradientsOfDataParallelStepsAreSummedTogether) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    models::Mlp model({6, 8, 8, 4});
    model.to_global(both, kB);
    optim::AdamW optimizer(model.parameters());
    Train graph(model, optimizer);
    const nn::CompiledGraph& compiled =
        graph.compile(randn({8, 6}, {.placement = both, .sbp = kS0}),
                      randint(0, 4, {8}, {.dtype = int64, .placement = both, .sbp = kS0}));
    const graph::Program& program = compiled.plan().program();
    std::vector<const graph::Step*> buckets;
    for (const graph::Step& step : program.steps) {
      const bool is_of_gradients = step.inputs.size() > 2;  // others are of the loss
      if (step.as<graph::BucketStep>() != nullptr && is_of_gradients) buckets.push_back(&step);
    }
    ASSERT_EQ(buckets.size(), 1U) << to_string(program);
    EXPECT_GE(buckets[0]->inputs.size(), 6U) << "weights and biases of three layers";
    for (size_t i = 0; i < buckets[0]->inputs.size(); ++i) {
      EXPECT_EQ(program.root_of(buckets[0]->inputs[i]), program.root_of(buckets[0]->outputs[i]))
          << "the addend is made where its sum will be\n"
          << to_string(program);
    }
  });
}

TEST(GraphPlan, EachRankReportsAnErrorOfTheSharedCompilation) {
  struct Cut : nn::Graph<Cut> {
    Cut() { config().set_micro_batches(2); }

    Tensor build(const Tensor& x) { return cumsum(x, 0); }
  };

  std::atomic<int> refused = 0;
  run_ranks(3, [&] {
    Cut graph;
    const Placement three("cpu", {0, 1, 2});
    const Tensor x = ones({6, 2}, {.placement = three, .sbp = kB});
    EXPECT_THROW(graph.compile(x), Unsupported);
    ++refused;
  });
  EXPECT_EQ(refused, 3);
}

TEST(GraphPlan, APlanningWorldMovesNoData) {
  const PlanningWorld world(2);
  const Placement pair("cpu", {0, 1});
  const Tensor x = ones({4}, {.placement = pair, .sbp = kS0});
  try {
    x.full();
    FAIL() << "there is no other rank";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("planning only"), std::string::npos) << error.what();
  }
}

TEST(GraphPlan, SummarySaysWhatWasCompiledAndProved) {
  const PlanningWorld world(4);
  const std::string text =
      compile_on_grid([](const nn::CompiledGraph& compiled) { return compiled.summary(); });
  for (const char* part :
       {"3 inputs, 12 tensors from outside, 12 of them written", "passes: settle_stages",
        " remove_identities ", "certificate: 4 ranks, no rank waits for ever",
        "rank 3: ", "collectives, 0 messages", "redistributions of rank 0",
        "graph_plan_test.cpp:", "all_reduce of float32"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  }
}

// ---- modules in graphs

struct Stage : nn::Module<Stage> {
  Tensor w;

  Stage(int64_t in, int64_t out, const Placement& placement, const NdSbp& sbp)
      : w(register_parameter("w", randn({in, out}, {.placement = placement, .sbp = sbp}))) {}

  Tensor forward(const Tensor& x) { return relu(matmul(x, w)); }
};

struct TwoStages : nn::Module<TwoStages> {
  Stage first, second;

  TwoStages(const Placement& p0, const Placement& p1)
      : first(register_module("first", Stage(5, 8, p0, kB))),
        second(register_module("second", Stage(8, 3, p1, kS1))) {}

  auto forward(const Tensor& x) {
    const Tensor out = first(x);
    return std::pair(out, second(out));
  }
};

struct Staged : nn::Graph<Staged> {
  TwoStages model;

  Staged(const Placement& p0, const Placement& p1) : model(p0, p1) {
    model.first.to<nn::GraphModule>().set_stage(0, p0);
    nn::graph_module(model.second).set_stage(1, p1);
  }

  auto build(const Tensor& x) { return model(x); }
};

TEST(GraphModules, StagesBringTheirInputToTheirPlacement) {
  const Placement p01("cpu", {0, 1}), p23("cpu", {2, 3});
  run_ranks(4, [&] {
    manual_seed(4);
    Staged graph(p01, p23);
    const Tensor x = randn({4, 5}, {.placement = p01, .sbp = kS0});
    const auto [first, second] = graph(x);
    EXPECT_EQ(second.placement(), p23);
    const Tensor want_first = graph.model.first(x);
    const Tensor moved = want_first.to_global({.placement = p23, .sbp = kB});
    EXPECT_EQ(first.to_vector<float>(), want_first.to_vector<float>());
    EXPECT_EQ(second.to_vector<float>(), graph.model.second(moved).to_vector<float>());
    EXPECT_NE(graph.compile(x).summary().find("in 2 stages"), std::string::npos);
  });
}

TEST(GraphModules, CheckpointedModulesKeepValuesAndTakeLessMemory) {
  const auto run = [](bool checkpoints) {
    manual_seed(4);
    models::Gpt model({.vocab_size = 16,
                       .block_size = 32,
                       .n_layer = 6,
                       .n_head = 2,
                       .n_embd = 32,
                       .dropout = 0.1});
    for (auto& [name, module] : model.named_modules()) {
      const bool is_feed_forward = name.ends_with(".mlp");
      if (is_feed_forward) nn::graph_module(module).set_activation_checkpointing(checkpoints);
    }

    struct Lm : nn::Graph<Lm> {
      models::Gpt model;

      Lm(models::Gpt m, optim::Optimizer& optimizer) : model(m) {
        add_optimizer(optimizer);
        config().set_passes(nn::exact);
      }

      Tensor build(const Tensor& x, const Tensor& y) {
        Tensor loss = cross_entropy(model(x).reshape({-1, 16}), y.flatten());
        loss.backward();
        return loss;
      }
    };

    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Lm graph(model, optimizer);
    std::vector<float> losses;
    for (int step = 0; step < 3; ++step) {
      losses.push_back(graph(randint(0, 16, {4, 32}), randint(0, 16, {4, 32})).item<float>());
    }
    const Tensor tokens = randint(0, 16, {4, 32});
    return std::pair(losses, graph.compile(tokens, tokens).plan().arena_bytes());
  };
  const auto [plain_losses, plain_bytes] = run(false);
  const auto [losses, bytes] = run(true);
  EXPECT_EQ(losses, plain_losses);
  EXPECT_LT(bytes, plain_bytes);
}

// ---- memory

struct Chain : nn::Graph<Chain> {
  Tensor build(const Tensor& x) { return exp(neg(exp(x))) + relu(x); }
};

// What the allocator hands out for a block of so many bytes.
int64_t handed_out(int64_t bytes) {
  const int64_t before = memory_stats().bytes_in_use;
  const Ref<Storage> block =
      Storage::allocate(thread_state().context->allocator(), static_cast<size_t>(bytes));
  return memory_stats().bytes_in_use - before;
}

TEST(GraphPlan, MemoryIsKnownBeforeTheFirstRun) {
  Chain graph;
  const Tensor x = ones({1000});
  const graph::CompiledStep& plan = graph.compile(x).plan();
  EXPECT_EQ(plan.output_bytes(), 4000);
  const int64_t expected = handed_out(plan.arena_bytes()) + handed_out(plan.output_bytes());
  reset_peak_memory_stats();
  const int64_t before = memory_stats().bytes_in_use;
  graph(x);
  EXPECT_EQ(memory_stats().peak_bytes_in_use - before, expected);
}

TEST(GraphPlan, ReplaysTakeMemoryForOutputsOnly) {
  Chain graph;
  const Tensor x = ones({1000});
  graph(x);
  const AllocatorStats before = memory_stats();
  for (int i = 0; i < 10; ++i)
    graph(x);
  EXPECT_EQ(memory_stats().num_allocations - before.num_allocations, 10);
}

TEST(GraphPlan, ValuesThatAreNotAliveTogetherShareMemory) {
  struct Long : nn::Graph<Long> {
    Tensor build(const Tensor& x) {
      Tensor y = x;
      for (int i = 0; i < 20; ++i)
        y = exp(neg(y));
      return y;
    }
  };

  Long graph;
  EXPECT_LE(graph.compile(ones({1000})).plan().arena_bytes(), 3 * 4096);
}

}  // namespace
}  // namespace flow
