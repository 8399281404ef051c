// What stands beside an optimizer: scaling, clipping, averages, groups that come later.
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"

namespace flow::optim {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor parameter(double value) {
  return tensor({value}, {.dtype = float64, .requires_grad = true});
}

void set_grad(const Tensor& p, double value) {
  p.set_grad(tensor({value}, {.dtype = float64}));
}

TEST(GradScaler, UnscalesAndLeavesOutStepsThatOverflow) {
  const Tensor p = parameter(1);
  SGD sgd({p}, {.lr = 1});
  GradScaler scaler({.init_scale = 8, .growth_interval = 2});
  EXPECT_EQ(scaler.scale(tensor({3.0}, {.dtype = float64})).item(), 24);
  set_grad(p, 4);
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_EQ(p.item(), 0.5);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 8);
  set_grad(p, kInfinity);
  EXPECT_FALSE(scaler.step(sgd));
  EXPECT_EQ(p.item(), 0.5);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 4);
  for (int i = 0; i < 2; ++i) {
    set_grad(p, 0);
    scaler.step(sgd);
    scaler.update();
  }
  EXPECT_EQ(scaler.get_scale(), 8);
}

TEST(GradScaler, UnscalesOnceAndRemembersItsState) {
  const Tensor p = parameter(1);
  SGD sgd({p}, {.lr = 1});
  GradScaler scaler({.init_scale = 2}), other;
  set_grad(p, 2);
  scaler.unscale_(sgd);
  EXPECT_EQ(p.grad().item(), 1);
  EXPECT_THROW(scaler.unscale_(sgd), InvalidArgument);
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_EQ(p.item(), 0);
  EXPECT_THROW(scaler.step(sgd), InvalidArgument);
  scaler.update();
  EXPECT_THROW(scaler.update(), InvalidArgument);
  other.load_state_dict(scaler.state_dict());
  EXPECT_EQ(other.get_scale(), 2);
}

TEST(GradScaler, ItsStateHoldsTheFactorsAndIsRefusedWhenIncomplete) {
  GradScaler scaler({.init_scale = 2, .growth_interval = 7}), other, off({.enabled = false});
  scaler.set_growth_factor(4);
  scaler.set_backoff_factor(0.25);
  EXPECT_THROW(scaler.set_growth_factor(1), InvalidArgument);
  other.load_state_dict(scaler.state_dict());
  EXPECT_EQ(other.get_growth_factor(), 4);
  EXPECT_EQ(other.get_backoff_factor(), 0.25);
  EXPECT_EQ(other.get_growth_interval(), 7);
  nn::StateDict state = scaler.state_dict();
  state.erase("growth_interval");
  EXPECT_THROW(other.load_state_dict(state), InvalidArgument);
  EXPECT_FALSE(off.is_enabled());
  EXPECT_TRUE(off.state_dict().empty());
  EXPECT_EQ(scaler.scale(std::vector{ones({}), ones({})})[1].item(), 2);
}

TEST(GradScaler, RefusesAScaleThatCannotBeUndone) {
  GradScaler scaler;
  EXPECT_THROW(scaler.update(0.0), InvalidArgument);
  EXPECT_THROW(scaler.update(std::numeric_limits<double>::infinity()), InvalidArgument);
  scaler.update(8.0);
  EXPECT_EQ(scaler.get_scale(), 8);
}

TEST(GradScaler, RefusesGradientsInFloat16) {
  const Tensor p = ones({2}, {.dtype = float16}).requires_grad_();
  p.set_grad(ones({2}, {.dtype = float16}));
  SGD sgd({p}, {.lr = 1});
  EXPECT_THROW(GradScaler().step(sgd), InvalidArgument);
}

