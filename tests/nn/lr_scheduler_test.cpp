// Facts beyond the numbers of tests/parity.
#include <cmath>

#include <gtest/gtest.h>

#include "nn/flow.h"

namespace flow::optim::lr_scheduler {
namespace {

SGD make_sgd(double lr) {
  return SGD({zeros({1}, {.requires_grad = true})}, {.lr = lr});
}

TEST(LrScheduler, StepLrHalvesEverySecondEpoch) {
  SGD sgd = make_sgd(0.5);
  StepLR schedule(sgd, {.step_size = 2, .gamma = 0.5});
  std::vector<double> rates;
  for (int epoch = 0; epoch < 5; ++epoch) {
    rates.push_back(sgd.lr());
    schedule.step();
  }
  EXPECT_EQ(rates, (std::vector<double>{0.5, 0.5, 0.25, 0.25, 0.125}));
  EXPECT_EQ(schedule.last_epoch(), 5);
  EXPECT_EQ(schedule.last_lr(), (std::vector<double>{0.125}));
}

TEST(LrScheduler, ConstantLrMayBeginAtZero) {
  SGD sgd = make_sgd(0.5);
  ConstantLR schedule(sgd, {.factor = 0, .total_iters = 2});
  std::vector<double> rates;
  for (int epoch = 0; epoch < 4; ++epoch) {
    rates.push_back(sgd.lr());
    schedule.step();
  }
  EXPECT_EQ(rates, (std::vector<double>{0, 0, 0.5, 0.5}));
}

TEST(LrScheduler, EveryGroupGoesFromItsOwnRate) {
  SGD sgd(
      std::vector<ParamGroup<SGDOptions>>{{{zeros({1})}, {.lr = 1}}, {{zeros({1})}, {.lr = 4}}});
  LambdaLR schedule(sgd, {.lr_lambdas = {[](int64_t epoch) { return epoch == 0 ? 1.0 : 0.5; },
                                         [](int64_t) { return 0.25; }}});
  EXPECT_EQ(schedule.last_lr(), (std::vector<double>{1, 1}));
  schedule.step();
  EXPECT_EQ(schedule.last_lr(), (std::vector<double>{0.5, 1}));
}

TEST(LrScheduler, CosineDecayStaysAtItsEnd) {
  SGD sgd = make_sgd(2);
  CosineDecayLR schedule(sgd, {.decay_steps = 2, .alpha = 0.25});
  EXPECT_DOUBLE_EQ(sgd.lr(), 2);
  schedule.step();
  EXPECT_DOUBLE_EQ(sgd.lr(), 2 * (0.75 * 0.5 + 0.25));
  schedule.step();
  schedule.step();
  EXPECT_DOUBLE_EQ(sgd.lr(), 0.5);
}

TEST(LrScheduler, CycleMomentumTurnsTheFirstBeta) {
  Adam adam({zeros({1}, {.requires_grad = true})}, {.lr = 0.1});
  OneCycleLR schedule(adam, {.max_lr = 1, .total_steps = 10});
  EXPECT_DOUBLE_EQ(adam.momentum().value(), 0.95);
  schedule.step();
  schedule.step();
  EXPECT_DOUBLE_EQ(adam.momentum().value(), 0.85);
  EXPECT_EQ(adam.groups()[0].options.betas.second, 0.999);
}

TEST(LrScheduler, OneCycleIsFiniteForEveryShareAndLength) {
  for (const double share : {0.0, 0.1, 0.5, 1.0}) {
    for (const bool three_phase : {false, true}) {
      for (const int64_t steps : {1, 2, 10}) {
        SGD sgd({zeros({1}, {.requires_grad = true})}, {.lr = 0.1, .momentum = 0.9});
        OneCycleLR schedule(
            sgd,
            {.max_lr = 1, .total_steps = steps, .pct_start = share, .three_phase = three_phase});
        for (int64_t step = 0; step <= steps; ++step) {
          EXPECT_TRUE(std::isfinite(sgd.lr())) << share << ", step " << step << " of " << steps;
          EXPECT_TRUE(std::isfinite(sgd.momentum().value())) << share << ", step " << step;
          if (step < steps) schedule.step();
        }
      }
    }
  }
}

TEST(LrScheduler, WrongUseIsRefused) {
  SGD sgd = make_sgd(1), other = make_sgd(1);
  Adagrad adagrad({zeros({1}, {.requires_grad = true})}, {});
  EXPECT_THROW(StepLR(sgd, {.step_size = 0}), InvalidArgument);
  EXPECT_THROW(LambdaLR(sgd, {}), InvalidArgument);
  EXPECT_THROW(OneCycleLR(sgd, {.max_lr = {1}}), InvalidArgument);
  EXPECT_THROW(OneCycleLR(adagrad, {.max_lr = {1}, .total_steps = 5}), InvalidArgument);
  EXPECT_THROW(CyclicLR(sgd, {.base_lr = {1, 2}, .max_lr = {3}}), InvalidArgument);
  EXPECT_THROW(ReduceLROnPlateau(sgd, {.factor = 1}), InvalidArgument);
  EXPECT_THROW(ChainedScheduler({}), InvalidArgument);
  ExponentialLR mine(sgd, {.gamma = 0.5}), foreign(other, {.gamma = 0.5});
  EXPECT_THROW(ChainedScheduler({&mine, &foreign}), InvalidArgument);
  EXPECT_THROW(SequentialLR(sgd, {&mine}, {.milestones = {1}}), InvalidArgument);
  OneCycleLR cycle(sgd, {.max_lr = {1}, .total_steps = 1});
  cycle.step();
  EXPECT_THROW(cycle.step(), InvalidArgument);
}

TEST(LrScheduler, APlateauReducesTheRatesOfLaterGroupsToo) {
  const Tensor a = zeros({1}, {.requires_grad = true}), b = zeros({1}, {.requires_grad = true});
  SGD sgd({a}, {.lr = 1});
  ReduceLROnPlateau plateau(sgd, {.factor = 0.5, .patience = 0, .min_lr = 0.1});
  plateau.step(1);
  sgd.add_param_group({{b}, {.lr = 2}});
  plateau.step(1);
  EXPECT_EQ(sgd.lr(0), 0.5);
  EXPECT_EQ(sgd.lr(1), 1);
  ReduceLROnPlateau of_each(sgd, {.min_lr = {0.1, 0.2}});
  sgd.add_param_group({{zeros({1}, {.requires_grad = true})}, {.lr = 2}});
  EXPECT_THROW(of_each.step(1), InvalidArgument);
}

// As in PyTorch, a training that goes on follows the rates with which it began.
TEST(LrScheduler, AStateHasTheInitialRates) {
  const auto squared = [](int64_t epoch) {
    return 1.0 / static_cast<double>((epoch + 1) * (epoch + 1));
  };
  SGD first = make_sgd(1), second = make_sgd(2), third = make_sgd(2);
  LambdaLR before(first, {.lr_lambda = squared}), after(second, {.lr_lambda = squared}),
      without(third, {.lr_lambda = squared});
  nn::StateDict state = before.state_dict();
  after.load_state_dict(state);
  after.step();
  EXPECT_EQ(second.lr(), 0.25);
  state.erase("base_lr.0");
  without.load_state_dict(state);
  without.step();
  EXPECT_EQ(third.lr(), 0.5);
}

TEST(LrScheduler, AStateThatDoesNotFitChangesNothing) {
  SGD sgd = make_sgd(1);
  ExponentialLR a(sgd, {.gamma = 0.5});
  LinearLR b(sgd, {});
  ChainedScheduler both({&a, &b});
  both.step();
  nn::StateDict state = both.state_dict();
  EXPECT_TRUE(state.contains("1.last_epoch"));
  state.erase("1.last_epoch");
  both.step();
  EXPECT_THROW(both.load_state_dict(state), InvalidArgument);
  EXPECT_EQ(a.last_epoch(), 2);
}

}  // namespace
}  // namespace flow::optim::lr_scheduler
