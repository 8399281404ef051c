// nn::Graph: a compiled step gives what the eager step gives, bit for bit, on one rank and on many.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

constexpr int kSteps = 20;

// The compiled step.
template <class Model>
struct Training : nn::Graph<Training<Model>> {
  Model model;

  Training(Model m, optim::Optimizer& optimizer, const nn::GraphOptimizerOptions& options = {})
      : model(m) {
    this->add_optimizer(optimizer, options);
    this->config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = cross_entropy(out.reshape({-1, out.size(-1)}), y.flatten());
    loss.backward();
    return loss;
  }
};

// Where data and model lie; no placement: local tensors on one rank.
using MakeOptimizer =
    std::function<std::shared_ptr<optim::Optimizer>(const std::vector<Tensor>& parameters)>;

struct Batch {
  Tensor x, y;
};

template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Batch(const TensorOptions& options)> batch;
  std::optional<double> clip = {};  // of the norm of the gradients
};

struct Run {
  std::vector<float> losses;
  std::vector<std::pair<std::string, std::vector<float>>> state;
  friend bool operator==(const Run&, const Run&) = default;
};

template <class Model>
Run train(const Task<Model>& task, const TrainingLayout& layout,
          const MakeOptimizer& make_optimizer, bool compiled) {
  manual_seed(11);
  Model model = task.make_model();
  if (layout.placement.defined()) model.to_global(layout.placement, layout.model);
  const std::shared_ptr<optim::Optimizer> optimizer = make_optimizer(model.parameters());
  Training<Model> graph(model, *optimizer, {.clip_grad_norm = task.clip});
  Run run;
  for (int step = 0; step < kSteps; ++step) {
    const Batch batch = task.batch({.placement = layout.placement, .sbp = layout.data});
    if (compiled) {
      run.losses.push_back(graph(batch.x, batch.y).template item<float>());
      continue;
    }
    const Tensor out = model(batch.x);
    const Tensor loss = cross_entropy(out.reshape({-1, out.size(-1)}), batch.y.flatten());
    optimizer->zero_grad();
    loss.backward();
    if (task.clip) nn::utils::clip_grad_norm_(model.parameters(), *task.clip);
    optimizer->step();
    run.losses.push_back(loss.template item<float>());
  }
  for (const auto& [name, tensor] : model.state_dict())
    run.state.emplace_back(name, tensor.template to_vector<float>());
  for (const auto& [name, tensor] : optimizer->state_dict())
    run.state.emplace_back(name, tensor.template to_vector<float>());
  return run;
}

std::shared_ptr<optim::Optimizer> momentum_sgd(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
}

std::shared_ptr<optim::Optimizer> adamw(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01});
}

template <class Model>
void expect_graph_equals_eager(const Task<Model>& task,
                               const std::vector<TrainingLayout>& layouts) {
  for (const TrainingLayout& layout : layouts) {
    for (const MakeOptimizer& make_optimizer :
         {MakeOptimizer(momentum_sgd), MakeOptimizer(adamw)}) {
      run_ranks(layout.ranks(), [&] {
        const Run eager = train(task, layout, make_optimizer, false);
        const Run graph = train(task, layout, make_optimizer, true);
        EXPECT_NE(eager.losses.front(), eager.losses.back());
        EXPECT_EQ(graph.losses, eager.losses) << layout.name;
        ASSERT_EQ(graph.state.size(), eager.state.size());
        for (size_t i = 0; i < eager.state.size(); ++i)
          EXPECT_EQ(graph.state[i], eager.state[i]) << layout.name << " " << eager.state[i].first;
      });
    }
  }
}

Batch images(const TensorOptions& options, const Shape& shape) {
  TensorOptions labels = options;
  labels.dtype = int64;
  return {randn(shape, options), randint(0, 4, {shape[0]}, labels)};
}

TEST(GraphEqualsEager, Mlp) {
  const Task<models::Mlp> task{[] {
                                 return models::Mlp({7, 10, 9, 4});
                               },
                               [](const TensorOptions& o) {
                                 return images(o, {10, 7});
                               }};
  expect_graph_equals_eager(
      task, {{},
             {"dp2", kPair, kS0, {{"*", kB}}},
             {"tp2", kPair, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"fc3.*", kS0}, {"*", kB}}},
             {"dp2 x tp2",
              kGrid,
              {kS0, kB},
              {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}}}});
}

