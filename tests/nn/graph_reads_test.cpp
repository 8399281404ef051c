// What a trace read is checked at each call: after a change the graph computes what the eager step
// computes, and without one it does not trace again.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

const Placement kPair("cpu", {0, 1});

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Scale : nn::Module<Scale> {
  float factor = 2;
  Tensor shift;  // undefined, and not registered

  Tensor forward(const Tensor& x) {
    const Tensor y = x * factor;
    return shift.defined() ? y + shift : y;
  }
};

struct Net : nn::Module<Net> {
  nn::Linear fc{register_module("fc", nn::Linear(3, 3))};
  Scale scale{register_module("scale", Scale())};
  nn::ModuleList<nn::Linear> list{register_module("list", nn::ModuleList<nn::Linear>())};
  nn::AnyModule act{register_module("act", nn::AnyModule(nn::ReLU()))};

  Net() { list.push_back(nn::Linear(3, 3)); }

  Tensor forward(const Tensor& x) { return act(list[0](scale(fc(x)))); }
};

// `quiet` is read but not called.
struct Forward : nn::Graph<Forward> {
  Net net;
  nn::Dropout quiet;
  Tensor w = randn({3});
  int traces = 0;
  int64_t hook = -1;  // of net.scale

  Forward() { config().set_passes(nn::exact); }

  Tensor build(const Tensor& x) {
    ++traces;
    Tensor y = net(x) + w.detach();
    if (quiet.is_training()) y = y * 3;
    if (y.requires_grad()) y = y + 1;
    if ((x * w).requires_grad()) y = y - 3;
    return y;
  }
};

struct Change {
  const char* name;
  std::function<void(Forward&)> make;
};

std::vector<Change> changes() {
  const auto hook = [](nn::ModuleBase&, const Tensor&, const Tensor& y) { return y * 5; };
  return {
      {"a replaced module", [](Forward& g) { g.net.replace_module("fc", nn::Linear(3, 3)); }},
      {"a replaced module of a list",
       [](Forward& g) { g.net.replace_module("list.0", nn::Linear(3, 3)); }},
      {"a replaced activation", [](Forward& g) { g.net.replace_module("act", nn::Tanh()); }},
      {"an assigned member of a list", [](Forward& g) { g.net.list[0] = nn::Linear(3, 3); }},
      {"an assigned module without tensors",
       [](Forward& g) { g.net.act = nn::AnyModule(nn::Tanh()); }},
      {"an assigned model", [](Forward& g) { g.net = Net(); }},
      {"an assigned weight",
       [](Forward& g) {
         g.net.fc.weight = randn({3, 3});
       }},
      {"an assigned weight in a list",
       [](Forward& g) {
         g.net.list[0].weight = randn({3, 3});
       }},
      {"a weight that was undefined", [](Forward& g) { g.net.scale.shift = randn({3}); }},
      {"a number of a module", [](Forward& g) { g.net.scale.factor = 7; }},
      {"a tensor of the graph", [](Forward& g) { g.w = randn({3}); }},
      {"a hook", [hook](Forward& g) { g.net.fc.register_forward_hook(hook); }},
      {"a hook before",
       [](Forward& g) {
         g.net.register_forward_pre_hook([](nn::ModuleBase&, const Tensor& x) { return x * 5; });
       }},
      {"a removed hook", [](Forward& g) { g.net.scale.remove_hook(g.hook); }},
      {"a mode that is read", [](Forward& g) { g.quiet.eval(); }},
      {"set_data of a weight",
       [](Forward& g) {
         g.net.fc.weight.set_data(randn({3, 3}));
       }},
      {"set_data with other strides",
       [](Forward& g) {
         g.net.fc.weight.set_data(randn({3, 3}).t());
       }},
      {"set_data of a detached tensor", [](Forward& g) { g.w.set_data(randn({3})); }},
      {"requires_grad of a parameter", [](Forward& g) { g.net.requires_grad_(false); }},
      {"requires_grad of a tensor", [](Forward& g) { g.w.requires_grad_(); }},
  };
}

