// DistributedDataParallel in build(): compiled steps of local tensors, of which each rank has its
// own rows, compute what the eager steps compute.
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks_fixture.h"
#include "tests/support/recorded_calls.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

using nn::parallel::DistributedDataParallel;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- equal to eager steps

struct Batch {
  Tensor x, y;
};

template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Batch(int64_t rows)> make_batch;
};

Tensor loss_of(const Tensor& output, const Tensor& y) {
  return cross_entropy(output.reshape({-1, output.size(-1)}), y.flatten());
}

template <class Model>
struct Train : nn::Graph<Train<Model>> {
  DistributedDataParallel<Model> ddp;

  Train(const DistributedDataParallel<Model>& d, optim::Optimizer& optimizer,
        const nn::GraphOptimizerOptions& options = {})
      : ddp(d) {
    this->add_optimizer(optimizer, options);
    this->config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = loss_of(ddp(x), y);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

enum class Precision { kFull, kBfloat16, kFloat16 };

constexpr double kClip = 0.5;
constexpr int kSteps = 8;

// The losses of this rank, and at the end the tensors of its model and its optimizer.
struct Run {
  std::vector<double> losses = {};
  std::vector<double> scales = {};
  std::vector<std::pair<std::string, std::vector<double>>> state = {};

  void read(const nn::StateDict& tensors) {
    for (const auto& [name, tensor] : tensors)
      state.emplace_back(name, tensor.to(float64).template to_vector<double>());
  }
};

void expect_same(const Run& got, const Run& want, const std::string& what) {
  EXPECT_EQ(got.losses, want.losses) << what;
  EXPECT_EQ(got.scales, want.scales) << what;
  ASSERT_EQ(got.state.size(), want.state.size()) << what;
  for (size_t i = 0; i < want.state.size(); ++i)
    EXPECT_EQ(got.state[i], want.state[i]) << what << ", " << want.state[i].first;
}

// The scale overflows in some steps.
constexpr optim::GradScalerOptions kScaling{.init_scale = 33554432, .growth_interval = 2};

// Ranks have batches of different sizes, which change from step to step on the odd ranks.
int64_t rows_of(int step) {
  return 3 + 2 * me() + (me() % 2 == 1 ? step % 3 : 0);
}

template <class Model>
Run train(const Task<Model>& task, bool is_compiled, Precision precision = Precision::kFull) {
  manual_seed(5);  // the ranks draw different weights; all take those of rank 0
  DistributedDataParallel<Model> ddp(task.make_model());
  optim::AdamW optimizer(ddp.parameters(), {.lr = 0.05});
  optim::lr_scheduler::StepLR schedule(optimizer, {.step_size = 3, .gamma = 0.5});
  Train<Model> graph(ddp, optimizer, {.lr_scheduler = &schedule, .clip_grad_norm = kClip});
  if (precision == Precision::kBfloat16) graph.config().enable_amp(bfloat16);
  if (precision == Precision::kFloat16) graph.config().enable_amp(float16, kScaling);
  const bool is_scaled = precision == Precision::kFloat16;
  optim::GradScaler scaler(kScaling);
  Run run;
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = task.make_batch(rows_of(step));
    if (is_compiled) {
      run.losses.push_back(graph(batch.x, batch.y).template item<double>());
      if (is_scaled) run.scales.push_back(graph.config().grad_scaler()->get_scale());
      continue;
    }
    Tensor loss;
    {
      const AutocastGuard autocast(is_scaled ? float16 : bfloat16,
                                   {.enabled = precision != Precision::kFull});
      loss = loss_of(ddp(batch.x), batch.y);
    }
    optimizer.zero_grad();
    (is_scaled ? scaler.scale(loss) : loss).backward();
    if (is_scaled) scaler.unscale_(optimizer);
    nn::utils::clip_grad_norm_(ddp.parameters(), kClip);
    if (is_scaled) {
      scaler.step(optimizer);
      scaler.update();
      run.scales.push_back(scaler.get_scale());
    } else {
      optimizer.step();
    }
    schedule.step();
    run.losses.push_back(loss.item<double>());
  }
  run.read(ddp.state_dict());
  run.read(optimizer.state_dict());
  return run;
}

const Task<models::Mlp> kMlp{[] {
                               return models::Mlp({5, 7, 4});
                             },
                             [](int64_t rows) {
                               return Batch{randn({rows, 5}), randint(0, 4, {rows})};
                             }};
const Task<models::Gpt> kGpt{[] {
                               return models::Gpt({.vocab_size = 11,
                                                   .block_size = 6,
                                                   .n_layer = 2,
                                                   .n_head = 2,
                                                   .n_embd = 8,
                                                   .dropout = 0.1});
                             },
                             [](int64_t rows) {
                               return Batch{randint(0, 11, {rows, 6}), randint(0, 11, {rows, 6})};
                             }};
// Its running statistics are those of the rank's own rows; rank 0's replace them before each step.
const Task<nn::Sequential> kNormed{[] {
                                     return nn::Sequential(nn::Conv2d(1, 4, 3, {.padding = 1}),
                                                           nn::BatchNorm2d(4), nn::ReLU(),
                                                           nn::Flatten(), nn::Linear(100, 3));
                                   },
                                   [](int64_t rows) {
                                     return Batch{randn({rows, 1, 5, 5}), randint(0, 3, {rows})};
                                   }};

// Its first bucket of gradients is full before backward ends.
const Task<models::Mlp> kWide{[] {
                                return models::Mlp({32, 512, 512, 4});
                              },
                              [](int64_t rows) {
                                return Batch{randn({rows, 32}), randint(0, 4, {rows})};
                              }};

class GraphDdpOn : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, GraphDdpOn, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, GraphDdpOn, testing::Values(run_loopback_ranks));
INSTANTIATE_TEST_SUITE_P(SharedMemory, GraphDdpOn, testing::Values(run_shared_memory_ranks));

