// Models, loader and update rules of this folder on two to four thread ranks give the numbers of
// one.
#include <cmath>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/loopback_ranks.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

void expect_close(const std::vector<double>& got, const std::vector<double>& want,
                  const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-10 * std::max(1.0, std::abs(want[i]))) << what << ' ' << i;
}

// The data parallel program of the reference: global batches, a model laid out in place, a replaced
// classifier.
std::vector<double> train_mobilenet(const TrainingLayout& layout) {
  manual_seed(5);
  models::MobileNetV2 model({.inverted_residual_setting = {{{1, 8, 1, 1}, {6, 8, 2, 2}}},
                             .input_channel = 8,
                             .last_channel = 16});
  model.replace_module("classifier",
                       nn::Sequential(nn::Dropout(0.2), nn::Linear(model.last_channel(), 4)));
  model.to(float64);
  data::DataLoaderOptions options{.batch_size = 5, .shuffle = true};
  if (layout.placement.defined()) {
    model.to_global(layout.placement, layout.model);
    options.placement = layout.placement;
    options.sbp = layout.data;
  }
  const Tensor images = sin(arange(12.0 * 3 * 16 * 16, {.dtype = float64}));
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 12; ++i)
    labels.push_back(i * 7 % 4);
  data::DataLoader loader(
      data::TensorDataset(images.reshape({12, 3, 16, 16}), tensor(labels, {12})), options);
  nn::CrossEntropyLoss loss_fn;
  optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  std::vector<double> losses;
  for (int pass = 0; pass < 2; ++pass) {
    for (auto [x, y] : loader) {
      const Tensor loss = loss_fn(model(x), y);
      optimizer.zero_grad();
      loss.backward();
      losses.push_back(nn::utils::clip_grad_norm_(model.parameters(), 1).item<double>());
      optimizer.step();
      losses.push_back(loss.item<double>());
    }
  }
  return losses;
}

void expect_single(const std::function<std::vector<double>(const TrainingLayout&)>& train,
                   const std::vector<TrainingLayout>& layouts) {
  const std::vector<double> single = train({});
  for (const TrainingLayout& layout : layouts) {
    run_ranks(layout.placement.num_ranks(),
              [&] { expect_close(train(layout), single, layout.name); });
  }
}

TEST(ModelsOnRanks, MobileNetFollowsOneRank) {
  expect_single(train_mobilenet, {{"data parallel on 2", kPair, kS0, {{"*", kB}}},
                                  {"data parallel on 3", kThree, kS0, {{"*", kB}}},
                                  {"channels on 2",
                                   kPair,
                                   kB,
                                   {{"*.num_batches_tracked", kB}, {"features.*", kS0}, {"*", kB}}},
                                  {"samples and channels on 2 x 2",
                                   kGrid,
                                   {kS0, kB},
                                   {{"*.num_batches_tracked", {kB, kB}},
                                    {"features.*", {kB, kS0}},
                                    {"classifier.1.weight", {kB, kS1}},
                                    {"*", {kB, kB}}}}});
}