TEST(GradScaler, RefusesAStepWithoutGradients) {
  const Tensor p = parameter(1);
  SGD sgd({p}, {.lr = 1});
  GradScaler scaler({.init_scale = 2, .growth_interval = 1});
  scaler.unscale_(sgd);
  EXPECT_THROW(scaler.step(sgd), InvalidArgument);
  EXPECT_THROW(scaler.update(), InvalidArgument);  // as there was no step
  EXPECT_EQ(scaler.get_scale(), 2);
  set_grad(p, 2);
  EXPECT_TRUE(scaler.step(sgd));
  EXPECT_EQ(p.item(), 0);
}

TEST(GradScaler, ScalesALossBeyondTheRangeOfItsDtype) {
  const Tensor w = full({}, 3.0, {.requires_grad = true});
  const GradScaler scaler({.init_scale = 32768});
  const Tensor scaled = scaler.scale(w.to(float16));
  EXPECT_EQ(scaled.dtype(), float32);
  EXPECT_EQ(scaled.item(), 98304);
  scaled.backward();
  EXPECT_EQ(w.grad().item(), 32768);
  EXPECT_EQ(scaler.scale(ones({2}, {.dtype = bfloat16})).dtype(), bfloat16);
  EXPECT_EQ(scaler.scale(ones({}, {.dtype = float64})).dtype(), float64);
}

TEST(GradScaler, EveryOptimizerIsJudgedAloneButOneOverflowLowersTheScale) {
  const Tensor p = parameter(1), q = parameter(1);
  SGD first({p}, {.lr = 1}), second({q}, {.lr = 1});
  GradScaler scaler({.init_scale = 2});
  set_grad(p, 2);
  set_grad(q, kInfinity);
  scaler.unscale_(second);
  EXPECT_TRUE(scaler.step(first));
  EXPECT_FALSE(scaler.step(second));
  scaler.update();
  EXPECT_EQ(p.item(), 0);
  EXPECT_EQ(q.item(), 1);
  EXPECT_EQ(scaler.get_scale(), 1);
}

TEST(GradScaler, UnscalesGlobalGradientsUnderAPlacementGuard) {
  run_ranks(2, [] {
    const PlacementGuard guard(Placement("cpu", {0, 1}), sbp::broadcast);
    nn::Linear fc(4, 2);
    SGD optimizer(fc.parameters(), {.lr = 0.1});
    GradScaler scaler;
    scaler.scale(fc(ones({3, 4})).sum()).backward();
    EXPECT_TRUE(scaler.step(optimizer));
  });
}

TEST(GradScaler, AnOverflowInOneRanksPartStopsAll) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1}), last("cpu", {1});
    const auto stepped = [&](const Placement& placement, const NdSbp& layout, float value) {
      const Tensor p = ones({2}, {.placement = placement, .sbp = layout, .requires_grad = true});
      p.set_grad(tensor({1.f, value}, {.placement = placement, .sbp = layout}));
      SGD sgd({p}, {.lr = 1});
      GradScaler scaler({.init_scale = 2});
      const bool result = scaler.step(sgd);
      scaler.update();
      EXPECT_EQ(scaler.get_scale(), result ? 2 : 1);
      EXPECT_EQ(p.full().to_vector<float>()[0], result ? 0.5f : 1.f);
      return result;
    };
    EXPECT_FALSE(stepped(both, sbp::split(0), INFINITY));  // on rank 1
    EXPECT_TRUE(stepped(both, sbp::split(0), 1));
    EXPECT_FALSE(stepped(last, sbp::split(0), NAN));  // rank 0 holds nothing of it
    EXPECT_FALSE(stepped(both, sbp::broadcast, NAN));
  });
}

TEST(MovingAverage, FollowsTheWeightsAndStandsInForThem) {
  const Tensor p = parameter(1);
  MovingAverage ema({p}, {.decay = 0.75});
  EXPECT_THROW(ema.copy_to_tensors(), InvalidArgument);
  ema.update();
  const NoGradGuard no_grad;
  p.fill_(5);
  ema.update();
  EXPECT_EQ(ema.averages()[0].item(), 2);
  {
    const auto scope = ema.apply();
    EXPECT_EQ(p.item(), 2);
  }
  EXPECT_EQ(p.item(), 5);
  MovingAverage resumed({p}, {.decay = 0.75});
  resumed.load_state_dict(ema.state_dict());
  resumed.update();
  EXPECT_EQ(resumed.averages()[0].item(), 2.75);
}

