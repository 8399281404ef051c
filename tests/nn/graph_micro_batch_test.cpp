// Micro-batches of any loss: a step cut into parts gives what the whole batch gives.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/training_layouts.h"
#include "tests/support/training_run.h"

namespace flow {
namespace {

template <class Model>
struct Training : nn::Graph<Training<Model>> {
  Model model;
  CrossEntropyOptions options;

  Training(Model m, optim::Optimizer& optimizer, int64_t parts, CrossEntropyOptions o)
      : model(m), options(std::move(o)) {
    this->add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    this->config().set_micro_batches(parts);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = cross_entropy(out.reshape({-1, out.size(-1)}), y.flatten(), options);
    loss.backward();
    return loss;
  }
};

struct Batch {
  Tensor x, y;
};

template <class Model>
struct Task {
  std::function<Model()> make_model;
  std::function<Batch(TensorOptions options)> batch;
  CrossEntropyOptions options = {};
  DType dtype = float64;
};

template <class Model>
TrainingRun train(const Task<Model>& task, const TrainingLayout& layout, int64_t parts) {
  manual_seed(11);
  Model model = task.make_model();
  model.to(task.dtype);
  if (layout.placement.defined()) model.to_global(layout.placement, layout.model);
  optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  Training<Model> graph(model, optimizer, parts, task.options);
  TrainingRun run;
  for (int step = 0; step < 4; ++step) {
    const Batch batch =
        task.batch({.dtype = task.dtype, .placement = layout.placement, .sbp = layout.data});
    run.losses.push_back(graph(batch.x, batch.y).template item<double>());
  }
  run.read_weights(model);
  return run;
}

template <class Model>
void expect_parts_equal_whole(const Task<Model>& task, const std::vector<int64_t>& parts,
                              const std::vector<TrainingLayout>& layouts = {{}}) {
  for (const TrainingLayout& layout : layouts) {
    const int ranks =
        layout.placement.defined() ? static_cast<int>(layout.placement.num_ranks()) : 1;
    run_ranks(ranks, [&] {
      const TrainingRun whole = train(task, layout, 1);
      EXPECT_NE(whole.losses.front(), whole.losses.back());
      for (const int64_t count : parts)
        expect_near(train(task, layout, count), whole, str(layout.name, " in ", count));
    });
  }
}

Batch images(TensorOptions options, const Shape& shape) {
  const Tensor x = randn(shape, options);
  options.dtype = int64;
  return {x, randint(0, 4, {shape[0]}, options)};
}

const Task<models::Mlp> kMlp{[] {
                               return models::Mlp({7, 10, 4});
                             },
                             [](TensorOptions o) {
                               return images(o, {10, 7});
                             }};

const Task<models::Lenet> kLenet{[] { return models::Lenet({.dropout = 0.5}); },
                                 [](TensorOptions o) {
                                   return images(o, {8, 1, 28, 28});
                                 }};

constexpr int64_t kVocabulary = 16, kLength = 8;

Task<models::Gpt> gpt_task(double dropout) {
  return {[=] {
            return models::Gpt({.vocab_size = kVocabulary,
                                .block_size = kLength,
                                .n_layer = 2,
                                .n_head = 2,
                                .n_embd = 16,
                                .dropout = dropout});
          },
          [](TensorOptions o) {
            o.dtype = int64;
            return Batch{randint(0, kVocabulary, {8, kLength}, o),
                         randint(0, kVocabulary, {8, kLength}, o)};
          }};
}

TEST(MicroBatches, MlpGivesWhatTheWholeBatchGives) {
  expect_parts_equal_whole(kMlp, {2, 3, 4, 10});
}

TEST(MicroBatches, LenetWithDropoutGivesWhatTheWholeBatchGives) {
  expect_parts_equal_whole(kLenet, {3, 4});
}

struct Recurrent : nn::Module<Recurrent> {
  nn::LSTM lstm{register_module("lstm", nn::LSTM(3, 5, {.batch_first = true, .proj_size = 4}))};
  nn::GRU gru{register_module("gru", nn::GRU(4, 4, {.bidirectional = true}))};

