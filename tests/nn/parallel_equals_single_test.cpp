// Parallel equals single: losses, gradient norms, first gradients and weights of a training on many
// ranks are those of one rank, whatever the layout; in float64, within 1e-9 of each tensor's
// largest element.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/largest_difference.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

constexpr int kSteps = 4;

using Doubles = std::vector<double>;

struct Training {
  Doubles losses;
  Doubles grad_norms;
  std::vector<std::pair<std::string, Doubles>> first_grads;
  std::vector<std::pair<std::string, Doubles>> weights;
  std::vector<std::pair<std::string, Doubles>> buffers;
};

// What is trained: `model` is made anew on every rank, `input` and `loss` from the options of the
// data.
template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Tensor(const TensorOptions&)> input;
  std::function<Tensor(const Tensor& y)> loss;
  std::function<std::shared_ptr<optim::Optimizer>(const std::vector<Tensor>&)> make_optimizer;
};

double norm_of_grads(const std::vector<Tensor>& parameters) {
  double sum = 0;
  for (const Tensor& parameter : parameters)
    sum += square(parameter.grad()).sum().item<double>();
  return std::sqrt(sum);
}

template <class Model>
Training train(const Task<Model>& task, const TrainingLayout& layout) {
  manual_seed(11);
  Model model = task.make_model();
  model.to(float64);
  if (layout.placement.defined()) model.to_global(layout.placement, layout.model);
  const auto optimizer = task.make_optimizer(model.parameters());
  Training training;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x =
        task.input({.dtype = float64, .placement = layout.placement, .sbp = layout.data});
    const Tensor loss = task.loss(model(x));
    optimizer->zero_grad();
    loss.backward();
    training.losses.push_back(loss.template item<double>());
    training.grad_norms.push_back(norm_of_grads(model.parameters()));
    if (step == 0) {
      for (const auto& [name, parameter] : model.named_parameters()) {
        if (layout.placement.defined()) {
          EXPECT_EQ(parameter.grad().sbp(), parameter.sbp()) << name;
        }
        training.first_grads.emplace_back(name, parameter.grad().template to_vector<double>());
      }
    }
    optimizer->step();
  }
  for (const auto& [name, parameter] : model.named_parameters())
    training.weights.emplace_back(name, parameter.template to_vector<double>());
  for (const auto& [name, buffer] : model.named_buffers())
    training.buffers.emplace_back(name, buffer.template to_vector<double>());
  return training;
}

void expect_close(const Doubles& got, const Doubles& want, const std::string& what) {
  double largest = 0;
  for (const double value : want) {
    ASSERT_TRUE(std::isfinite(value)) << what;
    largest = std::max(largest, std::abs(value));
  }
  EXPECT_LE(largest_difference(got, want), 1e-9 * largest) << what;
}

template <class Model>
void expect_equal_trainings(const Task<Model>& task, const std::vector<TrainingLayout>& layouts) {
  const Training single = train(task, {});
  ASSERT_NE(single.losses.front(), single.losses.back());
  for (const TrainingLayout& layout : layouts) {
    run_ranks(layout.ranks(), [&] {
      const Training parallel = train(task, layout);
      const std::string where = str(layout.name, ", rank ", env::rank(), ": ");
      expect_close(parallel.losses, single.losses, where + "losses");
      expect_close(parallel.grad_norms, single.grad_norms, where + "gradient norms");
      for (size_t i = 0; i < single.weights.size(); ++i) {
        const std::string& name = single.weights[i].first;
        expect_close(parallel.first_grads[i].second, single.first_grads[i].second,
                     where + "gradient of " + name);
        expect_close(parallel.weights[i].second, single.weights[i].second, where + name);
      }
      for (size_t i = 0; i < single.buffers.size(); ++i) {
        expect_close(parallel.buffers[i].second, single.buffers[i].second,
                     where + single.buffers[i].first);
      }
    });
  }
}

TEST(ParallelEqualsSingle, Mlp) {
  const Task<models::Mlp> task{.make_model =
                                   [] {
                                     return models::Mlp({7, 10, 9, 4});
                                   },
                               .input =
                                   [](const TensorOptions& options) {
                                     return randn({11, 7}, options);
                                   },
                               .loss = [](const Tensor& y) { return square(y - 1.0).mean(); },
                               .make_optimizer =
                                   [](const std::vector<Tensor>& parameters) {
                                     return std::make_shared<optim::AdamW>(
                                         parameters, optim::AdamWOptions{.lr = 0.01});
                                   }};
  expect_equal_trainings(
      task, {{"data parallel on 2", kPair, kS0, {{"*", kB}}},
             {"data parallel on 3", kThree, kS0, {{"*", kB}}},
             {"tensor parallel on 2",
              kPair,
              kB,
              {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"fc3.*", kS0}, {"*", kB}}},
             {"tensor parallel on 3", kThree, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"*", kB}}},
             {"data and tensor parallel on 2 x 2",
              kGrid,
              {kS0, kB},
              {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}}},
             {"input features split", kPair, kS1, {{"fc1.weight", kS1}, {"*", kB}}},
             {"every parameter split in every way", kGrid, {kS0, kS0}, {{"*", {kS0, kB}}}}});
}

