// Compiled steps of 16-bit parameters with masters: equal to eager ones, and to one rank's under
// ZeRO, bit for bit.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

using Values = std::vector<std::pair<std::string, std::vector<double>>>;

// Parameters and state.
Values values_of(const nn::ModuleBase& model, const optim::Optimizer& optimizer) {
  Values values;
  for (const nn::StateDict& dict : {model.state_dict(), optimizer.state_dict()}) {
    for (const auto& [name, tensor] : dict)
      values.emplace_back(name, tensor.to(float64).to_vector<double>());
  }
  return values;
}

void expect_same(const Values& got, const Values& want, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    EXPECT_EQ(got[i].first, want[i].first) << what;
    EXPECT_EQ(got[i].second, want[i].second) << what << ", " << want[i].first;
  }
}

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer, const nn::GraphOptimizerOptions& options,
        optim::GradScaler& scaler)
      : model(m) {
    add_optimizer(optimizer, options);
    config().set_grad_scaler(scaler).set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x).to(float32), y);
    loss.backward();
    return loss;
  }
};

enum class Way { kEager, kCompiled, kInTurn };

// The scale is so large at first that gradients overflow.
Values train(Way way, bool is_sgd) {
  manual_seed(3);
  models::Mlp model({5, 8, 4});
  model.to(bfloat16);
  std::unique_ptr<optim::Optimizer> optimizer;
  if (is_sgd) {
    optimizer = std::make_unique<optim::SGD>(
        model.parameters(),
        optim::SGDOptions{.lr = 0.01, .momentum = 0.9, .dampening = 0.1, .master_weights = true});
  } else {
    optimizer = std::make_unique<optim::AdamW>(
        model.parameters(),
        optim::AdamWOptions{.lr = 1e-3, .amsgrad = true, .master_weights = true});
  }
  optim::lr_scheduler::StepLR schedule(*optimizer, {.step_size = 3, .gamma = 0.5});
  optim::GradScaler scaler({.init_scale = 0x1p129, .growth_interval = 2});
  Train graph(model, *optimizer, {.lr_scheduler = &schedule, .clip_grad_norm = 0.1}, scaler);
  double least = scaler.get_scale();
  for (int step = 0; step < 12; ++step) {
    const Tensor x = randn({6, 5}).to(bfloat16), y = randint(0, 4, {6}, {.dtype = int64});
    if (way == Way::kCompiled || (way == Way::kInTurn && step % 3 == 1)) {
      graph(x, y);
    } else {
      optimizer->zero_grad();
      scaler.scale(cross_entropy(model(x).to(float32), y)).backward();
      scaler.unscale_(*optimizer);
      nn::utils::clip_grad_norm_(model.parameters(), 0.1);
      scaler.step(*optimizer);
      scaler.update();
      schedule.step();
    }
    least = std::min(least, scaler.get_scale());
  }
  EXPECT_LT(least, 0x1p129);
  EXPECT_TRUE(optimizer->state_dict().contains("0.master"));
  return values_of(model, *optimizer);
}

TEST(GraphMasters, CompiledStepsEqualEagerOnesBitForBit) {
  for (const bool is_sgd : {true, false}) {
    const Values want = train(Way::kEager, is_sgd);
    expect_same(train(Way::kCompiled, is_sgd), want, "compiled");
    expect_same(train(Way::kInTurn, is_sgd), want, "in turn");
  }
}

// The gradients are sums of products of small integers, which bfloat16 holds, so they do not depend
// on the layout or on the dtype.
struct LinearTrain : nn::Graph<LinearTrain> {
  nn::Linear model;
  Tensor factors;

  LinearTrain(nn::Linear m, Tensor f, optim::Optimizer& optimizer, int64_t stage)
      : model(m), factors(std::move(f)) {
    add_optimizer(optimizer);
    config().enable_zero({.stage = stage});
  }