  Tensor forward(const Tensor& x) { return gru(lstm(x).output.transpose(0, 1)).output[-1]; }
};

TEST(MicroBatches, RecurrentLayersGiveWhatTheWholeBatchGives) {
  expect_parts_equal_whole(Task<Recurrent>{[] { return Recurrent(); },
                                           [](TensorOptions o) {
                                             return images(o, {12, 6, 3});
                                           }},
                           {2, 3, 5});
}

TEST(MicroBatches, GptGivesWhatTheWholeBatchGives) {
  expect_parts_equal_whole(gpt_task(0), {3, 4});
}

TEST(MicroBatches, GptWithDropoutDrawsWhatTheWholeBatchDraws) {
  expect_parts_equal_whole(gpt_task(0.2), {3, 4});
}

TEST(MicroBatches, CountsOfTargetsAndSumsOfWeightsAreThoseOfTheWholeBatch) {
  Task<models::Mlp> task = kMlp;
  task.options = {.ignore_index = 1, .label_smoothing = 0.1};
  expect_parts_equal_whole(task, {2, 3});
  task.options.weight = tensor({1.0, 2.0, 0.5, 3.0}, {.dtype = float64});
  expect_parts_equal_whole(task, {2, 3});
}

struct GradientStep : nn::Graph<GradientStep> {
  models::Mlp model;

  GradientStep(models::Mlp m, int64_t parts) : model(m) { config().set_micro_batches(parts); }

  std::vector<Tensor> build(const Tensor& x, const Tensor& y) {
    cross_entropy(model(x), y).backward();
    const Tensor grad = model.parameters()[0].grad();
    return {grad.clone(), (grad * 2.0).sum()};
  }
};

TEST(MicroBatches, WhatAStepComputesOfGradientsIsThatOfTheWholeBatch) {
  manual_seed(1);
  models::Mlp model({4, 6, 3});
  model.to(float64);
  const Tensor x = randn({8, 4}, {.dtype = float64}), y = randint(0, 3, {8});
  const std::vector<Tensor> whole = GradientStep(model, 1)(x, y);
  const std::vector<Tensor> parts = GradientStep(model, 3)(x, y);

  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_TRUE(allclose(parts[i], whole[i], {.rtol = 1e-12, .atol = 1e-12})) << i;
}

TEST(MicroBatches, HalvesOfRanksGiveWhatTheWholeBatchGives) {
  expect_parts_equal_whole(kMlp, {2, 3},
                           {{"dp2", kPair, kS0, {{"*", kB}}},
                            {"tp2", kPair, kB, {{"fc1.*", kS0}, {"fc2.weight", kS1}, {"*", kB}}},
                            {"dp2 x tp2",
                             kGrid,
                             {kS0, kB},
                             {{"fc1.*", {kB, kS0}}, {"fc2.weight", {kB, kS1}}, {"*", {kB, kB}}}}});
}

// A weight that is added and multiplied for each sample: its gradients are sums over samples.
struct Repeated : nn::Module<Repeated> {
  Tensor scale{register_parameter("scale", randn({1, 6}))};
  Tensor products{register_parameter("products", randn({1, 3, 6}))};

  Tensor forward(const Tensor& x) { return matmul(x, products).sum(1) * scale; }
};

// The third part of 5 samples has none on the second rank.
TEST(MicroBatches, RanksWithoutSamplesOfAPartAddNothing) {
  const Task<Repeated> task{[] { return Repeated(); },
                            [](TensorOptions o) {
                              return images(o, {5, 4, 3});
                            }};
  expect_parts_equal_whole(task, {2, 3, 5}, {{"dp2", kPair, kS0, {{"*", kB}}}});
}

// Codes and a memory of which each sample has a row. All samples read all codes as well.
struct Codes : nn::Module<Codes> {
  Tensor codes{register_parameter("codes", randn({5, 4}, {.dtype = float64}))};
  Tensor memory{register_buffer("memory", randn({5, 4}, {.dtype = float64}))};

  Tensor forward(const Tensor& x) {
    const Tensor h = x * codes + memory;
    memory.copy_(h.detach() / 2);
    return tanh(matmul(h, codes.detach().t()));
  }
};

struct TrainedCodes : nn::Graph<TrainedCodes> {
  Codes model;

  TrainedCodes(Codes m, optim::Optimizer& optimizer, int64_t parts) : model(m) {
    add_optimizer(optimizer);
    nn::graph_module(model).set_stage(0);
    config().set_micro_batches(parts);
  }