TEST(GraphReads, EachChangeReachesTheNextCall) {
  for (const Change& change : changes()) {
    SCOPED_TRACE(change.name);
    manual_seed(4);
    Forward graph;
    graph.hook = graph.net.scale.register_forward_hook(
        [](nn::ModuleBase&, const Tensor&, const Tensor& y) { return y + 0.5; });
    const Tensor x = randn({2, 3});
    EXPECT_EQ(graph(x).to_vector<float>(), graph.build(x).to_vector<float>());
    const std::vector<float> before = graph(x).to_vector<float>();
    change.make(graph);
    const std::vector<float> after = graph.build(x).to_vector<float>();
    EXPECT_NE(after, before) << "the change has no effect";
    EXPECT_EQ(graph(x).to_vector<float>(), after);
    const int traces = graph.traces;
    EXPECT_EQ(graph(x).to_vector<float>(), after);
    EXPECT_EQ(graph.traces, traces) << "the second call after the change traces again";
  }
}

struct Pair : nn::Module<Pair> {
  Tensor written{register_buffer("written", zeros({3}))};
  Tensor read{register_buffer("read", zeros({3}))};

  Tensor forward(const Tensor& x) {
    const Tensor before = read + x;
    written.add_(x);
    return before * 10 + read;
  }
};

struct CallsPair : nn::Graph<CallsPair> {
  Pair pair;

  Tensor build(const Tensor& x) { return pair(x); }
};

// A write to the one then reaches the other.
TEST(GraphReads, TensorsMayComeToShareMemory) {
  CallsPair graph;
  Pair eager;
  const Tensor x = tensor({1.F, 2.F, 3.F});
  EXPECT_EQ(graph(x).to_vector<float>(), eager(x).to_vector<float>());
  for (Pair* it : {&graph.pair, &eager})
    it->read.set_data(it->written);
  EXPECT_EQ(graph(x).to_vector<float>(), eager(x).to_vector<float>());
  EXPECT_EQ(graph(x).to_vector<float>(), eager(x).to_vector<float>());
  for (Pair* it : {&graph.pair, &eager})
    it->read.set_data(it->written.clone());
  EXPECT_EQ(graph(x).to_vector<float>(), eager(x).to_vector<float>());
}

TEST(GraphReads, AnAssignedMemberThatIsNotRegisteredIsAnError) {
  Forward graph;
  const Tensor x = randn({2, 3});
  graph(x);
  graph.net.fc = nn::Linear(3, 3);

  EXPECT_TRUE(has(error_of([&] { graph(x); }), "replace_module("));
}

TEST(GraphReads, OptionsForGraphsMayBeSetLater) {
  Forward graph;
  const Tensor x = randn({2, 3});
  graph(x);
  nn::graph_module(graph.net.fc).set_activation_checkpointing();
  graph(x);
  EXPECT_EQ(graph.traces, 2);
  nn::graph_module(graph.net.fc).set_activation_checkpointing();
  graph(x);
  EXPECT_EQ(graph.traces, 2) << "nothing has changed";
  nn::graph_module(graph.net.fc).set_stage(0);
  nn::graph_module(graph.net.list[0]).set_stage(1);
  EXPECT_TRUE(has(graph.compile(x).summary(), "in 2 stages"));
  EXPECT_EQ(graph.traces, 3);
}

TEST(GraphReads, BackwardHooksMayBeAddedLater) {
  struct Gradient : nn::Graph<Gradient> {
    nn::Linear fc{2, 2};
    Tensor v = ones({2}).requires_grad_();

    Tensor build(const Tensor& x) { return grad({(fc(x) * v).sum()}, {v, fc.weight})[0]; }
  };

  manual_seed(4);
  Gradient graph;
  const Tensor x = randn({3, 2});
  graph(x);
  const auto compare = [&] {
    EXPECT_EQ(graph(x).to_vector<float>(), graph.build(x).to_vector<float>());
  };
  compare();
  const int64_t hook = graph.v.register_hook([](const Tensor& dv) { return dv * 10; });
  compare();
  graph.v.remove_hook(hook);
  compare();
  graph.fc.register_full_backward_pre_hook(
      [](nn::ModuleBase&, const Tensor& dy) { return dy * 2; });
  compare();
}