TEST(MovingAverage, AStateOfOneRankLoadsIntoAnyLayout) {
  MovingAverage whole({tensor({1.0, 2.0, 3.0}, {.dtype = float64})});
  whole.update();
  const nn::StateDict state = whole.state_dict();
  run_ranks(2, [&] {
    const Tensor p =
        zeros({3}, {.dtype = float64, .placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    MovingAverage average({p});
    average.load_state_dict(state);
    EXPECT_EQ(average.averages()[0].sbp(), NdSbp(sbp::split(0)));
    average.copy_to_tensors();
    EXPECT_EQ(p.to_vector<double>(), (std::vector<double>{1, 2, 3}));
  });
}

TEST(MovingAverage, AStateWithoutTheAveragesItCountsIsRefused) {
  const Tensor p = parameter(1);
  MovingAverage average({p});
  EXPECT_THROW(average.load_state_dict({{"num_updates", full({}, 5.0)}}), InvalidArgument);
  EXPECT_THROW(average.load_state_dict({{"num_updates", full({}, 0.0)}, {"0", p}}),
               InvalidArgument);
  average.load_state_dict(MovingAverage({p}).state_dict());
  EXPECT_THROW(average.copy_to_tensors(), InvalidArgument) << "there is none yet";
}

TEST(MovingAverage, IntegersAreCopied) {
  const Tensor p = tensor({1.F}), count = tensor({int64_t{1}});
  MovingAverage average({p, count}, {.decay = 0.5});
  average.update();
  p.fill_(3);
  count.fill_(7);
  average.update();
  EXPECT_EQ(average.averages()[0].item(), 2);
  EXPECT_EQ(average.averages()[1].item<int64_t>(), 7);
  EXPECT_EQ(average.num_updates(), 2);
}

TEST(MovingAverage, WithoutDecayEveryUpdateCountsAlike) {
  const Tensor p = parameter(1);
  MovingAverage average({p}, {.decay = std::nullopt});
  const NoGradGuard no_grad;
  for (const double value : {1.0, 2.0, 6.0}) {
    p.fill_(value);
    average.update();
  }
  EXPECT_DOUBLE_EQ(average.averages()[0].item(), 3);
}

TEST(ClipGrad, ReturnsTheNormBeforeAndRefusesWhatIsNotFinite) {
  const Tensor p = parameter(1), q = parameter(1), without = parameter(1);
  set_grad(p, 3);
  set_grad(q, 4);
  EXPECT_EQ(nn::utils::clip_grad_norm_({p, q, without}, 2.5).item(), 5);
  EXPECT_NEAR(p.grad().item(), 1.5, 1e-6);
  EXPECT_NEAR(q.grad().item(), 2, 1e-6);
  set_grad(q, kInfinity);
  EXPECT_THROW(nn::utils::clip_grad_norm_({p, q}, 1, {.error_if_nonfinite = true}),
               InvalidArgument);
  EXPECT_NEAR(p.grad().item(), 1.5, 1e-6);
  EXPECT_EQ(nn::utils::clip_grad_norm_({without}, 1).item(), 0);
  EXPECT_THROW(nn::utils::clip_grad_norm_({p}, -1), InvalidArgument);
}

// PyTorch's values. The norm is beyond the range of float16.
TEST(ClipGrad, GradientsMayHaveSeveralDTypes) {
  const auto with_grad = [](const Tensor& grad) {
    const Tensor p = zeros_like(grad).requires_grad_();
    p.set_grad(grad.clone());
    return p;
  };
  const Tensor half = with_grad(tensor({3.F, 4.F}).to(float16));
  const Tensor full = with_grad(tensor({40000.F, 60000.F}));
  const Tensor norm = nn::utils::clip_grad_norm_({half, full}, 1);
  EXPECT_EQ(norm.dtype(), float32);
  EXPECT_FLOAT_EQ(norm.item<float>(), 72111.0234F);
  EXPECT_EQ(half.grad().to(float32).to_vector<float>(),
            (std::vector<float>{4.16040421e-05F, 5.54919243e-05F}));
  EXPECT_FLOAT_EQ(full.grad()[0].item<float>(), 0.55470020F);
}

TEST(ClipGrad, OfCutGradientsTheNormIsThatOfTheWhole) {
  const std::vector<double> ones_then_twos = {1, 1, 1, 2, 2, 2};
  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    const auto with_grad = [&](const std::vector<double>& values, DType dtype, Sbp layout) {
      const TensorOptions options{.placement = both, .sbp = layout};
      const Tensor p = tensor(values, {static_cast<int64_t>(values.size())}, options).to(dtype);
      const Tensor leaf = p.detach().requires_grad_();
      leaf.set_grad(p);
      return leaf;
    };
    for (const double p : {0.5, 1.0, 2.0, 3.0, kInfinity}) {
      const auto norm_in = [&](Sbp layout) {
        const std::vector<Tensor> parameters = {with_grad(ones_then_twos, float64, layout),
                                                with_grad(ones_then_twos, float64, sbp::broadcast)};
        return nn::utils::clip_grad_norm_(parameters, 1e9, {.norm_type = p}).item();
      };
      EXPECT_NEAR(norm_in(sbp::split(0)), norm_in(sbp::broadcast), 1e-12) << p;
    }
    // The squares are beyond the range of float16.
    const Tensor half = with_grad({300, 400}, float16, sbp::split(0));
    EXPECT_EQ(nn::utils::clip_grad_norm_({half}, 1000).item(), 500);
  });
}