// Gradients of transposed weights arrive transposed in memory, where norms sum in another order.
struct Transposed : nn::Module<Transposed> {
  Tensor first{register_parameter("first", (randn({37, 37}) * 0.2).requires_grad_())};
  Tensor second{register_parameter("second", (randn({4, 37}) * 0.2).requires_grad_())};

  Tensor forward(const Tensor& x) {
    const Tensor hidden = matmul(x, first.t()) + matmul(x, first) * 0.5;
    return matmul(relu(hidden), second.t().contiguous());
  }
};

TEST(GraphEqualsEager, TransposedWeightsWithClipping) {
  const Task<Transposed> task{[] { return Transposed(); },
                              [](const TensorOptions& o) {
                                return images(o, {10, 37});
                              },
                              0.1};
  expect_graph_equals_eager(task, {{},
                                   {"dp2", kPair, kS0, {{"*", kB}}},
                                   {"tp2", kPair, kB, {{"*", kS0}}},
                                   {"tp2", kPair, kB, {{"*", kS1}}}});
}

TEST(GraphEqualsEager, LenetWithDropout) {
  const Task<models::Lenet> task{[] { return models::Lenet({.dropout = 0.5}); },
                                 [](const TensorOptions& o) {
                                   return images(o, {4, 1, 28, 28});
                                 }};
  expect_graph_equals_eager(
      task,
      {{},
       {"dp2", kPair, kS0, {{"*", kB}}},
       {"tp2", kPair, kB, {{"conv1.*", kS0}, {"conv2.weight", kS1}, {"hidden.*", kS0}, {"*", kB}}},
       {"dp2 x tp2",
        kGrid,
        {kS0, kB},
        {{"hidden.*", {kB, kS0}}, {"outlayer.weight", {kB, kS1}}, {"*", {kB, kB}}}}});
}

TEST(GraphEqualsEager, Gpt) {
  constexpr int64_t kVocabulary = 16, kLength = 8;
  const Task<models::Gpt> task{[] {
                                 return models::Gpt({.vocab_size = kVocabulary,
                                                     .block_size = kLength,
                                                     .n_layer = 2,
                                                     .n_head = 2,
                                                     .n_embd = 16,
                                                     .dropout = 0.1});
                               },
                               [](TensorOptions o) {
                                 o.dtype = int64;
                                 return Batch{randint(0, kVocabulary, {4, kLength}, o),
                                              randint(0, kVocabulary, {4, kLength}, o)};
                               }};
  expect_graph_equals_eager(
      task, {{},
             {"dp2", kPair, kS0, {{"*", kB}}},
             {"tp2", kPair, kB, gpt_layout(kS0, kS1, kB)},
             {"dp2 x tp2", kGrid, {kS0, kB}, gpt_layout({kB, kS0}, {kB, kS1}, {kB, kB})}});
}

TEST(GraphEqualsEager, MobileNetV2) {
  const models::MobileNetV2Options small{
      .num_classes = 4,
      .width_mult = 0.25,
      .inverted_residual_setting = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 1, 2}},
      .last_channel = 64};
  const Task<models::MobileNetV2> task{[small] { return models::MobileNetV2(small); },
                                       [](const TensorOptions& o) {
                                         return images(o, {4, 3, 32, 32});
                                       }};
  expect_graph_equals_eager(
      task,
      {{},
       {"dp2", kPair, kS0, {{"*", kB}}},
       {"tp2", kPair, kB, {{"classifier.*.weight", kS0}, {"*", kB}}},
       {"dp2 x tp2", kGrid, {kS0, kB}, {{"classifier.*.weight", {kB, kS0}}, {"*", {kB, kB}}}}});
}

// ---- optimizers, schedules, options

void expect_optimizer_equals_eager(const MakeOptimizer& make_optimizer) {
  const Task<models::Mlp> task{[] {
                                 return models::Mlp({7, 10, 4});
                               },
                               [](const TensorOptions& o) {
                                 return images(o, {10, 7});
                               }};
  EXPECT_EQ(train(task, {}, make_optimizer, true), train(task, {}, make_optimizer, false));
}

