// 16-bit parameters with float32 masters: the update is that of a float32 copy, bit for bit.
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/training_layouts.h"

namespace flow::optim {
namespace {

using Tensors = std::vector<Tensor>;

// Makes an optimizer with or without master_weights.
using MakeOptimizer = std::function<std::unique_ptr<Optimizer>(const Tensors&, bool has_masters)>;

struct Rule {
  const char* name;
  MakeOptimizer make;
};

template <class Rule, class Options>
MakeOptimizer make_with(Options options) {
  return [options](const Tensors& parameters, bool has_masters) {
    Options own = options;
    own.master_weights = has_masters;
    return std::make_unique<Rule>(parameters, own);
  };
}

std::vector<Rule> rules() {
  return {
      {"SGD", make_with<SGD>(SGDOptions{.lr = 0.01, .weight_decay = 0.1})},
      {"momentum", make_with<SGD>(SGDOptions{.lr = 0.01, .momentum = 0.9, .dampening = 0.3})},
      {"nesterov",
       make_with<SGD>(SGDOptions{
           .lr = 0.01, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true, .maximize = true})},
      {"Adam", make_with<Adam>(AdamOptions{.lr = 0.003, .weight_decay = 0.1})},
      {"AMSGrad", make_with<Adam>(AdamOptions{.lr = 0.003, .amsgrad = true})},
      {"AdamW", make_with<AdamW>(AdamWOptions{.lr = 0.003, .maximize = true})},
      {"AdamW with AMSGrad", make_with<AdamW>(AdamWOptions{.lr = 0.003, .amsgrad = true})},
  };
}

std::vector<float> floats(const Tensor& x) {
  return x.to(float32).to_vector<float>();
}

// Equal bits, but any NaN equals any other.
void expect_same(const Tensor& got, const Tensor& want, const std::string& what) {
  const std::vector<float> a = floats(got), b = floats(want);
  ASSERT_EQ(a.size(), b.size()) << what;
  for (size_t i = 0; i < a.size(); ++i) {
    const bool are_nan = std::isnan(a[i]) && std::isnan(b[i]);
    EXPECT_TRUE(are_nan || (a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i])))
        << what << ", element " << i << ": " << a[i] << " instead of " << b[i];
  }
}

// The 16-bit parameters are the rounded float32 ones, and the state is that of the float32 ones.
void expect_rounded(const Tensors& narrow, const Optimizer& optimizer, const Tensors& wide,
                    const Optimizer& reference, const std::string& what) {
  const nn::StateDict state = optimizer.state_dict();
  for (size_t i = 0; i < narrow.size(); ++i) {
    expect_same(narrow[i], wide[i].to(narrow[i].dtype()), str(what, ", parameter ", i));
    const Tensor& master = state.at(str(i, ".master"));
    EXPECT_EQ(master.dtype(), float32);
    expect_same(master, wide[i], str(what, ", master ", i));
  }
  const nn::StateDict expected = reference.state_dict();
  EXPECT_EQ(state.size(), expected.size() + narrow.size()) << what;
  for (const auto& [name, tensor] : expected) {
    EXPECT_EQ(state.at(name).dtype(), tensor.dtype()) << what << ", " << name;
    expect_same(state.at(name), tensor, str(what, ", ", name));
  }
}

Tensor leaf(const Tensor& values, DType dtype) {
  return values.detach().to(dtype).clone().requires_grad_();
}

// Large enough for vectors and several threads, small, strided, and with values at the limits.
Tensors starts(DType dtype) {
  manual_seed(1);
  const float tiny = std::numeric_limits<float>::denorm_min();
  return {leaf(randn({9001}), dtype), leaf(randn({3}), dtype),
          leaf(randn({40, 7}), dtype).t().detach(),
          leaf(tensor({0.0F, -0.0F, 1.0F, -1.0F, 6e-8F, -6e-8F, tiny, -tiny, 60000.0F, -60000.0F}),
               dtype)};
}

