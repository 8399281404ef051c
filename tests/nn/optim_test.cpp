#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"

namespace flow::optim {
namespace {

// A parameter of two numbers and the gradients it gets step by step.
struct Problem {
  Tensor p = tensor({1.0, -2.0}, {.dtype = float64, .requires_grad = true});

  void set_grad(double a, double b) { p.set_grad(tensor({a, b}, {.dtype = float64})); }
};

constexpr double kGrads[3][2] = {{0.5, -1}, {0.25, 2}, {-1, 0.125}};

TEST(Sgd, MomentumNesterovAndDecayFollowTheFormula) {
  Problem problem;
  SGD optimizer({problem.p}, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  double p[2] = {1, -2}, buffer[2] = {};
  for (int step = 0; step < 3; ++step) {
    problem.set_grad(kGrads[step][0], kGrads[step][1]);
    optimizer.step();
    for (int i = 0; i < 2; ++i) {
      const double g = kGrads[step][i] + 0.01 * p[i];
      buffer[i] = step == 0 ? g : 0.9 * buffer[i] + g;
      p[i] -= 0.1 * (g + 0.9 * buffer[i]);
    }
    const auto got = problem.p.to_vector<double>();
    EXPECT_NEAR(got[0], p[0], 1e-14);
    EXPECT_NEAR(got[1], p[1], 1e-14);
  }
}

TEST(Sgd, FirstStepIgnoresDampening) {
  Problem problem;
  SGD optimizer({problem.p}, {.lr = 1, .momentum = 0.9, .dampening = 0.5});
  problem.set_grad(1, 1);
  optimizer.step();
  EXPECT_NEAR(problem.p.to_vector<double>()[0], 0, 1e-15);
  optimizer.step();
  EXPECT_NEAR(problem.p.to_vector<double>()[0], -(0.9 + 0.5), 1e-14);
}

TEST(AdamW, FollowsTheFormulaWithAndWithoutAmsgrad) {
  for (const bool amsgrad : {false, true}) {
    Problem problem;
    AdamW optimizer({problem.p}, {.lr = 0.01, .weight_decay = 0.1, .amsgrad = amsgrad});
    double p[2] = {1, -2}, m[2] = {}, v[2] = {}, largest[2] = {};
    for (int step = 1; step <= 3; ++step) {
      problem.set_grad(kGrads[step - 1][0], kGrads[step - 1][1]);
      optimizer.step();
      for (int i = 0; i < 2; ++i) {
        const double g = kGrads[step - 1][i];
        p[i] *= 1 - 0.01 * 0.1;
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.999 * v[i] + 0.001 * g * g;
        largest[i] = std::max(largest[i], v[i]);
        const double seen = amsgrad ? largest[i] : v[i];
        const double denominator = std::sqrt(seen) / std::sqrt(1 - std::pow(0.999, step)) + 1e-8;
        p[i] -= 0.01 / (1 - std::pow(0.9, step)) * m[i] / denominator;
      }
      const auto got = problem.p.to_vector<double>();
      EXPECT_NEAR(got[0], p[0], 1e-13) << amsgrad << ' ' << step;
      EXPECT_NEAR(got[1], p[1], 1e-13) << amsgrad << ' ' << step;
    }
  }
}

TEST(Optimizer, ParametersWithoutGradientStayAndDoNotCount) {
  Problem with, without;
  AdamW optimizer({with.p, without.p}, {});
  with.set_grad(1, 1);
  optimizer.step();
  EXPECT_EQ(without.p.to_vector<double>(), (std::vector<double>{1, -2}));
  EXPECT_FALSE(optimizer.state_dict().contains("1.step"));
  optimizer.zero_grad();
  EXPECT_FALSE(with.p.grad().defined());
}

TEST(Optimizer, StateContinuesWhereItStopped) {
  Problem a, b;
  AdamW first({a.p}, {.lr = 0.1});
  a.set_grad(1, 2);
  first.step();
  first.set_lr(0.05);
  {
    const NoGradGuard no_grad;
    b.p.copy_(a.p);
  }
  AdamW second({b.p}, {.lr = 0.1});
  second.load_state_dict(first.state_dict());
  EXPECT_EQ(second.lr(), 0.05);
  a.set_grad(3, -1);
  b.set_grad(3, -1);
  first.step();
  second.step();
  EXPECT_EQ(a.p.to_vector<double>(), b.p.to_vector<double>());
}

TEST(Optimizer, AStateThatDoesNotFitIsRefused) {
  Problem a;
  AdamW adam({a.p}, {});
  SGD sgd({a.p}, {.momentum = 0.9});
  a.set_grad(1, 1);
  adam.step();
  EXPECT_THROW(sgd.load_state_dict(adam.state_dict()), InvalidArgument);
  SGD plain({a.p}, {.lr = 1});
  a.set_grad(1, 1);
  plain.step();
  EXPECT_THROW(adam.load_state_dict(plain.state_dict()), InvalidArgument)
      << "there are no averages";
  EXPECT_EQ(adam.momentum(), 0.9);
}

TEST(Optimizer, GroupsHaveTheirOwnOptions) {
  Problem a, b;
  SGD optimizer(std::vector<ParamGroup<SGDOptions>>{{{a.p}, {.lr = 1}}, {{b.p}, {.lr = 0.5}}});
  a.set_grad(1, 1);
  b.set_grad(1, 1);
  optimizer.step();
  EXPECT_EQ(a.p.to_vector<double>()[0], 0);
  EXPECT_EQ(b.p.to_vector<double>()[0], 0.5);
  EXPECT_EQ(optimizer.lr(1), 0.5);
}

TEST(Optimizer, AGroupThatIsNotThereIsRefused) {
  Problem a;
  SGD optimizer({a.p}, {.lr = 1});
  for (const int64_t group : {-1, 1}) {
    EXPECT_THROW(optimizer.lr(group), InvalidArgument);
    EXPECT_THROW(optimizer.set_group_lr(group, 1), InvalidArgument);
    EXPECT_THROW(optimizer.momentum(group), InvalidArgument);
    EXPECT_THROW(optimizer.set_group_momentum(group, 1), InvalidArgument);
    EXPECT_THROW(optimizer.initial_lr(group), InvalidArgument);
    EXPECT_THROW(optimizer.set_initial_lr(group, 1), InvalidArgument);
  }
}

TEST(Optimizer, BadOptionsAreRefused) {
  Problem a;
  EXPECT_THROW(SGD({a.p}, {.lr = -1}), InvalidArgument);
  EXPECT_THROW(SGD({a.p}, {.nesterov = true}), InvalidArgument);
  EXPECT_THROW(AdamW({a.p}, {.betas = {1.0, 0.9}}), InvalidArgument);
}

TEST(Optimizers, LeaveInfiniteParametersWithoutDecayAlone) {
  const auto stepped = [](const auto& make) {
    const Tensor p = tensor({1.F, -std::numeric_limits<float>::infinity()}).requires_grad_();
    auto optimizer = make(std::vector<Tensor>{p});
    p.set_grad(tensor({0.5F, 0.F}));
    optimizer.step();
    return p.to_vector<float>()[1];
  };
  constexpr float kLowest = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(stepped([](const auto& p) { return SGD(p, {.lr = 0.1}); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return SGD(p, {.lr = 0.1, .momentum = 0.9}); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return Adam(p); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return AdamW(p); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return RMSprop(p); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return NAdam(p); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return RAdam(p); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return Adamax(p); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return Adagrad(p); }), kLowest);
  EXPECT_EQ(stepped([](const auto& p) { return Adadelta(p); }), kLowest);
}

// Four steps; the weight gets another layout and its first one again in between.
std::vector<double> losses_of(const std::shared_ptr<Optimizer>& optimizer, const nn::Linear& model,
                              bool compiled, bool moves) {
  struct Training : nn::Graph<Training> {
    nn::Linear model;

    Training(const nn::Linear& m, Optimizer& optimizer) : model(m) { add_optimizer(optimizer); }

    Tensor build(const Tensor& x) {
      const Tensor loss = model(x).square().mean();
      loss.backward();
      return loss;
    }
  };

  Training graph(model, *optimizer);
  const Tensor x = ones(
      {4, 4}, {.dtype = float64, .placement = model.weight.placement(), .sbp = model.weight.sbp()});
  std::vector<double> losses;
  for (const NdSbp& layout : {NdSbp(sbp::broadcast), NdSbp(sbp::broadcast), NdSbp(sbp::split(0)),
                              NdSbp(sbp::broadcast)}) {
    if (moves) nn::Linear(model).to_global({.sbp = layout});
    if (compiled) {
      losses.push_back(graph(x).item<double>());
      continue;
    }
    optimizer->zero_grad();
    const Tensor loss = model(x).square().mean();
    loss.backward();
    optimizer->step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

TEST(Optimizers, StateFollowsAParameterToAnotherLayout) {
  run_ranks(2, [] {
    const auto check = [](const auto& make) {
      const auto run = [&](bool compiled, bool moves) {
        manual_seed(3);
        nn::Linear model(4, 4);
        model.to(float64);
        model.to_global(Placement("cpu", {0, 1}), sbp::broadcast);
        return losses_of(make(model.parameters()), model, compiled, moves);
      };
      const std::vector<double> wanted = run(false, false);
      for (const bool compiled : {false, true}) {
        const std::vector<double> losses = run(compiled, true);
        for (size_t i = 0; i < wanted.size(); ++i)
          EXPECT_NEAR(losses[i], wanted[i], 1e-12) << compiled << ' ' << i;
      }
    };
    check([](const auto& p) { return std::make_shared<SGD>(p, SGDOptions{.momentum = 0.9}); });
    check([](const auto& p) { return std::make_shared<AdamW>(p); });
    check([](const auto& p) {
      return std::make_shared<AdamW>(p, AdamWOptions{.shard_state = true});
    });
    check([](const auto& p) { return std::make_shared<Adafactor>(p); });
  });
}

}  // namespace

}  // namespace flow::optim