TEST(Graph, EveryOptimizerStepsAsEagerly) {
  const auto make = []<class O>(auto options) {
    return [options](const std::vector<Tensor>& parameters) -> std::shared_ptr<optim::Optimizer> {
      return std::make_shared<O>(parameters, options);
    };
  };
  expect_optimizer_equals_eager(make.operator()<optim::SGD>(
      optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5, .weight_decay = 0.01}));
  expect_optimizer_equals_eager(make.operator()<optim::Adam>(optim::AdamOptions{.amsgrad = true}));
  expect_optimizer_equals_eager(make.operator()<optim::NAdam>(optim::NAdamOptions{}));
  expect_optimizer_equals_eager(make.operator()<optim::NAdam>(
      optim::NAdamOptions{.weight_decay = 0.1, .decoupled_weight_decay = true}));
  expect_optimizer_equals_eager(make.operator()<optim::RAdam>(optim::RAdamOptions{.lr = 0.1}));
  expect_optimizer_equals_eager(make.operator()<optim::Adamax>(optim::AdamaxOptions{}));
  expect_optimizer_equals_eager(make.operator()<optim::Adagrad>(optim::AdagradOptions{}));
  expect_optimizer_equals_eager(make.operator()<optim::Adadelta>(optim::AdadeltaOptions{}));
  expect_optimizer_equals_eager(
      make.operator()<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.5, .centered = true}));
  expect_optimizer_equals_eager(make.operator()<optim::LAMB>(optim::LAMBOptions{}));
  expect_optimizer_equals_eager(
      make.operator()<optim::ASGD>(optim::ASGDOptions{.lr = 0.1, .lambd = 0.1, .t0 = 1}));
  expect_optimizer_equals_eager(make.operator()<optim::Rprop>(optim::RpropOptions{}));
  expect_optimizer_equals_eager(
      make.operator()<optim::Adafactor>(optim::AdafactorOptions{.lr = 0.1, .weight_decay = 0.1}));
}

// Compiling makes the states of an optimizer, which nothing has used yet.
TEST(Graph, RatesAndDtypesMayChangeBetweenCompilingAndTheFirstStep) {
  const auto run = [](bool compiles, DType dtype) {
    manual_seed(3);
    models::Mlp model({3, 4, 2});
    optim::Rprop optimizer(model.parameters(), {.lr = 0.5});
    Training<models::Mlp> graph(model, optimizer);
    const Tensor x = randn({5, 3}), y = tensor({0, 1, 1, 0, 1});
    if (compiles) graph.compile(x, y);
    optimizer.set_lr(0.01);
    model.to(dtype);
    for (int step = 0; step < 3; ++step)
      graph(x.to(dtype), y);
    std::vector<std::vector<double>> values;
    for (const Tensor& parameter : model.parameters())
      values.push_back(parameter.to(float64).to_vector<double>());
    return values;
  };

  EXPECT_EQ(run(true, float32), run(false, float32));
  EXPECT_EQ(run(true, float64), run(false, float64));
}

// A model of matrices only.
struct TwoMatrices : nn::Module<TwoMatrices> {
  nn::Linear first{register_module("first", nn::Linear(6, 8, {.bias = false}))};
  nn::Linear second{register_module("second", nn::Linear(8, 3, {.bias = false}))};

  Tensor forward(const Tensor& x) { return second(tanh(first(x))); }
};

TEST(Graph, MuonStepsAsEagerly) {
  manual_seed(5);
  TwoMatrices eager, compiled;
  compiled.load_state_dict(eager.state_dict());
  optim::Muon one(eager.parameters(), {.lr = 0.05}), other(compiled.parameters(), {.lr = 0.05});
  Training<TwoMatrices> graph(compiled, other);
  for (int step = 0; step < 4; ++step) {
    const Tensor x = randn({5, 6}), y = randint(0, 3, {5});
    one.zero_grad();
    const Tensor loss = cross_entropy(eager(x), y);
    loss.backward();
    one.step();
    EXPECT_NEAR(graph(x, y).item<float>(), loss.item<float>(), 2e-3) << step;
  }
  EXPECT_TRUE(compiled.first.weight.allclose(eager.first.weight, {.rtol = 0, .atol = 5e-3}));
}

