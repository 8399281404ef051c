// Parallel equals single in float32, where sums round by their order: first gradients agree within
// 1e-5, and losses of 20 steps stray no further than ten times as far as those of one rank whose
// first weights are moved by 1e-7.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

constexpr int kSteps = 20;
constexpr int kMoved = 6;  // runs of one rank with moved weights

struct Training {
  std::vector<double> losses;
  std::vector<std::pair<std::string, std::vector<float>>> first_grads;
};

// A model and the batch it learns by heart.
template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Tensor(const TensorOptions&)> input;
  Shape targets;
  int64_t classes;
  double lr;
};

template <class Model>
Training train(const Task<Model>& task, const TrainingLayout& layout, int moved = 0) {
  manual_seed(11);
  Model model = task.make_model();
  if (moved > 0) {
    const NoGradGuard no_grad;
    for (const Tensor& parameter : model.parameters()) {
      const Tensor step = sin(arange(static_cast<double>(parameter.numel())) + 1.7 * moved);
      parameter.add_(1e-7 * step.reshape(parameter.shape()));
    }
  }
  if (layout.placement.defined()) model.to_global(layout.placement, layout.model);
  manual_seed(12);
  const Tensor x = task.input({.placement = layout.placement, .sbp = layout.data});
  const Tensor targets =
      randint(0, task.classes, task.targets,
              {.dtype = int64, .placement = layout.placement, .sbp = layout.data});
  optim::SGD optimizer(model.parameters(), {.lr = task.lr, .momentum = 0.9});
  Training training;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor logits = model(x);
    const Tensor loss = cross_entropy(logits.reshape({-1, task.classes}), targets.reshape({-1}));
    optimizer.zero_grad();
    loss.backward();
    training.losses.push_back(loss.template item<double>());
    if (step == 0) {
      for (const auto& [name, parameter] : model.named_parameters())
        training.first_grads.emplace_back(name, parameter.grad().template to_vector<float>());
    }
    optimizer.step();
  }
  return training;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values)
    sum += double{value} * value;
  return std::sqrt(sum);
}

template <class Model>
void expect_like_one_rank(const Task<Model>& task, const std::vector<TrainingLayout>& layouts) {
  const Training single = train(task, {});
  EXPECT_LT(single.losses.back(), single.losses.front());
  std::vector<double> allowed(kSteps);
  for (int moved = 1; moved <= kMoved; ++moved) {
    const Training other = train(task, {}, moved);
    for (size_t i = 0; i < kSteps; ++i)
      allowed[i] = std::max(allowed[i], 10 * std::abs(other.losses[i] - single.losses[i]));
  }
  for (size_t i = 0; i < kSteps; ++i) {
    allowed[i] = std::max({allowed[i], i == 0 ? 0 : allowed[i - 1], 1e-6 * single.losses[i]});
    EXPECT_LT(allowed[i], 0.05 * single.losses[0]) << "the spread says nothing at step " << i;
  }
  // Gradients that are zero but for rounding (biases that a norm takes out again) are as large as
  // what rounds in the others.
  double of_all = 0;
  for (const auto& [name, grad] : single.first_grads)
    of_all = std::hypot(of_all, norm(grad));
  for (const TrainingLayout& layout : layouts) {
    run_ranks(layout.placement.num_ranks(), [&] {
      const Training parallel = train(task, layout);
      const std::string where = str(layout.name, ", rank ", env::rank(), ": ");
      for (size_t i = 0; i < kSteps; ++i)
        EXPECT_NEAR(parallel.losses[i], single.losses[i], allowed[i]) << where << "step " << i;
      for (size_t i = 0; i < single.first_grads.size(); ++i) {
        const auto& [name, expected] = single.first_grads[i];
        std::vector<float> difference = parallel.first_grads[i].second;
        ASSERT_EQ(difference.size(), expected.size()) << name;
        for (size_t k = 0; k < expected.size(); ++k)
          difference[k] -= expected[k];
        EXPECT_LE(norm(difference), 1e-5 * norm(expected) + 1e-7 * of_all)
            << where << "gradient of " << name;
      }
    });
  }
}

TEST(Float32OnRanks, Mlp) {
  const Task<models::Mlp> task{.make_model =
                                   [] {
                                     return models::Mlp({20, 33, 17, 5});
                                   },
                               .input =
                                   [](const TensorOptions& options) {
                                     return randn({23, 20}, options);
                                   },
                               .targets = {23},
                               .classes = 5,
                               .lr = 0.05};
  expect_like_one_rank(
      task, {{"data parallel on 3", kThree, kS0, {{"*", kB}}},
             {"tensor parallel on 2", kPair, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"*", kB}}},
             {"2 x 2",
              kGrid,
              {kS0, kB},
              {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}}}});
}

TEST(Float32OnRanks, LenetWithDropout) {
  const Task<models::Lenet> task{.make_model = [] { return models::Lenet({.dropout = 0.5}); },
                                 .input =
                                     [](const TensorOptions& options) {
                                       return randn({5, 1, 28, 28}, options);
                                     },
                                 .targets = {5},
                                 .classes = 10,
                                 .lr = 0.002};
  expect_like_one_rank(task,
                       {{"data parallel on 2", kPair, kS0, {{"*", kB}}},
                        {"channels and columns on 2",
                         kPair,
                         kB,
                         {{"conv1.*", kS0}, {"conv2.weight", kS1}, {"hidden.*", kS0}, {"*", kB}}}});
}

TEST(Float32OnRanks, MobileNet) {
  const Task<models::MobileNetV2> task{
      .make_model =
          [] {
            return models::MobileNetV2({.num_classes = 4,
                                        .inverted_residual_setting = {{{1, 8, 1, 1}, {6, 8, 2, 2}}},
                                        .dropout = 0.2,
                                        .input_channel = 8,
                                        .last_channel = 16});
          },
      .input =
          [](const TensorOptions& options) {
            return randn({6, 3, 16, 16}, options);
          },
      .targets = {6},
      .classes = 4,
      .lr = 0.01};
  expect_like_one_rank(task, {{"data parallel on 3", kThree, kS0, {{"*", kB}}},
                              {"channels on 2",
                               kPair,
                               kB,
                               {{"*.num_batches_tracked", kB}, {"features.*", kS0}, {"*", kB}}}});
}

TEST(Float32OnRanks, GptWithDropout) {
  const Task<models::Gpt> task{.make_model =
                                   [] {
                                     return models::Gpt({.vocab_size = 13,
                                                         .block_size = 8,
                                                         .n_layer = 2,
                                                         .n_head = 2,
                                                         .n_embd = 16,
                                                         .dropout = 0.1});
                                   },
                               .input =
                                   [](TensorOptions options) {
                                     options.dtype = int64;
                                     return randint(0, 13, {5, 8}, options);
                                   },
                               .targets = {5, 8},
                               .classes = 13,
                               .lr = 0.05};
  expect_like_one_rank(task, {{"data parallel on 2", kPair, kS0, {{"*", kB}}},
                              {"sequence split on 2", kPair, kS1, {{"*", kB}}},
                              {"samples and heads on 2 x 2",
                               kGrid,
                               {kS0, kB},
                               {{"*.attn.c_[qkv].*", {kB, kS0}},
                                {"*.attn.c_proj.weight", {kB, kS1}},
                                {"*.mlp.c_fc.*", {kB, kS0}},
                                {"*.mlp.c_proj.weight", {kB, kS1}},
                                {"*", {kB, kB}}}}});
}

}  // namespace
}  // namespace flow