TEST(GraphReads, OneOfSeveralHooksMayBeRemoved) {
  struct Step : nn::Graph<Step> {
    nn::Linear fc{1, 1};
    optim::SGD optimizer{fc.parameters(), {.lr = 0.1}};

    Step() { add_optimizer(optimizer); }

    Tensor build(const Tensor& x) {
      Tensor loss = fc(x).sum();
      loss.backward();
      return loss;
    }
  };

  Step graph;
  const Tensor x = ones({1, 1});
  const auto change = [&] {
    const auto before = graph.fc.weight.item<float>();
    graph(x);
    return before - graph.fc.weight.item<float>();
  };
  const int64_t first = graph.fc.weight.register_hook([](const Tensor& dw) { return dw * 10; });
  graph.fc.weight.register_hook([](const Tensor& dw) { return dw * 2; });
  EXPECT_NEAR(change(), 2, 1e-5);
  graph.fc.weight.remove_hook(first);
  EXPECT_NEAR(change(), 0.2, 1e-5);
}

TEST(GraphReads, CallsWithoutAChangeDoNotTrace) {
  manual_seed(4);
  Forward graph;
  const Tensor x = randn({2, 3});
  for (int i = 0; i < 3; ++i) {
    graph.net.train();
    graph(x);
    graph.net.eval();
    graph(x);
    {
      const NoGradGuard no_grad;
      graph.net.fc.weight.mul_(0.5);
    }
    graph.net.load_state_dict(Net().state_dict());
    graph.net.to(float32);
    const Net copy = graph.net;
    copy.named_modules();
  }
  EXPECT_EQ(graph.traces, 2) << "one plan for each mode";

  struct Hooked : nn::Graph<Hooked> {
    nn::Linear fc{3, 3};
    int traces = 0;

    Tensor build(const Tensor& x) {
      ++traces;
      Tensor inner;
      const int64_t hook =
          fc.register_forward_hook([&](nn::ModuleBase&, const Tensor&, const Tensor& y) {
            inner = y;
            return Tensor();
          });
      const Tensor y = fc(x);
      fc.remove_hook(hook);
      return y + inner;
    }
  };

  Hooked hooked;
  hooked(x);
  hooked(x);
  EXPECT_EQ(hooked.traces, 1) << "a hook that build() adds and removes";
}

// Trains a model and returns how often build() was traced.
template <class M>
int traces_of_training(M model, const std::function<Tensor(M&)>& loss_of, int64_t zero_stage) {
  struct Train : nn::Graph<Train> {
    M model;
    std::function<Tensor(M&)> loss_of;
    int traces = 0;

    Train(M m, const std::function<Tensor(M&)>& l, optim::Optimizer& optimizer)
        : model(m), loss_of(l) {
      this->add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    }

    using nn::GraphBase::config;

    Tensor build(const Tensor& /*x*/) {
      ++traces;
      Tensor loss = loss_of(model);
      loss.backward();
      return loss;
    }
  };

  optim::AdamW optimizer(model.parameters());
  Train graph(model, loss_of, optimizer);
  graph.config().enable_zero({.stage = zero_stage});
  const Tensor x = model.parameters()[0].is_global()
                       ? ones({4, 1}, {.placement = kPair, .sbp = sbp::split(0)})
                       : ones({4, 1});
  for (int step = 0; step < 4; ++step)
    graph(x);
  return graph.traces;
}

TEST(GraphReads, TrainingTracesOnce) {
  const std::function<Tensor(models::MobileNetV2&)> images = [](models::MobileNetV2& model) {
    return cross_entropy(model(ones({2, 3, 32, 32})), zeros({2}, {.dtype = int64}));
  };
  EXPECT_EQ(traces_of_training(models::MobileNetV2({.num_classes = 10}), images, 0), 1);
  run_ranks(2, [] {
    for (int64_t stage = 0; stage <= 3; ++stage) {
      const PlacementGuard guard(kPair, sbp::broadcast);
      const std::function<Tensor(models::Gpt&)> tokens = [](models::Gpt& model) {
        const Tensor x = zeros({4, 8}, {.dtype = int64, .placement = kPair, .sbp = sbp::split(0)});
        return cross_entropy(model(x).flatten(0, 1), x.flatten());
      };
      models::Gpt model(
          {.vocab_size = 16, .block_size = 8, .n_layer = 2, .n_head = 2, .n_embd = 16});
      model.to_global(kPair, sbp::broadcast);
      EXPECT_EQ(traces_of_training(model, tokens, stage), 1) << stage;
    }
  });
}