TEST(Graph, SchedulesAndClippingFollowEager) {
  const auto run = [](bool compiled) {
    manual_seed(3);
    models::Mlp model({5, 8, 4});
    optim::AdamW optimizer(model.parameters(), {.lr = 0.1});
    optim::lr_scheduler::StepLR schedule(optimizer, {.step_size = 3, .gamma = 0.5});
    Training<models::Mlp> graph(model, optimizer,
                                {.lr_scheduler = &schedule, .clip_grad_norm = 0.1});
    std::vector<float> losses;
    for (int step = 0; step < 8; ++step) {
      const Tensor x = randn({6, 5}), y = randint(0, 4, {6});
      if (compiled) {
        losses.push_back(graph(x, y).item<float>());
        continue;
      }
      const Tensor loss = cross_entropy(model(x), y);
      optimizer.zero_grad();
      loss.backward();
      nn::utils::clip_grad_norm_(model.parameters(), 0.1);
      optimizer.step();
      schedule.step();
      losses.push_back(loss.item<float>());
    }
    EXPECT_EQ(optimizer.lr(), 0.025);
    return losses;
  };
  EXPECT_EQ(run(true), run(false));
}

// As in an eager loop, a run that updates nothing is no step.
TEST(Graph, EvaluationStepsNoScheduleAndGrowsNoScale) {
  struct Step : nn::Graph<Step> {
    nn::Linear fc{2, 1};
    optim::SGD optimizer{fc.parameters(), {.lr = 0.1}};
    optim::lr_scheduler::StepLR schedule{optimizer, {.step_size = 1, .gamma = 0.5}};
    optim::GradScaler scaler{{.init_scale = 4, .growth_interval = 1}};

    Step() {
      add_optimizer(optimizer, {.lr_scheduler = &schedule});
      config().set_grad_scaler(scaler);
    }

    Tensor build(const Tensor& x) {
      Tensor loss = fc(x).square().mean();
      if (is_grad_enabled()) loss.backward();
      return loss;
    }
  };

  Step graph;
  const Tensor x = ones({3, 2});
  graph(x);
  {
    const NoGradGuard no_grad;
    graph(x);
    graph(x);
  }
  EXPECT_EQ(graph.optimizer.lr(), 0.05);
  EXPECT_EQ(graph.scaler.get_scale(), 8);
}

TEST(Graph, CompiledAndEagerStepsMayFollowEachOther) {
  const auto run = [](int compiled_from, int reload_at) {
    manual_seed(3);
    models::Mlp model({5, 8, 4});
    optim::AdamW optimizer(model.parameters(), {.lr = 0.1});
    Training<models::Mlp> graph(model, optimizer);
    for (int step = 0; step < 6; ++step) {
      const Tensor x = randn({6, 5}), y = randint(0, 4, {6});
      if (step == reload_at) optimizer.load_state_dict(optimizer.state_dict());
      if (step % 3 >= compiled_from) {
        graph(x, y);
        continue;
      }
      optimizer.zero_grad();
      cross_entropy(model(x), y).backward();
      optimizer.step();
    }
    return model.parameters()[0].to_vector<float>();
  };
  const std::vector<float> eager = run(3, -1);
  EXPECT_EQ(run(1, -1), eager);
  EXPECT_EQ(run(0, 4), eager) << "state that was loaded is state of the plan";
}

TEST(Graph, LeavesGradientsOutsideAlone) {
  models::Mlp model({5, 8, 4});
  optim::SGD optimizer(model.parameters());
  const Tensor grad = ones({8, 5});
  model.parameters()[0].set_grad(grad);
  Training<models::Mlp> graph(model, optimizer);
  graph(randn({6, 5}), randint(0, 4, {6}));
  EXPECT_TRUE(model.parameters()[0].grad().is_same(grad));
  EXPECT_FALSE(model.parameters()[2].grad().defined());
}

TEST(Graph, ZeroKeepsValuesAndCutsState) {
  const auto run = [](bool zero) {
    manual_seed(5);
    models::Mlp model({6, 8, 4});
    model.to_global(kPair, kB);
    optim::AdamW optimizer(model.parameters(), {.lr = 0.1});

    struct Zero : Training<models::Mlp> {
      Zero(models::Mlp m, optim::Optimizer& o, bool on) : Training(m, o) {
        if (on) config().enable_zero({.stage = 1});
      }
    };

    Zero graph(model, optimizer, zero);
    for (int step = 0; step < 3; ++step) {
      graph(randn({6, 6}, {.placement = kPair, .sbp = kS0}),
            randint(0, 4, {6}, {.dtype = int64, .placement = kPair, .sbp = kS0}));
    }
    const nn::StateDict state = optimizer.state_dict();
    EXPECT_EQ(state.at("0.exp_avg").sbp(), NdSbp(zero ? kS0 : kB));
    return model.parameters()[0].to_vector<float>();
  };
  run_ranks(2, [&] { EXPECT_EQ(run(true), run(false)); });
}