TEST_P(GraphDdpOn, AnMlpEqualsEagerStepsBitForBit) {
  for (const int64_t ranks : {1, 2, 3}) {
    run_on_ranks(ranks, [&] {
      expect_same(train(kMlp, true), train(kMlp, false), str("rank ", me(), " of ", ranks));
    });
  }
}

TEST_P(GraphDdpOn, BucketsThatOverlapWithBackwardEqualEagerStepsBitForBit) {
  run_on_ranks(2,
               [&] { expect_same(train(kWide, true), train(kWide, false), str("rank ", me())); });
}

TEST_P(GraphDdpOn, AGptWithDropoutEqualsEagerStepsBitForBit) {
  for (const int64_t ranks : {2, 3}) {
    run_on_ranks(ranks, [&] {
      expect_same(train(kGpt, true), train(kGpt, false), str("rank ", me(), " of ", ranks));
    });
  }
}

TEST_P(GraphDdpOn, BatchNormWithBuffersEqualsEagerStepsBitForBit) {
  for (const int64_t ranks : {2, 3}) {
    run_on_ranks(ranks, [&] {
      expect_same(train(kNormed, true), train(kNormed, false), str("rank ", me(), " of ", ranks));
    });
  }
}

TEST_P(GraphDdpOn, MixedPrecisionEqualsEagerStepsBitForBit) {
  run_on_ranks(2, [&] {
    for (const Precision precision : {Precision::kBfloat16, Precision::kFloat16}) {
      expect_same(train(kMlp, true, precision), train(kMlp, false, precision),
                  str("rank ", me(), precision == Precision::kFloat16 ? ", scaled" : ""));
    }
  });
}

// Parameters in 16 bits: the mean is rounded once.
TEST_P(GraphDdpOn, GradientsIn16BitsAreRoundedOnce) {
  const Task<models::Mlp> task{[] {
                                 models::Mlp model({5, 7, 4});
                                 model.to(bfloat16);
                                 return model;
                               },
                               [](int64_t rows) {
                                 return Batch{randn({rows, 5}).to(bfloat16), randint(0, 4, {rows})};
                               }};
  run_on_ranks(3, [&] { expect_same(train(task, true), train(task, false), str("rank ", me())); });
}

// `extra` is used where the caller asks for it, and `never` by nobody.
struct Branches : nn::Module<Branches> {
  nn::Linear first{register_module("first", nn::Linear(3, 4))};
  nn::Linear extra{register_module("extra", nn::Linear(4, 4))};
  nn::Linear never{register_module("never", nn::Linear(4, 4))};

