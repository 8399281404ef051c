// Scaled losses in graphs: compiled steps do what eager autocast with a GradScaler does.
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

using MakeOptimizer =
    std::function<std::shared_ptr<optim::Optimizer>(const std::vector<Tensor>& parameters)>;

struct Recorded {
  std::vector<float> losses;
  std::vector<double> scales, rates;
  std::vector<std::pair<std::string, std::vector<float>>> state;
  friend bool operator==(const Recorded&, const Recorded&) = default;
};

struct Mixed : nn::Graph<Mixed> {
  models::Mlp model;

  Mixed(models::Mlp m, optim::Optimizer& optimizer, const nn::GraphOptimizerOptions& options,
        const optim::GradScalerOptions& scaling)
      : model(m) {
    add_optimizer(optimizer, options);
    config().enable_amp(float16, scaling).set_passes(nn::exact);
  }

  Mixed(models::Mlp m, optim::Optimizer& optimizer, optim::GradScaler& scaler) : model(m) {
    add_optimizer(optimizer);
    config().set_grad_scaler(scaler).enable_amp(float16).set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

// The scale is so large at first that gradients overflow, and grows into overflows again.
constexpr optim::GradScalerOptions kScaling{.init_scale = 33554432, .growth_interval = 2};

Recorded run_mixed(const MakeOptimizer& make_optimizer, bool compiled, const NdSbp& data = {}) {
  manual_seed(3);
  models::Mlp model({5, 8, 4});
  if (!data.empty()) model.to_global(kPair, kB);
  const std::shared_ptr<optim::Optimizer> optimizer = make_optimizer(model.parameters());
  optim::lr_scheduler::StepLR schedule(*optimizer, {.step_size = 3, .gamma = 0.5});
  Mixed graph(model, *optimizer, {.lr_scheduler = &schedule, .clip_grad_norm = 0.1}, kScaling);
  optim::GradScaler scaler(kScaling);
  Recorded run;
  for (int step = 0; step < 24; ++step) {
    TensorOptions options;
    if (!data.empty()) options = {.placement = kPair, .sbp = data};
    const Tensor x = randn({6, 5}, options);
    options.dtype = int64;
    const Tensor y = randint(0, 4, {6}, options);
    if (compiled) {
      run.losses.push_back(graph(x, y).item<float>());
      run.scales.push_back(graph.config().grad_scaler()->get_scale());
    } else {
      optimizer->zero_grad();
      Tensor loss;
      {
        const AutocastGuard autocast(float16);
        loss = cross_entropy(model(x), y);
      }
      scaler.scale(loss).backward();
      scaler.unscale_(*optimizer);
      nn::utils::clip_grad_norm_(model.parameters(), 0.1);
      scaler.step(*optimizer);
      scaler.update();
      schedule.step();
      run.losses.push_back(loss.item<float>());
      run.scales.push_back(scaler.get_scale());
    }
    run.rates.push_back(optimizer->lr());
  }
  for (const auto& [name, tensor] : model.state_dict())
    run.state.emplace_back(name, tensor.to_vector<float>());
  for (const auto& [name, tensor] : optimizer->state_dict())
    run.state.emplace_back(name, tensor.to(float32).to_vector<float>());
  return run;
}

template <class O, class Options>
MakeOptimizer with(const Options& options) {
  return [options](const std::vector<Tensor>& parameters) {
    return std::make_shared<O>(parameters, options);
  };
}

TEST(GraphScaler, EqualsEagerAutocastAndScalerBitForBit) {
  for (const MakeOptimizer& make_optimizer :
       {with<optim::SGD>(optim::SGDOptions{.lr = 0.1, .momentum = 0.9, .dampening = 0.5}),
        with<optim::AdamW>(optim::AdamWOptions{.lr = 0.05}),
        with<optim::Adam>(optim::AdamOptions{.lr = 0.05, .amsgrad = true}),
        with<optim::NAdam>(optim::NAdamOptions{.lr = 0.05}),
        with<optim::RAdam>(optim::RAdamOptions{.lr = 0.05}),
        with<optim::Adamax>(optim::AdamaxOptions{.lr = 0.05}),
        with<optim::Adagrad>(optim::AdagradOptions{.lr = 0.05}),
        with<optim::Adadelta>(optim::AdadeltaOptions{}),
        with<optim::RMSprop>(optim::RMSpropOptions{.lr = 0.01, .momentum = 0.5, .centered = true}),
        with<optim::LAMB>(optim::LAMBOptions{.lr = 0.05})}) {
    const Recorded eager = run_mixed(make_optimizer, false);
    EXPECT_EQ(run_mixed(make_optimizer, true), eager);
    EXPECT_LT(eager.scales[0], kScaling.init_scale) << "the first step overflows";
    bool grows = false, shrinks_again = false;
    for (size_t i = 1; i < eager.scales.size(); ++i) {
      shrinks_again |= grows && eager.scales[i] < eager.scales[i - 1];
      grows |= eager.scales[i] > eager.scales[i - 1];
    }
    EXPECT_TRUE(shrinks_again);
    EXPECT_NE(eager.losses.front(), eager.losses.back());
  }
}

// Momentum that is turned on later begins with a buffer that holds the gradient, without dampening.
TEST(GraphScaler, MomentumThatBeginsInASkippedStepBeginsInTheNextOne) {
  const auto run = [](bool compiled) {
    manual_seed(3);
    models::Mlp model({5, 8, 4});
    optim::SGD optimizer(model.parameters(), {.lr = 0.1, .dampening = 0.5});
    optim::GradScaler scaler({.init_scale = 8});
    Mixed graph(model, optimizer, scaler);
    std::vector<float> losses;
    for (int step = 0; step < 6; ++step) {
      if (step == 2) {
        optimizer.set_group_momentum(0, 0.9);
        scaler.update(1e30);
      }
      if (step == 3) scaler.update(8);
      const Tensor x = randn({6, 5}), y = randint(0, 4, {6});
      if (compiled) {
        if (step == 2) graph.compile(randn({4, 5}), randint(0, 4, {4}));
        losses.push_back(graph(x, y).item<float>());
        continue;
      }
      if (step == 2) {
        randn({4, 5});
        randint(0, 4, {4});
      }
      optimizer.zero_grad();
      Tensor loss;
      {
        const AutocastGuard autocast(float16);
        loss = cross_entropy(model(x), y);
      }
      scaler.scale(loss).backward();
      scaler.step(optimizer);
      scaler.update();
      losses.push_back(loss.item<float>());
    }
    return losses;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(GraphScaler, EqualsEagerUnderDataParallelBitForBit) {
  run_ranks(2, [] {
    const MakeOptimizer adamw = with<optim::AdamW>(optim::AdamWOptions{.lr = 0.05});
    EXPECT_EQ(run_mixed(adamw, true, kS0), run_mixed(adamw, false, kS0));
  });
}

// ---- a weight with a row for each sample, whose gradient the only micro-batch makes

struct Rows : nn::Module<Rows> {
  Tensor weight;

  Rows() : weight(register_parameter("weight", arange(0, 1.2, 0.1).reshape({4, 3}))) {}

  Tensor forward(const Tensor& x) { return tanh(x + weight); }
};

struct TwoRows : nn::Graph<TwoRows> {
  Rows first, last;

  TwoRows(Rows a, Rows b, optim::Optimizer& optimizer) : first(a), last(b) {
    if (a.weight.is_global()) {
      first.to<nn::GraphModule>().set_stage(0, a.weight.placement());
      last.to<nn::GraphModule>().set_stage(1, b.weight.placement());
    }
    add_optimizer(optimizer);
    config().enable_amp(float16, {.init_scale = 8});
  }

  Tensor build(const Tensor& x) {
    Tensor loss = last(first(x)).square().sum();
    loss.backward();
    return loss;
  }
};

TEST(GraphScaler, StagesOfOneMicroBatchMayHaveAWeightWithARowForEachSample) {
  const auto run = [](bool in_stages, const NdSbp& layout) {
    Rows first, last;
    TensorOptions options;
    if (in_stages) {
      options = {.placement = kPair, .sbp = kB};
      first.to_global(kPair, layout);
      last.to_global(layout == kB ? Placement("cpu", {1}) : kPair, layout);
    }
    optim::SGD optimizer(std::vector<Tensor>{first.weight, last.weight},
                         {.lr = 0.1, .momentum = 0.9});
    TwoRows graph(first, last, optimizer);
    std::vector<double> losses;
    for (int step = 0; step < 3; ++step)
      losses.push_back(graph(ones({4, 3}, options)).item<double>());
    return losses;
  };
  const std::vector<double> wanted = run(false, {});
  run_ranks(2, [&] {
    for (const NdSbp& layout : {NdSbp(kB), NdSbp(kS0), NdSbp(kS1)}) {
      const std::vector<double> losses = run(true, layout);
      for (size_t i = 0; i < wanted.size(); ++i)
        EXPECT_NEAR(losses[i], wanted[i], 1e-5) << layout << ' ' << i;
    }
  });
}

TEST(GraphScaler, StateGoesOnInAnotherGraph) {
  models::Mlp model({5, 8, 4});
  optim::SGD optimizer(model.parameters());
  Mixed first(model, optimizer, {}, {.init_scale = 1024, .growth_interval = 3});
  Mixed second(model, optimizer, {}, {});
  const Tensor x = randn({6, 5}), y = randint(0, 4, {6});
  first(x, y);
  first(x, y);
  second.config().grad_scaler()->load_state_dict(first.config().grad_scaler()->state_dict());
  second(x, y);
  EXPECT_EQ(second.config().grad_scaler()->get_scale(), 2048);
}

// ---- each optimizer by itself

struct Two : nn::Graph<Two> {
  struct Branches : nn::Module<Branches> {
    nn::Linear a{register_module("a", nn::Linear(3, 1))};
    nn::Linear b{register_module("b", nn::Linear(3, 1))};

    Tensor forward(const Tensor& x, const Tensor& y) { return (a(x) + b(y)).sum(); }
  };

  Branches model;

  Two(optim::Optimizer& first, optim::Optimizer& second, Branches m, optim::GradScaler& scaler)
      : model(m) {
    add_optimizer(first);
    add_optimizer(second);
    config().set_grad_scaler(scaler);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = model(x, y);
    loss.backward();
    return loss;
  }
};

TEST(GraphScaler, LeavesOutTheOptimizerWhoseGradientsOverflow) {
  Two::Branches model;
  optim::SGD first(model.a.parameters(), {.lr = 1}), second(model.b.parameters(), {.lr = 1});
  optim::GradScaler scaler({.init_scale = 4});
  Two graph(first, second, model, scaler);
  const std::vector<float> a = model.a.parameters()[0].to_vector<float>();
  const std::vector<float> b = model.b.parameters()[0].to_vector<float>();
  graph(ones({2, 3}), full({2, 3}, std::numeric_limits<float>::infinity()));
  EXPECT_EQ(scaler.get_scale(), 2);
  EXPECT_EQ(model.a.parameters()[0].to_vector<float>(),
            (std::vector<float>{a[0] - 2, a[1] - 2, a[2] - 2}));
  EXPECT_EQ(model.b.parameters()[0].to_vector<float>(), b);
}

TEST(GraphScaler, ADisabledOneDoesNothing) {
  Two::Branches model;
  optim::SGD first(model.a.parameters(), {.lr = 1}), second(model.b.parameters(), {.lr = 1});
  optim::GradScaler scaler({.enabled = false});
  Two graph(first, second, model, scaler);
  graph(ones({2, 3}), full({2, 3}, std::numeric_limits<float>::infinity()));
  EXPECT_TRUE(std::isinf(model.b.parameters()[0].to_vector<float>()[0]));
}

// Plans of earlier scalers are kept; a new one must not be taken for one of them.
TEST(GraphScaler, ANewOneHasAPlanOfItsOwn) {
  models::Mlp model({5, 8, 4});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Mixed graph(model, optimizer, {}, {.enabled = false});
  const Tensor x = randn({6, 5}), y = randint(0, 4, {6});
  graph(x, y);
  const optim::GradScaler* const first = graph.config().grad_scaler();
  graph.config().enable_amp(float16, optim::GradScalerOptions());
  for (int i = 0; i < 100 && graph.config().grad_scaler() != first; ++i)
    graph.config().enable_amp(float16, optim::GradScalerOptions());
  graph(x, y);
  EXPECT_TRUE(graph.summary().starts_with("step: 4 inputs")) << graph.summary();
}

TEST(GraphScaler, RefusesParametersThatTheStepItselfWrites) {
  struct Decayed : nn::Graph<Decayed> {
    nn::Linear linear{3, 1};

    Decayed(optim::Optimizer& optimizer, nn::Linear l) : linear(l) {
      add_optimizer(optimizer);
      config().enable_amp(float16);
    }

    Tensor build(const Tensor& x) {
      Tensor loss = linear(x).sum();
      loss.backward();
      const NoGradGuard no_grad;
      linear.parameters()[0].mul_(0.5);
      return loss;
    }
  };

  nn::Linear linear(3, 1);
  optim::SGD optimizer(linear.parameters());
  Decayed graph(optimizer, linear);
  try {
    graph(ones({2, 3}));
    FAIL() << "half of the write would be lost";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("mul_scalar at "), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("graph_scaler_test.cpp:"), std::string::npos);
  }
}

// Adafactor writes its averages by elementwise ops, which are fused with others if they are large.
TEST(GraphScaler, TakesOptimizersOfSeveralFusedOps) {
  struct Wide : nn::Graph<Wide> {
    nn::Linear linear;
    optim::Adafactor optimizer{linear.parameters()};

    explicit Wide(const nn::Linear& l) : linear(l) {
      add_optimizer(optimizer);
      config().enable_amp(float16, {.init_scale = 1});
    }

    Tensor build(const Tensor& x) {
      Tensor loss = square(linear(x)).mean();
      loss.backward();
      return loss;
    }
  };

  Wide graph(nn::Linear(2, 8192));
  const Tensor before = graph.linear.bias.detach().clone();

  graph(ones({3, 2}));

  EXPECT_FALSE(graph.linear.bias.equal(before));
}

// Two casts that undo each other return the weight as it was, so the update writes a copy. ASGD,
// Rprop and Adafactor consist of ops that make new values.
TEST(GraphScaler, ASkippedStepReturnsTheWeightAsItIs) {
  struct Returns : nn::Graph<Returns> {
    nn::Linear linear;

    Returns(const nn::Linear& l, optim::Optimizer& optimizer, optim::GradScaler& scaler)
        : linear(l) {
      add_optimizer(optimizer);
      config().set_grad_scaler(scaler);
    }

    std::vector<Tensor> build(const Tensor& x) {
      const Tensor before = linear.weight.to(float64).to(float32);
      linear(x).sum().backward();
      return {before, linear.weight, linear.weight.t().t()};
    }
  };

  for (const MakeOptimizer& make_optimizer :
       {with<optim::SGD>(optim::SGDOptions{}), with<optim::ASGD>(optim::ASGDOptions{}),
        with<optim::Rprop>(optim::RpropOptions{}),
        with<optim::Adafactor>(optim::AdafactorOptions{})}) {
    const nn::Linear linear(2, 2);
    const auto optimizer = make_optimizer(linear.parameters());
    optim::GradScaler scaler;
    Returns graph(linear, *optimizer, scaler);
    const Tensor weight = linear.weight.detach().clone();

    for (const Tensor& result : graph(full({2, 2}, std::numeric_limits<float>::infinity())))
      EXPECT_TRUE(result.equal(weight));
    EXPECT_TRUE(linear.weight.equal(weight));
  }
}

// ---- many ranks: an overflow on one leaves the step out on all

struct How {
  int64_t zero = 0;
  int64_t parts = 1;
  pipeline::ScheduleRule schedule = pipeline::one_f_one_b();
  std::optional<DType> amp = {};
};

struct Layers : nn::Module<Layers> {
  nn::Linear fc1{register_module("fc1", nn::Linear(6, 8))};
  nn::Linear fc2{register_module("fc2", nn::Linear(8, 4))};

  Tensor forward(const Tensor& x) { return fc2(tanh(fc1(x))); }
};

struct Scaled : nn::Graph<Scaled> {
  Layers model;

  Scaled(Layers m, optim::Optimizer& optimizer, optim::GradScaler& scaler, const How& how)
      : model(m) {
    add_optimizer(optimizer, {.clip_grad_norm = 0.5});
    if (how.amp) config().enable_amp(*how.amp);
    config().set_grad_scaler(scaler).enable_zero({.stage = how.zero});
    config().set_micro_batches(how.parts).set_schedule(how.schedule);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = cross_entropy(out, y);
    loss.backward();
    return loss;
  }
};

TEST(GraphScaler, AProgramsScalerStaysInAnyOrderOfCalls) {
  struct Settings : nn::Graph<Settings> {
    Tensor build(const Tensor& x) { return x; }

    using GraphBase::config;
  };

  for (const DType dtype : {float16, bfloat16}) {
    optim::GradScaler scaler;
    Settings before, after, options;
    before.config().set_grad_scaler(scaler).enable_amp(dtype);
    after.config().enable_amp(dtype).set_grad_scaler(scaler);
    EXPECT_EQ(before.config().grad_scaler(), &scaler);
    EXPECT_EQ(after.config().grad_scaler(), &scaler);
    options.config().set_grad_scaler(scaler);
    EXPECT_THROW(options.config().enable_amp(dtype, {.init_scale = 2}), InvalidArgument);
  }
}

struct Layout {
  const char* name = "one rank";
  int64_t ranks = 1;
  Placement first = {}, last = {};
  NdSbp data = {};
  std::function<void(Layers&)> lay_out = [](Layers&) {};
};

struct Result {
  std::vector<double> losses, scales, weights, steps;
};

Result train(const Layout& layout, const How& how, DType dtype) {
  manual_seed(7);
  Layers model;
  model.to(dtype);
  layout.lay_out(model);
  optim::AdamW optimizer(model.parameters(), {.lr = 0.05});
  optim::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  Scaled graph(model, optimizer, scaler, how);
  Result result;
  for (int step = 0; step < 6; ++step) {
    const Tensor x =
        randn({12, 6}, {.dtype = dtype, .placement = layout.first, .sbp = layout.data});
    const Tensor y =
        randint(0, 4, {12}, {.dtype = int64, .placement = layout.last, .sbp = layout.data});
    const bool overflows = step == 0 || step == 3;
    if (overflows) {  // in the last row only
      const auto rows = arange(12, {.dtype = dtype, .placement = layout.first, .sbp = layout.data});
      x.copy_(where(gt(rows.unsqueeze(1), 10.5), full_like(x, INFINITY), x));
    }
    const auto loss = graph(x, y).to(float64).item<double>();
    if (!overflows) result.losses.push_back(loss);
    result.scales.push_back(scaler.get_scale());
  }
  for (const auto& [name, tensor] : model.state_dict()) {
    for (const double value : tensor.to(float64).to_vector<double>())
      result.weights.push_back(value);
  }
  for (const auto& [name, tensor] : optimizer.state_dict()) {
    if (name.ends_with(".step")) result.steps.push_back(tensor.item<double>());
  }
  return result;
}

void expect_near(const Result& got, const Result& want, double tolerance, const std::string& what) {
  EXPECT_EQ(got.scales, want.scales) << what;
  EXPECT_EQ(got.steps, want.steps) << what;
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], tolerance) << what << ", loss " << i;
  for (size_t i = 0; i < want.weights.size(); ++i)
    EXPECT_NEAR(got.weights[i], want.weights[i], tolerance) << what << ", weight " << i;
}

Layout global(const char* name, const Placement& placement, const NdSbp& data,
              const nn::SbpPatterns& patterns) {
  return {name, placement.num_ranks(), placement, placement, data, [=](Layers& model) {
            model.to_global(Placement("cpu", {0}), kB);
            model.to_global(placement, patterns);
          }};
}

Layout stages(const char* name, const Placement& first, const Placement& last, const NdSbp& data) {
  return {name, first.num_ranks() + last.num_ranks(), first, last, data, [=](Layers& model) {
            model.to_global(Placement("cpu", {0}), kB);
            model.fc1.to_global(first, kB);
            model.fc2.to_global(last, kB);
            nn::graph_module(model.fc1).set_stage(0, first);
            nn::graph_module(model.fc2).set_stage(1, last);
          }};
}

struct Case {
  Layout layout;
  How how;
};

std::vector<Case> cases() {
  const Placement k0("cpu", {0}), k1("cpu", {1}), k23("cpu", {2, 3});
  const Layout dp2 = global("dp2", kPair, kS0, {{"*", kB}});
  const Layout tp2 = global("tp2", kPair, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"*", kB}});
  const Layout grid = global("dp2 x tp2", kGrid, {kS0, kB},
                             {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}});
  const Layout pp2 = stages("pp2", k0, k1, kB), both = stages("pp2 x dp2", kPair, k23, kS0);
  return {{dp2, {}},
          {tp2, {}},
          {grid, {}},
          {dp2, {.zero = 1}},
          {dp2, {.zero = 2}},
          {dp2, {.zero = 3}},
          {dp2, {.parts = 3}},
          {dp2, {.zero = 3, .parts = 3}},
          {pp2, {.parts = 3}},
          {pp2, {.parts = 3, .schedule = pipeline::zb_h1()}},
          {both, {.zero = 3, .parts = 2}}};
}