TEST(Graph, AmpEqualsAutocast) {
  manual_seed(3);
  models::Mlp model({5, 8, 4});

  struct Amp : nn::Graph<Amp> {
    models::Mlp model;

    explicit Amp(models::Mlp m) : model(m) { config().enable_amp(bfloat16); }

    Tensor build(const Tensor& x) { return model(x); }
  };

  const Tensor x = randn({6, 5});
  Amp graph(model);
  const Tensor got = graph(x);
  const AutocastGuard autocast(bfloat16);
  const Tensor want = model(x);
  EXPECT_EQ(got.dtype(), want.dtype());
  EXPECT_EQ(got.to_vector<float>(), want.to_vector<float>());
}

TEST(Graph, MicroBatchesGiveWhatTheWholeBatchGives) {
  struct Regression : nn::Graph<Regression> {
    models::Mlp model;

    Regression(models::Mlp m, optim::Optimizer& optimizer, int64_t parts) : model(m) {
      add_optimizer(optimizer);
      config().set_micro_batches(parts);
    }

    Tensor build(const Tensor& x, const Tensor& y) {
      Tensor loss = mse_loss(model(x), y);
      loss.backward();
      return loss;
    }
  };

  const auto run = [](int64_t parts) {
    manual_seed(5);
    models::Mlp model({6, 16, 4});
    optim::AdamW optimizer(model.parameters(), {.lr = 0.1});
    Regression graph(model, optimizer, parts);
    std::vector<float> losses;
    for (int step = 0; step < 5; ++step)
      losses.push_back(graph(randn({10, 6}), randn({10, 4})).item<float>());
    return losses;
  };
  const std::vector<float> whole = run(1);
  for (const int64_t parts : {2, 3, 10}) {
    const std::vector<float> got = run(parts);
    for (size_t i = 0; i < whole.size(); ++i)
      EXPECT_NEAR(got[i], whole[i], 1e-5) << parts << " parts, step " << i;
  }
}

TEST(Graph, MicroBatchesNameWhatMixesSamples) {
  struct Mixes : nn::Graph<Mixes> {
    Mixes() { config().set_micro_batches(2); }

    Tensor build(const Tensor& x) { return cumsum(x, 0); }
  };

  Mixes graph;
  const std::string error = error_of<Error>([&] { graph(ones({4})); });
  EXPECT_NE(error.find("cumsum at "), std::string::npos) << error;
  EXPECT_NE(error.find("graph_test.cpp:"), std::string::npos) << error;
}

// ---- what build() takes and returns

struct Pieces {
  Tensor sum;
  std::vector<Tensor> rows;
};

struct Taker : nn::Graph<Taker> {
  int calls = 0;

  std::tuple<Pieces, std::pair<Tensor, Tensor>> build(const std::vector<Tensor>& in,
                                                      const Tensor& x) {
    ++calls;
    Pieces pieces{in[0] + x, {}};
    for (const Tensor& tensor : in)
      pieces.rows.push_back(tensor * 2.0);
    return {pieces, {x, x - 1.0}};
  }
};

TEST(Graph, TakesAndReturnsNestedValues) {
  Taker graph;
  for (int i = 0; i < 2; ++i) {
    const auto [pieces, pair] =
        graph(std::vector{tensor({1.F + static_cast<float>(i)}), tensor({5.F})}, tensor({3.F}));
    EXPECT_EQ(pieces.sum.item<float>(), 4.F + static_cast<float>(i));
    ASSERT_EQ(pieces.rows.size(), 2U);
    EXPECT_EQ(pieces.rows[1].item<float>(), 10.F);
    EXPECT_EQ(pair.first.item<float>(), 3.F);
    EXPECT_EQ(pair.second.item<float>(), 2.F);
  }
  EXPECT_EQ(graph.calls, 1);
  graph(std::vector{tensor({1.F})}, tensor({3.F}));
  EXPECT_EQ(graph.calls, 2) << "another number of elements is another plan";
  graph(std::vector{tensor({1.F, 2.F})}, tensor({3.F, 4.F}));
  EXPECT_EQ(graph.calls, 3) << "another shape is another plan";
  graph(std::vector{tensor({1.F}), tensor({5.F})}, tensor({3.F}));
  EXPECT_EQ(graph.calls, 3) << "the first plan is kept";
}