  Tensor build(const Tensor& x) {
    Tensor loss = square(model(x)).sum();
    loss.backward();
    return loss;
  }
};

// The losses of three steps, then codes and memory; parts: 0 trains eagerly.
std::vector<double> train_codes(int64_t parts, const Placement& placement, const Sbp& rows,
                                const Sbp& samples) {
  manual_seed(4);
  Codes model;
  if (placement.defined()) {
    model.to_global(Placement("cpu", {0}), kB);
    model.to_global(placement, rows);
  }
  optim::SGD optimizer(model.parameters(), {.lr = 0.05, .momentum = 0.9});
  TrainedCodes graph(model, optimizer, std::max<int64_t>(parts, 1));
  TensorOptions options{.dtype = float64, .placement = placement};
  if (placement.defined()) options.sbp = samples;
  std::vector<double> run;
  for (int step = 0; step < 3; ++step) {
    const Tensor x = randn({5, 4}, options);
    Tensor loss;
    if (parts > 0) {
      loss = graph(x);
    } else {
      optimizer.zero_grad();
      loss = square(model(x)).sum();
      loss.backward();
      optimizer.step();
    }
    run.push_back(loss.item<double>());
  }
  for (const Tensor& state : {model.codes, model.memory}) {
    const std::vector<double> values = state.detach().to_vector<double>();
    run.insert(run.end(), values.begin(), values.end());
  }
  return run;
}

void expect_alike(const std::vector<double>& run, const std::vector<double>& want) {
  ASSERT_EQ(run.size(), want.size());
  for (size_t i = 0; i < run.size(); ++i)
    EXPECT_NEAR(run[i], want[i], 1e-12) << i;
}

TEST(MicroBatches, TrainTensorsWithARowForEachSample) {
  const std::vector<double> want = train_codes(0, Placement(), kB, kB);
  for (const int64_t parts : {1, 2, 5})
    expect_alike(train_codes(parts, Placement(), kB, kB), want);
  run_ranks(2, [&] {
    const std::vector<double> eager = train_codes(0, kPair, kB, kB);
    for (const Sbp& rows : {kB, kS0}) {
      for (const Sbp& samples : {kB, kS0}) {
        SCOPED_TRACE(testing::Message() << "rows " << rows << ", samples " << samples);
        expect_alike(train_codes(3, kPair, rows, samples), eager);
      }
    }
  });
}

TEST(MicroBatches, GptOnSeveralRanksGivesWhatTheWholeBatchGives) {
  expect_parts_equal_whole(
      gpt_task(0.1), {2, 3},
      {{"dp2", kPair, kS0, {{"*", kB}}},
       {"tp2", kPair, kB, gpt_layout(kS0, kS1, kB)},
       {"dp2 x tp2", kGrid, {kS0, kB}, gpt_layout({kB, kS0}, {kB, kS1}, {kB, kB})}});
}

TEST(MicroBatches, LenetOnSeveralRanksGivesWhatTheWholeBatchGives) {
  expect_parts_equal_whole(kLenet, {3}, {{"dp2", kPair, kS0, {{"*", kB}}}});
}

// The first rank has all samples, others work on them and return them.
TEST(MicroBatches, ValuesOfWholeInputsMayBeSplitOverOtherRanks) {
  struct Spread : nn::Graph<Spread> {
    explicit Spread(int64_t parts) { config().set_micro_batches(parts); }

    std::vector<Tensor> build(const Tensor& x) {
      const Placement others("cpu", {1, 2});
      const Tensor y = (x * 2).to_global({.placement = others, .sbp = kS0});
      const Tensor rows = arange(0, x.size(0), {.dtype = float32, .placement = others, .sbp = kS0});
      // Cross entropy counts targets before the first micro-batch.
      const Tensor targets = x.to_global({.placement = others}).select(1, 0).to(int64) % 2;
      return {y, y.transpose(0, 1), x + 1, (y + rows.unsqueeze(1)).sum(),
              cross_entropy(y, targets.to_global({.sbp = kS0}))};
    }
  };

  run_ranks(3, [] {
    for (const int64_t parts : {2, 3}) {
      for (const int64_t rows : {4, 7}) {
        const Tensor x = arange(0, rows * 2, {.dtype = float32, .placement = Placement("cpu", {0})})
                             .view({rows, 2});
        const std::vector<Tensor> results = Spread(parts)(x);
        EXPECT_EQ(results[0].sbp(), kS0);
        EXPECT_EQ(results[0].to_vector<float>(), (x * 2).to_vector<float>());
        EXPECT_EQ(results[1].to_vector<float>(), (x * 2).transpose(0, 1).to_vector<float>());
        EXPECT_EQ(results[2].to_vector<float>(), (x + 1).to_vector<float>());
        // Of twice the numbers from 0 to 2 rows - 1, and twice those from 0 to rows - 1.
        EXPECT_EQ(results[3].item(), 2 * rows * (2 * rows - 1) + rows * (rows - 1));
        // The first number of a row is even, and the second one, doubled, 2 larger.
        EXPECT_NEAR(results[4].item(), std::log(1 + std::exp(2)), 1e-5);
      }
    }
  });
}

TEST(MicroBatches, NameTheOpAndTheLineThatMixSamples) {
  struct Mixed : nn::Graph<Mixed> {
    Mixed() { config().set_micro_batches(2); }

    Tensor build(const Tensor& x) { return softmax(x, 0); }
  };

  Mixed graph;
  try {
    graph(ones({4, 3}));
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("[micro-batch] softmax at "), std::string::npos) << message;
    EXPECT_NE(message.find("graph_micro_batch_test.cpp:"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace flow