TEST(MasterWeights, UpdatesAreThoseOfAFloat32CopyBitForBit) {
  for (const DType dtype : {bfloat16, float16}) {
    for (const Rule& rule : rules()) {
      Tensors narrow, wide;
      for (const Tensor& start : starts(dtype)) {
        narrow.push_back(start.detach().requires_grad_());
        wide.push_back(leaf(start, float32));
      }
      const auto optimizer = rule.make(narrow, true), reference = rule.make(wide, false);
      for (int step = 0; step < 6; ++step) {
        for (size_t i = 0; i < narrow.size(); ++i) {
          Tensor grad = randn(narrow[i].shape()).to(dtype);
          if (i == 3) {
            grad = step < 2   ? zeros({10}, {.dtype = dtype})
                   : step < 5 ? grad
                              : full({10}, INFINITY, {.dtype = dtype});
          }
          narrow[i].set_grad(grad);
          wide[i].set_grad(grad.to(float32));
        }
        optimizer->step();
        reference->step();
        expect_rounded(narrow, *optimizer, wide, *reference,
                       str(rule.name, " of ", dtype_name(dtype), ", step ", step));
        if (HasFailure()) return;
      }
    }
  }
}

TEST(MasterWeights, KeepUpdatesThatThePrecisionOfTheParameterLoses) {
  const auto train = [](bool has_masters) {
    const Tensor p = ones({1}, {.dtype = bfloat16, .requires_grad = true});
    SGD optimizer({p}, {.lr = 1e-4, .master_weights = has_masters});
    for (int step = 0; step < 1000; ++step) {
      p.set_grad(ones({1}, {.dtype = bfloat16}));
      optimizer.step();
    }
    return floats(p)[0];
  };

  EXPECT_EQ(train(false), 1);
  EXPECT_NEAR(train(true), 0.9, 0.002);
}

TEST(MasterWeights, ParametersOfOtherDtypesHaveNone) {
  const Tensor p = ones({2}, {.requires_grad = true});
  AdamW optimizer({p}, {.master_weights = true});
  p.set_grad(ones({2}));
  optimizer.step();

  EXPECT_FALSE(optimizer.state_dict().contains("0.master"));
  EXPECT_EQ(optimizer.state_dict().at("0.exp_avg").dtype(), float32);
}

// A parameter and its optimizer after some steps.
struct Trained {
  Tensor p;
  AdamW optimizer;

  explicit Trained(bool has_masters = true, DType dtype = bfloat16)
      : p(leaf(arange(1.0, 6.0) / 3, dtype)),
        optimizer({p}, {.lr = 1e-3, .master_weights = has_masters}) {}

  void step(int count) {
    for (int i = 0; i < count; ++i) {
      p.set_grad((arange(1.0, 6.0) - 2.5).to(p.dtype()));
      optimizer.step();
    }
  }
};

TEST(MasterWeights, StateContinuesWhereItStopped) {
  Trained whole, first, second;
  whole.step(5);
  first.step(3);

  {
    const NoGradGuard no_grad;
    second.p.copy_(first.p);
  }
  second.optimizer.load_state_dict(first.optimizer.state_dict());
  expect_same(second.optimizer.state_dict().at("0.master"),
              first.optimizer.state_dict().at("0.master"), "loaded");
  second.step(2);

  expect_same(second.p, whole.p, "parameter");
  expect_same(second.optimizer.state_dict().at("0.master"),
              whole.optimizer.state_dict().at("0.master"), "master");
}

TEST(MasterWeights, AStateWithoutMastersStartsThemAtTheParameters) {
  Trained without(false), with;
  without.step(3);
  {
    const NoGradGuard no_grad;
    with.p.copy_(without.p);
  }
  with.optimizer.load_state_dict(without.optimizer.state_dict());
  EXPECT_EQ(with.optimizer.state_dict().at("0.exp_avg").dtype(), float32);

  const Tensor copy = leaf(without.p, float32);
  AdamW reference({copy}, {.lr = 1e-3});
  reference.load_state_dict(without.optimizer.state_dict());
  with.step(1);
  copy.set_grad(arange(1.0, 6.0) - 2.5);
  reference.step();

  expect_same(with.optimizer.state_dict().at("0.master"), copy, "master");
}

TEST(MasterWeights, AStateWithMastersIsRefusedWhereThereAreNone) {
  Trained with;
  with.step(1);
  for (const bool is_wide : {false, true}) {
    Trained without(is_wide, is_wide ? float32 : bfloat16);
    const std::string error =
        error_of([&] { without.optimizer.load_state_dict(with.optimizer.state_dict()); });
    EXPECT_NE(error.find("the state has 0.master"), std::string::npos) << error;
    EXPECT_NE(error.find("set master_weights"), std::string::npos) << error;
  }
}