TEST(GraphReads, ModulesThatDieLeaveThePlanAlone) {
  struct Borrows : nn::Graph<Borrows> {
    std::unique_ptr<nn::Linear> fc = std::make_unique<nn::Linear>(3, 3);
    int traces = 0;

    Tensor build(const Tensor& x) {
      ++traces;
      return nn::Tanh()(fc == nullptr ? x : (*fc)(x));
    }
  };

  Borrows graph;
  const Tensor x = randn({2, 3});
  const std::vector<float> y = graph(x).to_vector<float>();
  graph.fc.reset();
  EXPECT_EQ(graph(x).to_vector<float>(), y);
  EXPECT_EQ(graph.traces, 1);
}

TEST(GraphReads, AModuleThatOnlyOneModeCallsLeavesTheOtherPlanAlone) {
  struct Partly : nn::Module<Partly> {
    nn::Tanh inner;

    Tensor forward(const Tensor& x) { return is_training() ? inner(x) : x * 2; }
  };

  struct Modes : nn::Graph<Modes> {
    Partly net;
    int traces = 0;

    Tensor build(const Tensor& x) {
      ++traces;
      return net(x);
    }
  };

  Modes graph;
  const Tensor x = ones({2});
  for (const bool is_training : {false, true, false, true}) {
    graph.net.train(is_training);
    graph(x);
  }
  EXPECT_EQ(graph.traces, 2);
}

TEST(GraphReads, APlacementGuardAroundTheCallCounts) {
  struct Makes : nn::Graph<Makes> {
    Tensor build(const Tensor& /*x*/) { return zeros({2}); }
  };

  Makes graph;
  const Tensor x = ones({1});
  EXPECT_FALSE(graph(x).is_global());
  const Placement here("cpu", {0});
  {
    const PlacementGuard guard(here, sbp::broadcast);
    EXPECT_TRUE(graph(x).is_global());
  }
  EXPECT_FALSE(graph(x).is_global());
}

TEST(GraphReads, SchedulesOfMomentumNeedNoNewPlan) {
  struct Train : nn::Graph<Train> {
    nn::Linear fc;
    int traces = 0;

    Train(const nn::Linear& m, optim::Optimizer& optimizer, optim::lr_scheduler::LRScheduler& rate)
        : fc(m) {
      add_optimizer(optimizer, {.lr_scheduler = &rate});
      config().set_passes(nn::exact);
    }

    Tensor build(const Tensor& x) {
      ++traces;
      Tensor loss = fc(x).square().mean();
      loss.backward();
      return loss;
    }
  };

  using Make = std::function<std::shared_ptr<optim::Optimizer>(const std::vector<Tensor>&)>;
  const auto of = []<class O>(auto options) -> Make {
    return [options](const std::vector<Tensor>& p) { return std::make_shared<O>(p, options); };
  };
  const std::vector<Make> optimizers{
      of.operator()<optim::SGD>(optim::SGDOptions{.momentum = 0.9}),
      of.operator()<optim::SGD>(optim::SGDOptions{.momentum = 0.9, .nesterov = true}),
      of.operator()<optim::Adam>(optim::AdamOptions{}),
      of.operator()<optim::Adam>(optim::AdamOptions{.amsgrad = true}),
      of.operator()<optim::AdamW>(optim::AdamWOptions{}),
      of.operator()<optim::Adamax>(optim::AdamaxOptions{}),
      of.operator()<optim::NAdam>(optim::NAdamOptions{}),
      of.operator()<optim::RAdam>(optim::RAdamOptions{}),
      of.operator()<optim::LAMB>(optim::LAMBOptions{}),
      of.operator()<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.5}),
      of.operator()<optim::RMSprop>(optim::RMSpropOptions{.momentum = 0.5, .centered = true})};
  for (size_t i = 0; i < optimizers.size(); ++i) {
    SCOPED_TRACE(i);
    const auto run = [&](bool compiled) {
      manual_seed(5);
      nn::Linear fc(3, 2);
      const auto optimizer = optimizers[i](fc.parameters());
      optim::lr_scheduler::OneCycleLR rate(*optimizer, {.max_lr = {0.1}, .total_steps = 8});
      Train graph(fc, *optimizer, rate);
      for (int step = 0; step < 6; ++step) {
        const Tensor x = randn({4, 3});
        if (compiled) {
          graph(x);
          continue;
        }
        optimizer->zero_grad();
        graph.build(x);
        optimizer->step();
        rate.step();
      }
      EXPECT_TRUE(!compiled || graph.traces == 1) << graph.traces;
      return fc.weight.to_vector<float>();
    };
    EXPECT_EQ(run(true), run(false));
  }
}