TEST(GraphScaler, AnOverflowOnOneRankLeavesTheStepOutOnAll) {
  const Result alone = train({}, {}, float64);
  EXPECT_EQ(alone.scales, (std::vector<double>{512, 512, 1024, 512, 512, 1024}));
  EXPECT_EQ(alone.steps, (std::vector<double>(4, 4)));
  for (const Case& it : cases()) {
    run_ranks(static_cast<int>(it.layout.ranks), [&] {
      expect_near(train(it.layout, it.how, float64), alone, 1e-9,
                  str(it.layout.name, ", zero ", it.how.zero, ", ", it.how.parts, " parts"));
    });
  }
}

TEST(GraphScaler, Float16OnManyRanksFollowsOneRank) {
  const Result alone = train({}, {.amp = float16}, float32);
  for (Case it : cases()) {
    it.how.amp = float16;
    run_ranks(static_cast<int>(it.layout.ranks), [&] {
      const Result got = train(it.layout, it.how, float32);
      EXPECT_EQ(got.scales, alone.scales) << it.layout.name;
      EXPECT_EQ(got.steps, alone.steps) << it.layout.name;
      for (size_t i = 0; i < alone.losses.size(); ++i)
        EXPECT_NEAR(got.losses[i], alone.losses[i], 5e-3) << it.layout.name << ", loss " << i;
    });
  }
}

}  // namespace
}  // namespace flow