  Tensor build(const Tensor& x) {
    const Tensor loss = (model(x) * factors).sum();
    loss.backward();
    return loss;
  }
};

Values train_linear(const TensorOptions& layout, int64_t stage, DType dtype, bool has_masters) {
  manual_seed(5);
  nn::Linear model(7, 5);
  model.to(bfloat16);  // the same start in every dtype
  model.to(dtype);
  if (layout.placement.defined()) {
    model.to_global(Placement("cpu", {0}), kB);
    model.to_global(layout.placement, kB);
  }
  optim::AdamW optimizer(model.parameters(), {.lr = 1e-3, .master_weights = has_masters});
  const auto integers = [&](const Shape& shape, TensorOptions options) {
    options.dtype = int64;
    return randint(-3, 4, shape, options).to(dtype);
  };
  TensorOptions whole = layout;
  if (layout.placement.defined()) whole.sbp = kB;
  LinearTrain graph(model, integers({5}, whole), optimizer, stage);
  for (int step = 0; step < 4; ++step)
    graph(integers({12, 7}, layout));
  return values_of(model, optimizer);
}

// The values of `wide` as a training in bfloat16 with masters has them.
Values rounded(const Values& wide) {
  Values narrow;
  for (const auto& [name, values] : wide) {
    const bool is_parameter = name == "weight" || name == "bias";
    const Tensor all = tensor(values, {static_cast<int64_t>(values.size())});
    narrow.emplace_back(
        name, is_parameter ? all.to(float32).to(bfloat16).to(float64).to_vector<double>() : values);
  }
  return narrow;
}

TEST(GraphMasters, EveryZeroStageEqualsAFloat32TrainingOfOneRank) {
  const Values wide = train_linear({}, 0, float32, false);
  const auto expect_equals_wide = [&](const TensorOptions& layout, int64_t stage) {
    Values got = train_linear(layout, stage, bfloat16, true);
    size_t num_masters = 0;
    for (const auto& [name, values] : got) {
      if (!name.ends_with(".master")) continue;
      // Parameter 0 is the weight, 1 the bias.
      EXPECT_EQ(values, wide[name == "0.master" ? 1 : 0].second) << name << ", stage " << stage;
      ++num_masters;
    }
    EXPECT_EQ(num_masters, 2U);
    std::erase_if(got, [](const auto& entry) { return entry.first.ends_with(".master"); });
    expect_same(got, rounded(wide), str("stage ", stage));
  };
  ASSERT_EQ(wide[0].first, "bias");
  ASSERT_EQ(wide[1].first, "weight");

  expect_equals_wide({}, 0);
  run_ranks(3, [&] {
    for (const int64_t stage : {0, 1, 2, 3})
      expect_equals_wide({.placement = kThree, .sbp = kS0}, stage);
  });
}

// Stages of ZeRO cut the masters as the rest of the state.
TEST(GraphMasters, AreCutWithTheState) {
  run_ranks(2, [] {
    for (const int64_t stage : {1, 2, 3}) {
      nn::Linear model(8, 4);
      model.to(bfloat16);
      model.to_global(kPair, kB);
      optim::AdamW optimizer(model.parameters(), {.master_weights = true});
      const TensorOptions rows{.placement = kPair, .sbp = kS0};
      LinearTrain graph(model, ones({4}, {.placement = kPair, .sbp = kB}).to(bfloat16), optimizer,
                        stage);
      graph(ones({2, 8}, rows).to(bfloat16));
      const Tensor master = optimizer.state_dict().at("0.master");
      EXPECT_EQ(master.meta().local_numel, 16) << stage;
      EXPECT_EQ(model.parameters()[0].meta().local_numel, stage == 3 ? 16 : 32) << stage;
      EXPECT_EQ(model.parameters()[0].to(float32).to_vector<float>(),
                master.to(bfloat16).to(float32).to_vector<float>());
    }
  });
}

}  // namespace
}  // namespace flow