// The momentum of a group may begin at any step, and other steps may begin that of one parameter
// only.
struct Dampened {
  Tensor a = tensor({1.F, 2.F}, {.requires_grad = true});
  Tensor b = tensor({3.F, 4.F}, {.requires_grad = true});
  optim::SGD optimizer;

  explicit Dampened(double momentum)
      : optimizer({a, b}, {.lr = 0.1, .momentum = momentum, .dampening = 0.5}) {}

  // An eager step of b alone.
  void step_b(const Tensor& x) {
    (x * b).sum().backward();
    optimizer.step();
    optimizer.zero_grad();
  }

  std::vector<float> values() const { return cat({a.detach(), b.detach()}, 0).to_vector<float>(); }
};

struct TrainsDampened : nn::Graph<TrainsDampened> {
  Tensor a, b;
  optim::SGD& optimizer;

  explicit TrainsDampened(Dampened& model) : a(model.a), b(model.b), optimizer(model.optimizer) {
    add_optimizer(optimizer);
  }

  Tensor build(const Tensor& x) {
    Tensor loss = (x * a * b).sum();
    loss.backward();
    return loss;
  }

  void step(const Tensor& x, bool compiled) {
    if (compiled) {
      (*this)(x);
      return;
    }
    build(x);
    optimizer.step();
    optimizer.zero_grad();
  }
};

