// Training under autocast, or with 16-bit parameters that have float32 masters, on one rank and on
// two, with a scaled loss where float16 needs it.
#include <cmath>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"

namespace flow {
namespace {

enum class Precision { kFull, kBFloat16, kFloat16 };

template <class Loss>
Tensor loss_under(Precision precision, const Loss& loss) {
  const DType dtype = precision == Precision::kFloat16 ? float16 : bfloat16;
  const AutocastGuard autocast(dtype, {.enabled = precision != Precision::kFull});
  return loss();
}

// Losses of steps on one batch.
template <class Loss>
std::vector<double> train(optim::Optimizer& optimizer, Precision precision, int steps,
                          const Loss& loss_fn) {
  optim::GradScaler scaler({.enabled = precision == Precision::kFloat16});
  std::vector<double> losses;
  for (int i = 0; i < steps; ++i) {
    const Tensor loss = loss_under(precision, loss_fn);
    EXPECT_EQ(loss.dtype(), float32);
    optimizer.zero_grad();
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

void expect_follows(const std::vector<double>& got, const std::vector<double>& full) {
  ASSERT_EQ(got.size(), full.size());
  EXPECT_LT(full.back(), 0.9 * full.front());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(std::isfinite(got[i]));
    EXPECT_NEAR(got[i], full[i], 0.03 * full.front()) << "step " << i;
  }
}

// Of data parallel and tensor parallel runs.
struct Layout {
  Placement placement = {};
  bool splits_model = false;
};

TensorOptions batch_options(const Layout& layout) {
  if (!layout.placement.defined()) return {};
  return {.placement = layout.placement,
          .sbp = NdSbp(layout.splits_model ? sbp::broadcast : sbp::split(0))};
}

std::vector<double> train_mlp(Precision precision, const Layout& layout = {}) {
  manual_seed(1);
  const Tensor pixels = sin(square(arange(16.0 * 12))).reshape({16, 12});  // the same on all ranks
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 16; ++i)
    labels.push_back(i * 5 % 4);
  nn::Linear first(12, 24), second(24, 4);
  TensorOptions batch = batch_options(layout);
  Tensor x = pixels;
  if (layout.placement.defined()) {
    x = tensor(pixels.to_vector<float>(), {16, 12}, batch);
    const auto lay = [&](nn::Linear& linear, const Sbp& weight, const Sbp& bias) {
      const bool splits = layout.splits_model;
      linear.to_global(layout.placement, {{"weight", splits ? weight : sbp::broadcast},
                                          {"bias", splits ? bias : sbp::broadcast}});
    };
    lay(first, sbp::split(0), sbp::split(0));
    lay(second, sbp::split(1), sbp::broadcast);
  }
  const Tensor target = tensor(labels, {16}, batch);
  std::vector<Tensor> parameters = first.parameters();
  for (const Tensor& parameter : second.parameters())
    parameters.push_back(parameter);
  optim::AdamW optimizer(parameters, {.lr = 0.02});
  return train(optimizer, precision, 8,
               [&] { return cross_entropy(second(relu(first(x))), target); });
}

TEST(MixedPrecision, AnMlpFollowsFloat32) {
  const std::vector<double> full = train_mlp(Precision::kFull);
  expect_follows(train_mlp(Precision::kBFloat16), full);
  expect_follows(train_mlp(Precision::kFloat16), full);
}

TEST(MixedPrecision, TwoRanksFollowOne) {
  const std::vector<double> one = train_mlp(Precision::kBFloat16);
  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    expect_follows(train_mlp(Precision::kBFloat16, {both, false}), one);
    expect_follows(train_mlp(Precision::kBFloat16, {both, true}), one);
    expect_follows(train_mlp(Precision::kFloat16, {both, false}), one);
  });
}

TEST(MixedPrecision, AConvolutionalNetFollowsFloat32) {
  const auto run = [](Precision precision) {
    manual_seed(2);
    nn::Sequential model(nn::Conv2d(1, 4, 3, {.padding = 1}), nn::BatchNorm2d(4), nn::ReLU(),
                         nn::MaxPool2d(2), nn::Flatten(), nn::Linear(4 * 16, 3));
    const Tensor x = randn({6, 1, 8, 8}),
                 target = tensor(std::vector<int64_t>{0, 1, 2, 0, 1, 2}, {6});
    optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
    return train(optimizer, precision, 6, [&] { return cross_entropy(model(x), target); });
  };
  const std::vector<double> full = run(Precision::kFull);
  expect_follows(run(Precision::kBFloat16), full);
  expect_follows(run(Precision::kFloat16), full);
}

TEST(MixedPrecision, AGptFollowsFloat32) {
  const auto run = [](Precision precision, bool has_masters = false) {
    manual_seed(3);
    models::Gpt model({.vocab_size = 13, .block_size = 8, .n_layer = 2, .n_head = 2, .n_embd = 16});
    std::vector<int64_t> text;
    for (int64_t i = 0; i < 18; ++i)
      text.push_back(i * i % 13);
    const Tensor all = tensor(text, {2, 9});
    const Tensor tokens = narrow(all, 1, 0, 8), next = narrow(all, 1, 1, 8).reshape({16});
    if (has_masters) model.to(bfloat16);
    optim::AdamW optimizer(model.parameters(), {.lr = 0.01, .master_weights = has_masters});
    return train(optimizer, precision, 6, [&] {
      return cross_entropy(model(tokens).reshape({16, 13}).to(float32), next);
    });
  };
  const std::vector<double> full = run(Precision::kFull);
  expect_follows(run(Precision::kBFloat16), full);
  expect_follows(run(Precision::kFloat16), full);
  expect_follows(run(Precision::kFull, true), full);
}

}  // namespace
}  // namespace flow