std::vector<double> train_gpt(const TrainingLayout& layout) {
  manual_seed(5);
  models::Gpt model(
      {.vocab_size = 11, .block_size = 6, .n_layer = 2, .n_head = 2, .n_embd = 8, .dropout = 0.1});
  model.to(float64);
  TensorOptions options{.dtype = int64};
  if (layout.placement.defined()) {
    model.to_global(layout.placement, layout.model);
    options.placement = layout.placement;
    options.sbp = layout.data;
  }
  const Tensor tokens = randint(0, 11, {3, 7}, options);
  optim::AdamW optimizer(model.parameters(), {.lr = 0.01});
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    const Tensor logits = model(narrow(tokens, 1, 0, 6));
    const Tensor loss = cross_entropy(logits.flatten(0, 1), narrow(tokens, 1, 1, 6).flatten());
    optimizer.zero_grad();
    loss.backward();
    losses.push_back(nn::utils::clip_grad_norm_(model.parameters(), 1).item<double>());
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

TEST(ModelsOnRanks, GptWithDropoutFollowsOneRank) {
  expect_single(
      train_gpt,
      {{"data parallel on 3", kThree, kS0, {{"*", kB}}},
       {"sequence split on 2", kPair, kS1, {{"*", kB}}},
       {"attention cut on 2",
        kPair,
        kB,
        {{"*.attn.c_[qkv].weight", kS0}, {"*.attn.c_proj.weight", kS1}, {"*", kB}}},
       {"all cut on 2",
        kPair,
        kB,
        {{"*.attn.c_[qkv].*", kS0},
         {"*.attn.c_proj.weight", kS1},
         {"*.mlp.c_fc.*", kS0},
         {"*.mlp.c_proj.weight", kS1},
         {"wte.weight", kS0},
         {"*", kB}}},
       {"samples and heads on 2 x 2",
        kGrid,
        {kS0, kB},
        {{"*.attn.c_[qkv].*", {kB, kS0}},
         {"*.attn.c_proj.weight", {kB, kS1}},
         {"*.mlp.c_fc.*", {kB, kS0}},
         {"*.mlp.c_proj.weight", {kB, kS1}},
         {"*", {kB, kB}}}},
       {"sequence and heads on 2 x 2",
        kGrid,
        {kS1, kB},
        {{"*.attn.c_[qkv].*", {kB, kS0}}, {"*.attn.c_proj.weight", {kB, kS1}}, {"*", {kB, kB}}}}});
}

// Losses and gradients of a GPT on 2 (data) x 2 (tensor) ranks.
std::vector<double> gradients_of_gpt(double bucket_mb) {
  const NdSbp rows_cut{sbp::broadcast, sbp::split(0)};
  const NdSbp columns_cut{sbp::broadcast, sbp::split(1)};
  manual_seed(5);
  models::Gpt model({.vocab_size = 11, .block_size = 6, .n_layer = 2, .n_head = 2, .n_embd = 8});
  model.to_global(kGrid, {{"*.attn.c_[qkv].*", rows_cut},
                          {"*.attn.c_proj.weight", columns_cut},
                          {"*.mlp.c_fc.*", rows_cut},
                          {"*.mlp.c_proj.weight", columns_cut},
                          {"*", NdSbp::broadcast(2)}});
  const Tensor tokens =
      randint(0, 11, {3, 7}, {.dtype = int64, .placement = kGrid, .sbp = {kS0, kB}});
  std::vector<double> seen;
  for (int step = 0; step < 2; ++step) {
    const Tensor logits = model(narrow(tokens, 1, 0, 6));
    const Tensor loss = cross_entropy(logits.flatten(0, 1), narrow(tokens, 1, 1, 6).flatten());
    backward({loss}, {}, {.bucket_mb = bucket_mb});
    seen.push_back(loss.item<double>());
  }
  for (const Tensor& parameter : model.parameters()) {
    EXPECT_EQ(parameter.grad().sbp(), parameter.sbp());
    for (const double value : parameter.grad().to_vector<double>())
      seen.push_back(value);
  }
  return seen;
}

int64_t num_reductions() {
  int64_t runs = 0;
  for (const BoxingEntry& entry : boxing_report().entries)
    runs += entry.route.find("all_reduce") != std::string::npos ? entry.runs : 0;
  return runs;
}

TEST(ModelsOnRanks, BucketsChangeNoBitAndSaveReductions) {
  run_ranks(4, [] {
    reset_boxing_report();
    const std::vector<double> one_by_one = gradients_of_gpt(0);
    const int64_t many = num_reductions();
    reset_boxing_report();
    EXPECT_EQ(gradients_of_gpt(25), one_by_one);
    const int64_t few = num_reductions();
    EXPECT_EQ(gradients_of_gpt(0.001), one_by_one);
    // A model of 30 parameters, twice: but for a few, all in one bucket.
    EXPECT_LE(few, many - 50);
  });
}

// Up to so many bytes of a member travel with the meeting of a collective.
constexpr double kInlineBytes = 1024;

TEST(ModelsOnRanks, ATensorParallelStepSendsTheBytesThatTheReportNames) {
  run_loopback_ranks(2, [] {
    models::Gpt model(
        {.vocab_size = 40, .block_size = 16, .n_layer = 2, .n_head = 2, .n_embd = 32});
    model.to_global(kPair, {{"*.attn.c_[qkv].*", sbp::split(0)},
                            {"*.attn.c_proj.weight", sbp::split(1)},
                            {"*.mlp.c_fc.*", sbp::split(0)},
                            {"*.mlp.c_proj.weight", sbp::split(1)},
                            {"*", sbp::broadcast}});
    const TensorOptions whole{.dtype = int64, .placement = kPair, .sbp = sbp::broadcast};
    const Tensor tokens = randint(0, 40, {4, 16}, whole);
    const Tensor targets = randint(0, 40, {4, 16}, whole);
    optim::AdamW optimizer(model.parameters(), {.lr = 0.01});
    reset_boxing_report();
    const int64_t before = loopback_bytes_received();

    cross_entropy(model(tokens).flatten(0, 1), targets.flatten()).backward();
    optimizer.step();

    double named = 0;
    for (const BoxingEntry& entry : boxing_report().entries) {
      if (entry.bytes > kInlineBytes) named += entry.bytes * static_cast<double>(entry.runs);
    }
    // Activations twice a block and direction, and nothing else (Shoeybi et al. 2019).
    EXPECT_EQ(named, 8 * 4 * 16 * 32 * 4);
    EXPECT_EQ(static_cast<double>(loopback_bytes_received() - before), named);
  });
}

// Rank 1 alone sees a target that is no class.
void fail_on_one_rank() {
  const TensorOptions rows{.dtype = int64, .placement = kPair, .sbp = sbp::split(0)};
  const Tensor targets = tensor(std::vector<int64_t>{0, 1, 2, 9}, {4}, rows);
  const Tensor logits = ones({4, 3}, {.placement = kPair, .sbp = sbp::split(0)});
  std::string message;
  try {
    message = str("loss ", cross_entropy(logits, targets).item());
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(env::rank(), 1) << error.what();
    return;
  } catch (const DistributedError& error) {
    message = error.what();
  }
  EXPECT_EQ(env::rank(), 0) << message;
  EXPECT_NE(message.find("rank 1 failed"), std::string::npos) << message;
  EXPECT_NE(message.find("target 9"), std::string::npos) << message;
}

TEST(ModelsOnRanks, ATargetOutOfRangeOnOneRankIsAnErrorOnAll) {
  run_ranks(2, fail_on_one_rank);
  run_loopback_ranks(2, fail_on_one_rank);
}

// Two parameters and two steps of a rule, then of one that goes on from its state.
template <class Optimizer>
std::vector<double> update(const NdSbp& layout) {
  TensorOptions options{.dtype = float64};
  if (!layout.empty()) {
    options.placement = kPair;
    options.sbp = layout;
  }
  const auto values = [&](double shift) {
    std::vector<double> numbers;
    for (int i = 0; i < 15; ++i)
      numbers.push_back(std::sin(shift + i));
    return tensor(numbers, {5, 3}, options);
  };
  const Tensor a = values(0).requires_grad_(), b = values(1).requires_grad_();
  auto optimizer = std::make_unique<Optimizer>(std::vector<Tensor>{a, b});
  std::vector<double> seen;
  for (int step = 0; step < 4; ++step) {
    a.set_grad(values(2 + step));
    b.set_grad(values(9 + step));
    seen.push_back(nn::utils::clip_grad_norm_({a, b}, 2).template item<double>());
    optimizer->step();
    for (const Tensor& tensor : {a, b}) {
      for (const double value : tensor.to_vector<double>())
        seen.push_back(value);
    }
    auto next = std::make_unique<Optimizer>(std::vector<Tensor>{a, b});
    next->load_state_dict(optimizer->state_dict());
    optimizer = std::move(next);
  }
  return seen;
}

template <class Optimizer>
class UpdateRules : public testing::Test {};

using Rules = testing::Types<optim::SGD, optim::Adam, optim::AdamW, optim::Adamax, optim::NAdam,
                             optim::RAdam, optim::RMSprop, optim::Adagrad, optim::Adadelta,
                             optim::LAMB, optim::ASGD, optim::Rprop, optim::Adafactor>;
TYPED_TEST_SUITE(UpdateRules, Rules);

TYPED_TEST(UpdateRules, SplitParametersFollowWholeOnes) {
  const std::vector<double> single = update<TypeParam>({});
  run_ranks(2, [&] {
    expect_close(update<TypeParam>(sbp::split(0)), single, "S(0)");
    expect_close(update<TypeParam>(sbp::split(1)), single, "S(1)");
    expect_close(update<TypeParam>(sbp::broadcast), single, "B");
  });
}

}  // namespace
}  // namespace flow