TEST(ParallelEqualsSingle, LenetWithDropout) {
  const Task<models::Lenet> task{.make_model = [] { return models::Lenet({.dropout = 0.5}); },
                                 .input =
                                     [](const TensorOptions& options) {
                                       return randn({5, 1, 28, 28}, options);
                                     },
                                 .loss = [](const Tensor& y) { return square(y - 1.0).mean(); },
                                 .make_optimizer =
                                     [](const std::vector<Tensor>& parameters) {
                                       return std::make_shared<optim::SGD>(
                                           parameters,
                                           optim::SGDOptions{.lr = 0.01, .momentum = 0.9});
                                     }};
  expect_equal_trainings(
      task, {{"data parallel on 2", kPair, kS0, {{"*", kB}}},
             {"channels and columns on 2",
              kPair,
              kB,
              {{"conv1.*", kS0}, {"conv2.weight", kS1}, {"hidden.*", kS0}, {"*", kB}}},
             {"data and tensor parallel on 2 x 2",
              kGrid,
              {kS0, kB},
              {{"hidden.*", {kB, kS0}}, {"outlayer.weight", {kB, kS1}}, {"*", {kB, kB}}}}});
}

// A block as in convolutional nets: statistics are those of the logical batch.
struct ConvBlock : nn::Module<ConvBlock> {
  nn::Conv2d conv1{register_module("conv1", nn::Conv2d(3, 8, 3, {.padding = 1, .bias = false}))};
  nn::BatchNorm2d norm1{register_module("norm1", nn::BatchNorm2d(8))};
  nn::Conv2d conv2{
      register_module("conv2", nn::Conv2d(8, 6, 3, {.stride = 2, .groups = 2, .bias = false}))};
  nn::BatchNorm2d norm2{register_module("norm2", nn::BatchNorm2d(6))};
  nn::Linear out{register_module("out", nn::Linear(6, 4))};

  Tensor forward(const Tensor& x) {
    const Tensor y = relu(norm2(conv2(relu(norm1(conv1(x))))));
    return out(adaptive_avg_pool2d(y, {1, 1}).flatten(1));
  }
};

TEST(ParallelEqualsSingle, ConvolutionAndBatchNorm) {
  const Task<ConvBlock> task{.make_model = [] { return ConvBlock(); },
                             .input =
                                 [](const TensorOptions& options) {
                                   return randn({5, 3, 9, 7}, options);
                                 },
                             .loss = [](const Tensor& y) { return square(y - 1.0).mean(); },
                             .make_optimizer =
                                 [](const std::vector<Tensor>& parameters) {
                                   return std::make_shared<optim::SGD>(
                                       parameters, optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
                                 }};
  expect_equal_trainings(
      task, {{"data parallel on 2", kPair, kS0, {{"*", kB}}},
             {"data parallel on 3", kThree, kS0, {{"*", kB}}},
             {"channels on 2",
              kPair,
              kB,
              {{"conv1.*", kS0}, {"norm1.num_batches_tracked", kB}, {"norm1.*", kS0}, {"*", kB}}},
             {"a statistic of two split on 2",
              kPair,
              kS0,
              {{"norm1.running_mean", kS0}, {"norm2.running_var", kS0}, {"*", kB}}},
             {"rows of the image", kPair, sbp::split(2), {{"*", kB}}}});
}

constexpr int64_t kVocabulary = 13, kSamples = 4, kLength = 6;

struct Encoder : nn::Module<Encoder> {
  nn::Embedding embed{register_module("embed", nn::Embedding(kVocabulary, 8))};
  nn::TransformerEncoderLayer layer{
      register_module("layer", nn::TransformerEncoderLayer(8, 2,
                                                           {.dim_feedforward = 10,
                                                            .dropout = 0.2,
                                                            .activation = "gelu",
                                                            .batch_first = true,
                                                            .norm_first = true}))};
  nn::LayerNorm norm{register_module("norm", nn::LayerNorm({8}))};
  nn::Linear head{register_module("head", nn::Linear(8, kVocabulary))};

  Tensor forward(const Tensor& tokens) { return head(norm(layer(embed(tokens)))); }
};

TEST(ParallelEqualsSingle, TransformerWithDropout) {
  const Task<Encoder> task{
      .make_model = [] { return Encoder(); },
      .input =
          [](TensorOptions options) {
            options.dtype = int64;
            return randint(0, kVocabulary, {kSamples, kLength}, options);
          },
      .loss =
          [](const Tensor& y) {
            std::vector<int64_t> targets;
            for (int64_t i = 0; i < kSamples * kLength; ++i)
              targets.push_back(i * 5 % kVocabulary);
            TensorOptions options;
            if (y.is_global()) {
              options.placement = y.placement();
              options.sbp = NdSbp::broadcast(y.placement().num_axes());
            }
            return cross_entropy(y.flatten(0, 1), tensor(targets, {kSamples * kLength}, options));
          },
      .make_optimizer =
          [](const std::vector<Tensor>& parameters) {
            return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 0.01});
          }};
  expect_equal_trainings(task, {{"data parallel on 3", kThree, kS0, {{"*", kB}}},
                                {"sequence split on 2", kPair, kS1, {{"*", kB}}},
                                {"vocabulary and columns on 2",
                                 kPair,
                                 kB,
                                 {{"embed.weight", kS0},
                                  {"head.*", kS0},
                                  {"layer.linear1.*", kS0},
                                  {"layer.linear2.weight", kS1},
                                  {"layer.self_attn.in_proj*", kS0},
                                  {"*", kB}}},
                                {"data and tensor parallel on 2 x 2",
                                 kGrid,
                                 {kS0, kB},
                                 {{"embed.weight", {kB, kS1}},
                                  {"head.*", {kB, kS0}},
                                  {"layer.linear1.*", {kB, kS0}},
                                  {"layer.linear2.weight", {kB, kS1}},
                                  {"*", {kB, kB}}}}});
}