  Tensor forward(const Tensor& x, bool uses_extra = false) {
    const Tensor y = first(x);
    return uses_extra ? extra(y) : y;
  }
};

const Task<Branches> kBranches{[] { return Branches(); },
                               [](int64_t rows) {
                                 return Batch{randn({rows, 3}), randint(0, 4, {rows})};
                               }};

TEST_P(GraphDdpOn, UnusedParametersStayAsInEagerSteps) {
  run_on_ranks(
      2, [&] { expect_same(train(kBranches, true), train(kBranches, false), str("rank ", me())); });
}

struct Accumulates : nn::Graph<Accumulates> {
  DistributedDataParallel<Branches> ddp;

  Accumulates(const DistributedDataParallel<Branches>& d, optim::Optimizer& optimizer) : ddp(d) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact);
  }

  std::vector<Tensor> build(const Tensor& x, const Tensor& y) { return run(ddp, x, y); }

  // Only the first backward, which averages nothing, reaches `extra`.
  static std::vector<Tensor> run(DistributedDataParallel<Branches>& ddp, const Tensor& x,
                                 const Tensor& y) {
    std::vector<Tensor> losses;
    {
      const auto guard = ddp.no_sync();
      losses.push_back(loss_of(ddp(x, true), y));
      losses.back().backward();
    }
    losses.push_back(loss_of(ddp(x * 2), y));
    losses.back().backward();
    return losses;
  }
};

Run accumulate(bool is_compiled) {
  manual_seed(6);
  DistributedDataParallel<Branches> ddp{Branches()};
  optim::SGD optimizer(ddp.parameters(), {.lr = 0.1, .momentum = 0.9});
  Accumulates graph(ddp, optimizer);
  Run run;
  for (int step = 0; step < 3; ++step) {
    const Batch batch = kBranches.make_batch(rows_of(step));
    std::vector<Tensor> losses;
    if (is_compiled) {
      losses = graph(batch.x, batch.y);
    } else {
      optimizer.zero_grad();
      losses = Accumulates::run(ddp, batch.x, batch.y);
      optimizer.step();
    }
    for (const Tensor& loss : losses)
      run.losses.push_back(loss.item<double>());
  }
  run.read(ddp.state_dict());
  run.read(optimizer.state_dict());
  return run;
}

TEST_P(GraphDdpOn, GradientsGatheredWithoutSyncAreAveragedByTheNextBackward) {
  run_on_ranks(3, [] { expect_same(accumulate(true), accumulate(false), str("rank ", me())); });
}

// ---- what it communicates

std::vector<const graph::Step*> means_of(const graph::Program& program) {
  std::vector<const graph::Step*> means;
  for (const graph::Step& step : program.steps) {
    const boxing::Route* route = step.route();
    if (route != nullptr && !route->steps.empty() && route->steps[0].is_mean)
      means.push_back(&step);
  }
  return means;
}

TEST(GraphDdp, GradientsShareBucketsInWhichTheyAreMade) {
  run_ranks(2, [] {
    DistributedDataParallel ddp{models::Mlp({6, 8, 8, 4})};
    optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
    Train graph(ddp, optimizer);
    const nn::CompiledGraph& compiled =
        graph.compile(ones({4 + me(), 6}), zeros({4 + me()}).to(int64));
    const graph::CompiledStep& plan = compiled.plan();
    const graph::Program& program = plan.program();

    const std::vector<const graph::Step*> means = means_of(program);
    ASSERT_EQ(means.size(), 1U) << to_string(program);
    EXPECT_EQ(plan.certificate().ranks[static_cast<size_t>(me())].num_collectives, 1);
    ASSERT_EQ(means[0]->inputs.size(), 6U) << "weights and biases of three layers";
    for (size_t i = 0; i < means[0]->inputs.size(); ++i) {
      EXPECT_EQ(program.root_of(means[0]->inputs[i]), program.root_of(means[0]->outputs[i]))
          << "the gradient is made where its mean will be\n"
          << to_string(program);
    }
    EXPECT_TRUE(has(compiled.explain(), "all_reduce_mean")) << compiled.explain();
    EXPECT_TRUE(has(compiled.explain(), "graph_ddp_test.cpp:")) << compiled.explain();
    EXPECT_TRUE(has(compiled.explain(), "the means of 6 tensors")) << compiled.explain();
    EXPECT_TRUE(has(compiled.summary(), "for local inputs like rank")) << compiled.summary();
  });
}