TEST(Graph, TakesStridedInputs) {
  Taker graph;
  const Tensor x = tensor({{1.F, 2.F}, {3.F, 4.F}});
  const auto [pieces, pair] = graph(std::vector{x.t()}, x);
  EXPECT_EQ(pieces.sum.to_vector<float>(), (std::vector<float>{2, 5, 5, 8}));
}

// The parts of 5 rows differ, and a rank outside the placement has none.
TEST(Graph, PartsMayBecomeLocal) {
  struct Squares : nn::Graph<Squares> {
    Tensor build(const Tensor& x) {
      const Tensor part = (x * 2.0).to_local();
      return (part * part).to_global({.placement = x.placement(), .sbp = x.sbp()});
    }
  };

  run_ranks(3, [] {
    for (const Placement& ranks :
         {Placement("cpu", {0, 1, 2}), Placement("cpu", {2, 0}), Placement("cpu", {1, 2})}) {
      Squares squares;
      const Tensor x = arange(5, {.placement = ranks, .sbp = sbp::split(0)});
      for (int run = 0; run < 2; ++run)
        EXPECT_EQ(squares(x).to_vector<int64_t>(), std::vector<int64_t>({0, 4, 16, 36, 64}));
    }
  });
}

// Strides differ between ranks, and ranks outside the placement have none.
TEST(Graph, ContiguousIsTheSameStepOnAllRanks) {
  struct Flattened : nn::Graph<Flattened> {
    Tensor build(const Tensor& x) { return (x * 2.0).t().contiguous().view({6}); }
  };

  run_ranks(3, [] {
    const Tensor whole = tensor({{0.f, 1.f, 2.f}, {3.f, 4.f, 5.f}});
    const std::vector<float> expected = {0, 6, 2, 8, 4, 10};
    for (const NdSbp& sbp : {NdSbp(sbp::broadcast), NdSbp(sbp::split(1))}) {
      Flattened flattened;
      const Tensor x = tensor(whole.to_vector<float>(), {2, 3},
                              {.placement = Placement("cpu", {1, 2}), .sbp = sbp});
      EXPECT_EQ(flattened(x).to_vector<float>(), expected) << sbp;
    }
  });
}

TEST(Graph, FollowsTheModeOfItsModules) {
  struct Drop : nn::Graph<Drop> {
    nn::Dropout dropout{0.5};

    Tensor build(const Tensor& x) { return dropout(x); }
  };

  Drop graph;
  const Tensor x = ones({64});
  EXPECT_NE(graph(x).to_vector<float>(), x.to_vector<float>());
  graph.dropout.eval();
  EXPECT_EQ(graph(x).to_vector<float>(), x.to_vector<float>());
}

TEST(Graph, UpdatesBuffersOfItsModules) {
  struct Norm : nn::Graph<Norm> {
    nn::BatchNorm1d norm{2};

    Tensor build(const Tensor& x) { return norm(x); }
  };

  Norm graph;
  const Tensor x = tensor({{1.F, 2.F}, {3.F, 6.F}});
  graph(x);
  graph(x);
  EXPECT_EQ(graph.norm.num_batches_tracked.item<int64_t>(), 2);
  nn::BatchNorm1d eager(2);
  eager(x);
  eager(x);
  EXPECT_EQ(graph.norm.running_var.to_vector<float>(), eager.running_var.to_vector<float>());
}

TEST(Graph, BatchNormTakesTheAverageOfAllBatches) {
  struct Norm : nn::Graph<Norm> {
    nn::BatchNorm1d norm{4, {.momentum = std::nullopt}};

    Tensor build(const Tensor& x) { return norm(x); }
  };

  manual_seed(3);
  Norm graph;
  nn::BatchNorm1d eager(4, {.momentum = std::nullopt});
  Tensor mean = zeros({4});
  for (int step = 1; step <= 4; ++step) {
    const Tensor x = randn({6, 4});
    EXPECT_TRUE(graph(x).equal(eager(x)));
    mean = mean + x.mean({0});
    EXPECT_TRUE(eager.running_mean.allclose(mean / step));
    EXPECT_EQ(graph.norm.running_mean.to_vector<float>(), eager.running_mean.to_vector<float>());
    EXPECT_EQ(graph.norm.running_var.to_vector<float>(), eager.running_var.to_vector<float>());
  }
}