struct Recurrent : nn::Module<Recurrent> {
  nn::LSTM lstm{register_module(
      "lstm",
      nn::LSTM(4, 6,
               {.num_layers = 2, .batch_first = true, .bidirectional = true, .proj_size = 3}))};
  nn::GRU gru{register_module("gru", nn::GRU(6, 6, {.batch_first = true}))};
  nn::RNN rnn{register_module("rnn", nn::RNN(6, 4, nn::RnnOptions{.batch_first = true}))};

  Tensor forward(const Tensor& x) { return rnn(gru(lstm(x).output).output).output; }
};

TEST(ParallelEqualsSingle, RecurrentLayers) {
  const Task<Recurrent> task{.make_model = [] { return Recurrent(); },
                             .input =
                                 [](const TensorOptions& options) {
                                   return randn({6, 5, 4}, options);
                                 },
                             .loss = [](const Tensor& y) { return square(y).mean(); },
                             .make_optimizer =
                                 [](const std::vector<Tensor>& parameters) {
                                   return std::make_shared<optim::SGD>(
                                       parameters, optim::SGDOptions{.lr = 0.5});
                                 }};
  expect_equal_trainings(
      task,
      {{"data parallel on 3", kThree, kS0, {{"*", kB}}},
       {"sequence split on 2", kPair, kS1, {{"*", kB}}},
       {"gates split on 2", kPair, kB, {{"*.weight_hh*", kS0}, {"*.bias_ih*", kS0}, {"*", kB}}},
       {"states split on 2 x 2",
        kGrid,
        {kS0, kB},
        {{"*.weight_hh*", {kB, kS1}}, {"*", {kB, kB}}}}});
}

TEST(ParallelEqualsSingle, WithOptimizerStateCutOverReplicas) {
  const auto task_with = [](bool shard_state) {
    return Task<models::Mlp>{.make_model =
                                 [] {
                                   return models::Mlp({7, 10, 3});
                                 },
                             .input =
                                 [](const TensorOptions& options) {
                                   return randn({8, 7}, options);
                                 },
                             .loss = [](const Tensor& y) { return square(y - 1.0).mean(); },
                             .make_optimizer =
                                 [=](const std::vector<Tensor>& parameters) {
                                   return std::make_shared<optim::LAMB>(
                                       parameters,
                                       optim::LAMBOptions{.lr = 0.01, .shard_state = shard_state});
                                 }};
  };
  expect_equal_trainings(task_with(true), {{"data parallel on 3", kThree, kS0, {{"*", kB}}},
                                           {"data and tensor parallel on 2 x 2",
                                            kGrid,
                                            {kS0, kB},
                                            {{"fc1.*", {kB, kS0}}, {"*", {kB, kB}}}}});
}

TEST(ShardState, EachRankHoldsItsShare) {
  run_ranks(4, [] {
    const Placement four("cpu", {0, 1, 2, 3});
    Tensor x = ones({2, 40}, {.placement = four, .sbp = kB});
    x.requires_grad_();
    optim::AdamW optimizer({x}, {.lr = 0.1, .shard_state = true});
    (x * 2.0).sum().backward();

    optimizer.step();

    EXPECT_EQ(x.sbp(), NdSbp(kB));
    const nn::StateDict state = optimizer.state_dict();
    EXPECT_EQ(state.at("0.exp_avg").sbp(), NdSbp(kS1));
    EXPECT_EQ(state.at("0.exp_avg").to_local().shape(), (Shape{2, 10}));
    optim::AdamW other({x}, {.lr = 0.1, .shard_state = true});
    other.load_state_dict(state);
    EXPECT_EQ(other.state_dict().at("0.exp_avg").sbp(), NdSbp(kS1));
    EXPECT_EQ(other.state_dict().at("0.exp_avg").to_vector<float>(),
              state.at("0.exp_avg").to_vector<float>());
  });
}

}  // namespace
}  // namespace flow