TEST(GraphDdp, LargeGradientsAreAveragedWhileBackwardRuns) {
  run_ranks(2, [] {
    DistributedDataParallel ddp{models::Mlp({1024, 2048, 1024, 2048, 1024})};  // 4 x 8 MiB
    optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
    Train graph(ddp, optimizer);
    const graph::CompiledStep& plan = graph.compile(ones({1, 1024}), zeros({1}).to(int64)).plan();

    const std::vector<const graph::Step*> means = means_of(plan.program());
    ASSERT_EQ(means.size(), 2U) << "of the last layer, and of the others";
    EXPECT_TRUE(means[0]->in_background) << "backward goes on";
    EXPECT_FALSE(means[1]->in_background) << "nothing is left to do";
    EXPECT_EQ(plan.certificate().ranks[0].num_collectives, 2);
  });
}

TEST_P(GraphDdpOn, RunsCommunicateAsTheCertificateStates) {
  run_on_ranks(3, [] {
    record_calls();
    DistributedDataParallel<nn::Sequential> ddp(kNormed.make_model());
    optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
    Train<nn::Sequential> graph(ddp, optimizer);
    for (int step = 0; step < 3; ++step) {
      const Batch batch = kNormed.make_batch(rows_of(step));
      const graph::CompiledStep& plan = graph.compile(batch.x, batch.y).plan();
      take_recorded_calls();
      graph(batch.x, batch.y);
      expect_as_certified(plan, take_recorded_calls(), str("step ", step));
      const auto buffers = static_cast<int64_t>(ddp.named_buffers().size());
      EXPECT_EQ(plan.certificate().ranks[static_cast<size_t>(me())].num_collectives, 1 + buffers);
    }
  });
}

TEST(GraphDdp, EvaluationCommunicatesNothing) {
  struct Evaluate : nn::Graph<Evaluate> {
    DistributedDataParallel<nn::Sequential> ddp;

    explicit Evaluate(const DistributedDataParallel<nn::Sequential>& d) : ddp(d) {}

    Tensor build(const Tensor& x) { return ddp(x); }
  };

  run_ranks(2, [] {
    DistributedDataParallel<nn::Sequential> ddp(kNormed.make_model());
    ddp.eval();
    Evaluate graph(ddp);
    // Rank 1 never calls it.
    if (me() == 0) {
      const Tensor x = randn({3, 1, 5, 5});
      EXPECT_EQ(graph(x).to_vector<float>(), ddp(x).to_vector<float>());
      EXPECT_FALSE(graph.compile(x).plan().concerns_others());
    }
    env::barrier();
  });
}

TEST(GraphDdp, APlanningWorldCompilesTheProgramsOfAllRanks) {
  const PlanningWorld world(4);
  DistributedDataParallel<nn::Sequential> ddp(kNormed.make_model());
  optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
  Train<nn::Sequential> graph(ddp, optimizer);
  const Batch batch = kNormed.make_batch(3);

  const graph::CompiledStep& plan = graph.compile(batch.x, batch.y).plan();

  ASSERT_EQ(plan.programs().size(), 4U);
  for (const auto& program : plan.programs())
    EXPECT_EQ(means_of(*program).size(), 1U);
  EXPECT_NE(plan.programs()[0], plan.programs()[1]) << "rank 0 sends its buffers";
  EXPECT_EQ(plan.programs()[1], plan.programs()[3]);
}

// ---- ranks that differ

// Returns what ranks 0 and 1 raise.
std::vector<std::string> errors_of(RunRanks run, const std::function<void()>& body) {
  std::vector<std::string> errors(2);
  run(2, [&] { errors[static_cast<size_t>(me())] = error_of<Error>(body); });
  return errors;
}

// Rank 0 uses one layer, and rank 1 another of the same shape.
struct UsesAnother : nn::Module<UsesAnother> {
  nn::Linear a{register_module("a", nn::Linear(3, 3))};
  nn::Linear b{register_module("b", nn::Linear(3, 3))};