TEST(Graph, AveragesOfAllBatchesAreRefusedInMicroBatches) {
  struct Step : nn::Graph<Step> {
    nn::Linear fc{2, 2};
    nn::BatchNorm1d norm{2, {.momentum = std::nullopt}};
    optim::SGD optimizer{fc.parameters(), {.lr = 0.1}};

    Step() {
      add_optimizer(optimizer);
      config().set_micro_batches(2);
    }

    Tensor build(const Tensor& x) {
      Tensor loss = norm(fc(x)).square().mean();
      loss.backward();
      return loss;
    }
  };

  Step graph;
  EXPECT_THROW(graph(randn({6, 2})), Unsupported);
}

TEST(Graph, LocalDrawsAreThoseOfTheRank) {
  struct Noise : nn::Graph<Noise> {
    Tensor build(const Tensor& x) { return x + rand({16}); }
  };

  std::vector<std::vector<float>> drawn(2);
  run_ranks(2, [&] {
    manual_seed(3);
    const Tensor eager = rand({16});
    manual_seed(3);
    Noise graph;
    auto& own = drawn[static_cast<size_t>(env::rank())];
    own = graph(zeros({16})).to_vector<float>();
    EXPECT_EQ(own, eager.to_vector<float>());
  });
  EXPECT_NE(drawn[0], drawn[1]);
}

TEST(Graph, ScalarsLieOnEveryRank) {
  struct Sum : nn::Graph<Sum> {
    Tensor build(const Tensor& x) { return x.sum(); }
  };

  run_ranks(2, [] {
    const Placement second("cpu", {1});
    Sum graph;
    const Tensor sum = graph(full({3}, 2.F, {.placement = second, .sbp = kB}));
    EXPECT_EQ(sum.placement(), kPair);
    if (env::rank() == 0) {
      EXPECT_EQ(sum.item<float>(), 6.F) << "no other rank takes part";
    }
  });
}

// ---- what is refused

TEST(Graph, RefusesToReadValues) {
  struct Reads : nn::Graph<Reads> {
    Tensor build(const Tensor& x) { return x * x.item<float>(); }
  };

  Reads graph;
  EXPECT_NE(error_of<Error>([&] { graph(ones({})); }).find("are not known while a graph is traced"),
            std::string::npos);
}

TEST(Graph, RefusesToWriteToOtherTensors) {
  struct Writes : nn::Graph<Writes> {
    Tensor counter = zeros({});

    Tensor build(const Tensor& x) {
      counter.add_(1);
      return x + counter;
    }
  };

  Writes graph;
  const std::string error = error_of<Error>([&] { graph(ones({})); });
  EXPECT_NE(error.find("graph_test.cpp:"), std::string::npos) << error;
  EXPECT_NE(error.find("not a parameter or buffer"), std::string::npos) << error;
  EXPECT_EQ(graph.counter.item<float>(), 0.F);
}

TEST(Graph, AChangedConfigurationCompilesAnew) {
  struct Config : nn::Graph<Config> {
    nn::Linear linear{3, 2};

    Tensor build(const Tensor& x) { return linear(x); }

    using nn::GraphBase::config;
  };

  Config graph;
  const Tensor x = randn({4, 3});
  EXPECT_EQ(graph(x).dtype(), float32);
  graph.config().enable_amp(bfloat16);
  EXPECT_EQ(graph(x).dtype(), bfloat16);
}

TEST(Graph, RefusesWhatItDoesNotCompile) {
  struct Config : nn::Graph<Config> {
    Tensor build(const Tensor& x) { return x; }

    using nn::GraphBase::config;
  };

  Config graph;
  EXPECT_THROW(graph.config().set_micro_batches(0), InvalidArgument);
  EXPECT_THROW(graph.config().enable_zero({.stage = 4}), InvalidArgument);
  EXPECT_THROW(graph.config().enable_amp(float64), Unsupported);
  EXPECT_THROW(graph.config().enable_pass("settle_stages", false), InvalidArgument);
  EXPECT_THROW(graph.config().enable_amp(float16, {.init_scale = 0}), InvalidArgument);
}

}  // namespace
}  // namespace flow