TEST(GraphReads, AParameterMayTakeItsFirstStepElsewhere) {
  const auto run = [](bool compiled) {
    const Tensor x = tensor({1.F, 2.F});
    Dampened model(0.9);
    TrainsDampened graph(model);
    if (compiled) graph.compile(x);
    model.step_b(x);
    graph.step(x, compiled);
    return model.values();
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(GraphReads, DampenedMomentumMayBeginLater) {
  const auto run = [](bool compiled) {
    const Tensor x = tensor({1.F, 2.F});
    Dampened model(0);
    TrainsDampened graph(model);
    for (int step = 0; step < 6; ++step) {
      if (step == 2) model.optimizer.set_group_momentum(0, 0.9);
      graph.step(x, compiled);
    }
    return model.values();
  };
  EXPECT_EQ(run(true), run(false));
}

struct Sum {
  Tensor a, b;
};

struct Product {
  Tensor a, b;
};

struct Overloads : nn::Graph<Overloads> {
  Tensor build(const Sum& of) { return of.a + of.b; }

  Tensor build(const Product& of) { return of.a * of.b; }
};

TEST(GraphReads, ArgumentsOfOtherTypesCallAnotherBuild) {
  const Tensor x = tensor({2.F, 3.F}), y = tensor({5.F, 7.F});
  Overloads graph;

  EXPECT_TRUE(graph(Sum{x, y}).equal(x + y));
  EXPECT_TRUE(graph(Product{x, y}).equal(x * y));
  EXPECT_TRUE(graph(Sum{x, y}).equal(x + y));
}

struct WithDefaultDtype : nn::Graph<WithDefaultDtype> {
  Tensor build(const Tensor& x) { return x * 0.5 + zeros({2}); }
};

TEST(GraphReads, AnotherDefaultDtypeCompilesAgain) {
  const Tensor x = tensor({1, 3});
  WithDefaultDtype graph;
  EXPECT_EQ(graph(x).dtype(), float32);
  set_default_dtype(float64);
  const DType wide = graph(x).dtype();
  set_default_dtype(float32);
  EXPECT_EQ(wide, float64);
}

// Only the head is trained; the body has gradients of eager steps.
struct TrainsHead : nn::Graph<TrainsHead> {
  nn::Linear body{nn::Linear(3, 3)}, head{nn::Linear(3, 1)};
  optim::SGD optimizer{head.parameters(), {.lr = 0.1}};

  TrainsHead() { add_optimizer(optimizer); }

  Tensor build(const Tensor& x) {
    Tensor loss = head(body(x)).sum();
    loss.backward();
    return loss;
  }
};

TEST(GraphReads, GradientsOfOtherParametersStayAsTheyAre) {
  const Tensor x = randn({2, 3});
  TrainsHead graph;
  graph.head(graph.body(x)).sum().backward();
  const Tensor before = graph.body.weight.grad().clone();
  const Tensor weight = graph.head.weight.detach().clone();

  graph(x);

  EXPECT_TRUE(graph.body.weight.grad().equal(before));
  EXPECT_FALSE(graph.head.weight.equal(weight));
}

// Two optimizers share a weight.
struct TrainsTwice : nn::Graph<TrainsTwice> {
  Tensor weight = tensor({1.F, 2.F}, {.requires_grad = true});
  optim::SGD first{{weight}, {.lr = 0.1}}, second{{weight}, {.lr = 0.01}};

  TrainsTwice() {
    add_optimizer(first);
    add_optimizer(second);
  }

  Tensor build(const Tensor& x) {
    Tensor loss = (x * weight).sum();
    loss.backward();
    return loss;
  }
};

TEST(GraphReads, TheGradientOfASharedParameterStaysAsItIs) {
  const Tensor x = tensor({3.F, 5.F});
  TrainsTwice graph;
  graph.build(x);

  graph(x);

  ASSERT_TRUE(graph.weight.grad().defined());
  EXPECT_EQ(graph.weight.grad().to_vector<float>(), (std::vector<float>{3, 5}));
}

// As in eager mode: the gradient needs the buffer as it was.
struct WritesSaved : nn::Graph<WritesSaved> {
  nn::Linear layer{nn::Linear(3, 3)};
  Tensor scale = ones({3});
  optim::SGD optimizer{layer.parameters(), {.lr = 0.1}};

  WritesSaved() { add_optimizer(optimizer); }

  Tensor build(const Tensor& x) {
    Tensor y = (layer(x) * scale).sum();
    {
      const NoGradGuard no_grad;
      scale.mul_(0.5);
    }
    y.backward();
    return y;
  }
};

TEST(GraphReads, AWriteToWhatAGradientNeedsRaises) {
  WritesSaved graph;
  const std::string eager = error_of([&] { graph.build(randn({2, 3})); });
  EXPECT_TRUE(has(eager, "written in place 1 time")) << eager;
  const std::string compiled = error_of([&] { graph(randn({2, 3})); });
  EXPECT_TRUE(has(compiled, "written in place 1 time")) << compiled;
}

struct Stages : nn::Graph<Stages> {
  nn::Linear first{nn::Linear(4, 4)}, second{nn::Linear(4, 2)};

  Stages() {
    first.to<nn::GraphModule>().set_stage(0, Placement("cpu", {0}));
    second.to<nn::GraphModule>().set_stage(1, Placement("cpu", {0}));
  }

  Tensor build(const Tensor& x) { return second(first(x)); }
};

TEST(GraphReads, AnEmptyBatchDoesNotRunThroughStages) {
  Stages graph;
  const TensorOptions options{.placement = Placement("cpu", {0}), .sbp = sbp::broadcast};
  graph.first.to_global(Placement("cpu", {0}), sbp::broadcast);
  graph.second.to_global(Placement("cpu", {0}), sbp::broadcast);

  const std::string error = error_of<Unsupported>([&] { graph(zeros({0, 4}, options)); });

  EXPECT_TRUE(has(error, "0 samples")) << error;
}

}  // namespace
}  // namespace flow