  Tensor forward(const Tensor& x) { return me() == 0 ? a(x) : b(x); }
};

TEST_P(GraphDdpOn, RanksThatAverageDifferentParametersRaise) {
  for (const std::string& error : errors_of(GetParam(), [] {
         DistributedDataParallel ddp{UsesAnother()};
         optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
         Train graph(ddp, optimizer);
         graph(ones({2, 3}), zeros({2}).to(int64));
       })) {
    EXPECT_TRUE(has(error, "ranks 0 and 1 compiled different steps")) << error;
    EXPECT_TRUE(has(error, "in a.")) << error;
    EXPECT_TRUE(has(error, "in b.")) << error;
    EXPECT_TRUE(has(error, "graph_ddp_test.cpp:")) << error;
  }
}

struct UsesMore : nn::Module<UsesMore> {
  Branches layers{register_module("layers", Branches())};

  Tensor forward(const Tensor& x) { return layers(x, me() == 0); }
};

TEST_P(GraphDdpOn, ARankThatUsesMoreParametersRaises) {
  for (const std::string& error : errors_of(GetParam(), [] {
         DistributedDataParallel ddp{UsesMore()};
         optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
         Train graph(ddp, optimizer);
         graph(ones({2, 3}), zeros({2}).to(int64));
       })) {
    EXPECT_TRUE(has(error, "ranks 0 and 1 compiled different steps")) << error;
    EXPECT_TRUE(has(error, "extra.")) << error;
  }
}

// As in eager steps, ranks need not compute the same with their own tensors.
struct OwnWays : nn::Module<OwnWays> {
  nn::Linear first{register_module("first", nn::Linear(5, 6))};
  nn::Linear last{register_module("last", nn::Linear(6, 4))};

  Tensor forward(const Tensor& x) {
    const Tensor y = first(x);
    return last(me() == 0 ? gelu(y) : dropout(relu(y) * 2, {.p = 0.5}));
  }
};

TEST_P(GraphDdpOn, RanksMayComputeDifferentThingsWithTheirOwnTensors) {
  const Task<OwnWays> task{[] { return OwnWays(); }, kMlp.make_batch};
  run_on_ranks(2, [&] { expect_same(train(task, true), train(task, false), str("rank ", me())); });
}

// A large activation of one rank only is computed again in its backward.
TEST(GraphDdp, RanksMayCompileTheirOwnTensorsDifferently) {
  struct Wide : nn::Graph<Wide> {
    DistributedDataParallel<nn::Sequential> ddp;
    optim::SGD optimizer;

    Wide()
        : ddp(nn::Sequential(nn::Linear(2, 256), nn::GELU(), nn::Linear(256, 2))),
          optimizer(ddp.parameters(), {.lr = 0.1}) {
      add_optimizer(optimizer);
    }

    Tensor build(const Tensor& x) {
      Tensor loss = ddp(x).square().mean();
      loss.backward();
      return loss;
    }
  };

  run_ranks(2, [] {
    Wide graph;
    const Tensor x = ones({me() == 0 ? 9000 : 3, 2});
    const graph::CompiledStep& plan = graph.compile(x).plan();
    int64_t recomputed = 0;
    for (const graph::PassResult& pass : plan.passes())
      recomputed += pass.name == std::string("recompute_activations") ? pass.changes : 0;
    EXPECT_EQ(recomputed, me() == 0 ? 1 : 0);
    EXPECT_GT(graph(x).item<float>(), 0);
  });
}

TEST_P(GraphDdpOn, AnErrorOfOneRankReachesTheOthers) {
  const std::vector<std::string> errors = errors_of(GetParam(), [] {
    DistributedDataParallel ddp{models::Mlp({5, 7, 4})};
    optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
    Train graph(ddp, optimizer);
    graph(ones({2, 5}), full({2}, me() == 0 ? 1.0 : 9.0).to(int64));
  });
  EXPECT_TRUE(has(errors[1], "cross_entropy")) << errors[1];
  EXPECT_TRUE(has(errors[0], "cross_entropy")) << errors[0];
}

// ---- misuse