TEST(Optimizer, AGroupMayComeLaterAndNoParameterTwice) {
  const Tensor a = parameter(1), b = parameter(1);
  RMSprop optimizer({a}, {.lr = 0.1});
  set_grad(a, 1);
  optimizer.step();
  optimizer.add_param_group({{b}, {.lr = 0.5}});
  EXPECT_EQ(optimizer.num_groups(), 2);
  EXPECT_EQ(optimizer.state_dict().at("0.step").item(), 1);
  EXPECT_THROW(optimizer.add_param_group({{a}, {}}), InvalidArgument);
  EXPECT_THROW(Adam({a, a}, {}), InvalidArgument);
  EXPECT_THROW(Adam({Tensor()}, {}), InvalidArgument);
  EXPECT_THROW(Adam({a * 2.0}, {}), InvalidArgument);
}

TEST(Lamb, AParameterOfZerosTakesTheUpdateAsItIs) {
  const Tensor p = parameter(0);
  LAMB optimizer({p}, {.lr = 0.5});
  set_grad(p, 2);
  optimizer.step();
  EXPECT_NEAR(p.item(), -0.5, 1e-8);
}

TEST(Optimizer, AGroupMayChangeTheOptionsOfTheFirst) {
  const Tensor a = parameter(1), b = parameter(1);
  AdamW optimizer({a}, {.lr = 1e-2, .weight_decay = 0.5});
  optimizer.add_param_group({b}, [](auto& options) { options.weight_decay = 0; });
  EXPECT_EQ(optimizer.lr(1), 1e-2);
  EXPECT_EQ(optimizer.groups()[1].options.weight_decay, 0);
  EXPECT_EQ(optimizer.groups()[0].options.weight_decay, 0.5);
  EXPECT_THROW(optimizer.add_param_group({parameter(1)}, [](auto& o) { o.lr = -1; }),
               InvalidArgument);
}

}  // namespace
}  // namespace flow::optim