// Weights that are loaded, clamped or averaged after a step are not undone by the next one.
TEST(MasterWeights, StartAgainWhereTheProgramWritesTheParameter) {
  Trained training;
  training.step(3);
  const std::vector<float> before = floats(training.optimizer.state_dict().at("0.master"));
  {
    const NoGradGuard no_grad;
    training.p.narrow(0, 1, 2).fill_(7);
  }
  training.p.set_grad(zeros({5}, {.dtype = bfloat16}));
  training.optimizer.set_lr(0);
  training.optimizer.step();

  const std::vector<float> after = floats(training.optimizer.state_dict().at("0.master"));
  EXPECT_EQ(after, (std::vector<float>{before[0], 7, 7, before[3], before[4]}));
}

// Clipped, scaled and scheduled as without masters.
TEST(MasterWeights, ClippingSchedulesAndTheScalerKeepWorking) {
  manual_seed(2);
  const Tensor start = randn({64}).to(bfloat16);
  const Tensor narrow = leaf(start, bfloat16), wide = leaf(start, float32);
  SGD optimizer({narrow}, {.lr = 0.05, .momentum = 0.9, .master_weights = true});
  SGD reference({wide}, {.lr = 0.05, .momentum = 0.9});
  lr_scheduler::StepLR schedule(optimizer, {.step_size = 2, .gamma = 0.5});
  lr_scheduler::StepLR expected(reference, {.step_size = 2, .gamma = 0.5});
  GradScaler scaler({.init_scale = 1024});
  int num_skipped = 0;
  for (int step = 0; step < 6; ++step) {
    const Tensor x = randn({64}).to(bfloat16);
    optimizer.zero_grad();
    const Tensor loss = (narrow * x).sum();
    scaler.scale(loss).backward();
    if (step == 3) narrow.grad().narrow(0, 0, 1).fill_(INFINITY);
    scaler.unscale_(optimizer);
    nn::utils::clip_grad_norm_({narrow}, 0.5);
    const Tensor grad = narrow.grad().to(float32);
    if (scaler.step(optimizer)) {
      wide.set_grad(grad);
      reference.step();
    } else {
      ++num_skipped;
    }
    scaler.update();
    schedule.step();
    expected.step();
    expect_rounded({narrow}, optimizer, {wide}, reference, str("step ", step));
  }
  EXPECT_EQ(num_skipped, 1);
}

// Each rank updates its share of master, state and parameter.
TEST(MasterWeights, OfGlobalParametersEqualThoseOfOneRank) {
  manual_seed(4);
  const Tensor start = randn({7, 5}).to(bfloat16);
  Tensors grads;
  for (int step = 0; step < 4; ++step)
    grads.push_back(randn({7, 5}).to(bfloat16));
  const auto train = [&](const TensorOptions& layout, bool shards_state) {
    const auto placed = [&](const Tensor& x) {
      if (!layout.placement.defined()) return x;
      return tensor(floats(x), x.shape(), layout).to(bfloat16);
    };
    const Tensor p = placed(start).detach().clone().requires_grad_();
    AdamW optimizer({p}, {.lr = 1e-3, .shard_state = shards_state, .master_weights = true});
    for (const Tensor& grad : grads) {
      p.set_grad(placed(grad));
      optimizer.step();
    }
    nn::StateDict result = optimizer.state_dict();
    if (layout.placement.defined()) {
      const bool is_split = shards_state || layout.sbp == NdSbp(kS0);
      EXPECT_EQ(result.at("0.master").sbp() != NdSbp(kB), is_split);
      EXPECT_EQ(result.at("0.master").sbp(), result.at("0.exp_avg").sbp());
      EXPECT_EQ(p.sbp(), layout.sbp);
    }
    return std::vector{floats(p), floats(result.at("0.master")), floats(result.at("0.exp_avg_sq"))};
  };
  const auto want = train({}, false);
  run_ranks(3, [&] {
    for (const Sbp& sbp : {kB, kS0}) {
      for (const bool shards_state : {false, true})
        EXPECT_EQ(train({.placement = kThree, .sbp = sbp}, shards_state), want) << sbp;
    }
  });
}

}  // namespace
}  // namespace flow::optim