TEST(GraphDdp, MakingOneInBuildIsRefused) {
  struct Makes : nn::Graph<Makes> {
    nn::Linear layer{2, 2};

    Tensor build(const Tensor& x) {
      DistributedDataParallel ddp(layer);
      return ddp(x);
    }
  };

  for (const std::string& error : errors_of(run_ranks, [] { Makes()(ones({2, 2})); })) {
    EXPECT_TRUE(has(error, "[DistributedDataParallel] it was constructed in build()")) << error;
  }
}

TEST(GraphDdp, CallsUnderNoSyncAreRefusedAndLaterCallsAreNot) {
  for (const std::string& error : errors_of(run_ranks, [] {
         DistributedDataParallel ddp{models::Mlp({5, 7, 4})};
         optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
         Train graph(ddp, optimizer);
         const Batch batch = kMlp.make_batch(3);
         graph(batch.x, batch.y);
         std::string error;
         {
           const auto guard = ddp.no_sync();
           error = error_of<Error>([&] { graph(batch.x, batch.y); });
         }
         EXPECT_TRUE(graph(batch.x, batch.y).defined());
         throw InvalidArgument(error);
       })) {
    EXPECT_TRUE(has(error, "under no_sync()")) << error;
    EXPECT_TRUE(has(error, "call no_sync() in build()")) << error;
    EXPECT_TRUE(has(error, "graph_ddp_test.cpp:")) << error;
  }
}

// ---- together with other options

TEST(GraphDdp, FirstRunsAreComparedWithEagerMode) {
  setenv("FLOW_GRAPH_VERIFY", "1", 1);
  run_ranks(2,
            [] { expect_same(train(kNormed, true), train(kNormed, false), str("rank ", me())); });
  unsetenv("FLOW_GRAPH_VERIFY");
}

TEST(GraphDdp, MicroBatchesGiveTheGradientsOfTheWholeBatch) {
  run_ranks(2, [] {
    const auto train_in_parts = [](int64_t parts) {
      manual_seed(7);
      models::Mlp model({5, 7, 4});
      model.to(float64);
      DistributedDataParallel ddp(model);
      optim::SGD optimizer(ddp.parameters(), {.lr = 0.1, .momentum = 0.9});
      Train graph(ddp, optimizer, {.clip_grad_norm = kClip});
      graph.config().set_micro_batches(parts);
      std::vector<double> numbers;
      for (int step = 0; step < 3; ++step) {
        const Batch batch = kMlp.make_batch(5 + me());
        numbers.push_back(graph(batch.x.to(float64), batch.y).template item<double>());
        const graph::CompiledStep& plan = graph.compile(batch.x.to(float64), batch.y).plan();
        EXPECT_EQ(plan.certificate().ranks[static_cast<size_t>(me())].num_collectives, 1);
      }
      for (const Tensor& parameter : ddp.parameters()) {
        const std::vector<double> values = parameter.to_vector<double>();
        numbers.insert(numbers.end(), values.begin(), values.end());
      }
      return numbers;
    };
    const std::vector<double> whole = train_in_parts(1), parts = train_in_parts(3);
    ASSERT_EQ(whole.size(), parts.size());
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(parts[i], whole[i], 1e-12);
  });
}

TEST_P(GraphDdpOn, EachRankReadsItsOwnSavedPlan) {
  const TempFolder folder;
  std::vector<std::vector<double>> losses(2);  // of the compiled plan, by rank
  for (const bool is_saved : {false, true}) {
    run_on_ranks(2, [&] {
      manual_seed(8);
      DistributedDataParallel ddp{models::Mlp({5, 7, 4})};
      optim::SGD optimizer(ddp.parameters(), {.lr = 0.1});
      Train graph(ddp, optimizer);
      graph.config().set_plan_cache(folder.path());
      const Batch batch = kMlp.make_batch(3 + me());
      const std::string summary = graph.compile(batch.x, batch.y).summary();
      EXPECT_EQ(has(summary, "read from the plan"), is_saved) << summary;
      std::vector<double> own;
      for (int step = 0; step < 3; ++step)
        own.push_back(graph(batch.x, batch.y).item<double>());
      if (!is_saved) losses[static_cast<size_t>(me())] = own;
      EXPECT_EQ(own, losses[static_cast<size_t>(me())]);
    });
  }
}

}  // namespace
}  // namespace flow
