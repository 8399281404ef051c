// Compiled steps that are queued as CUDA graphs: they have the bits of steps without, whatever
// changes between the runs.
#include <cmath>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/cuda/compiled_trainings.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/temp_folder.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

const TensorOptions kOnDevice{.device = "cuda"};

// What a training gives, with CUDA graphs and without.
struct Trained {
  Floats losses;
  Floats values;  // of the parameters and buffers in the end
  std::string summary;
  std::string explanation;

  friend bool operator==(const Trained& a, const Trained& b) {
    return a.losses == b.losses && a.values == b.values;
  }
};

Floats values_of(const Tensor& x) {
  return cast(x.to("cpu"), float32).flatten().to_vector<float>();
}

template <class Model, class Step>
void finish(Trained& trained, const Model& model, const Step& graph) {
  std::vector<Tensor> all;
  for (const auto& [name, tensor] : model.named_parameters())
    all.push_back(tensor);
  for (const auto& [name, tensor] : model.named_buffers())
    all.push_back(tensor);
  for (const Tensor& tensor : all) {
    const Floats own = values_of(tensor);
    trained.values.insert(trained.values.end(), own.begin(), own.end());
  }
  trained.summary = graph.summary();
  trained.explanation = graph.explain();
}

void expect_captured(const Trained& trained) {
  EXPECT_NE(trained.summary.find("CUDA graphs: 1 graph queues "), std::string::npos)
      << trained.explanation;
}

class CudaGraphReplay : public CudaFixture {};

nn::Sequential make_mlp() {
  nn::Sequential net(nn::Linear(8, 32), nn::ReLU(), nn::Linear(32, 16), nn::Tanh(),
                     nn::Linear(16, 4));
  net.to("cuda");
  return net;
}

// The inputs of all steps and their losses live until the end, so each run finds other addresses.
Trained train_mlp(bool uses_graphs, const std::function<int64_t(int)>& batch_of,
                  const std::function<void(MlpStep&, int)>& before_step = {}) {
  manual_seed(7);
  nn::Sequential net = make_mlp();
  optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  MlpStep graph(net, sgd);
  graph.config().set_cuda_graphs(uses_graphs);
  std::vector<Tensor> kept;
  Trained trained;
  for (int step = 0; step < 8; ++step) {
    if (before_step) before_step(graph, step);
    const Tensor x = randn({batch_of(step), 8}, kOnDevice);
    const Tensor target = randn({batch_of(step), 4}, kOnDevice);
    kept.insert(kept.end(), {x, target, graph(x, target)});
  }
  for (size_t i = 2; i < kept.size(); i += 3)
    trained.losses.push_back(kept[i].item<float>());
  finish(trained, net, graph);
  return trained;
}

int64_t always_16(int /*step*/) {
  return 16;
}

TEST_F(CudaGraphReplay, TrainsAsStepsWithoutGraphsDo) {
  const Trained plain = train_mlp(false, always_16), replayed = train_mlp(true, always_16);
  EXPECT_EQ(replayed, plain);
  EXPECT_NE(plain.losses.front(), plain.losses.back());
  expect_captured(replayed);
  EXPECT_EQ(plain.summary.find("CUDA graphs"), std::string::npos);
}

// The arena of the graph moves when the larger batch comes, and serves both plans.
TEST_F(CudaGraphReplay, SeveralPlansShareMemory) {
  const auto batch_of = [](int step) { return int64_t{step % 2 == 0 ? 4 : 4 + 40 * (step / 3)}; };
  const Trained replayed = train_mlp(true, batch_of);
  EXPECT_EQ(replayed, train_mlp(false, batch_of));
  const auto alternating = [](int step) { return int64_t{step % 2 == 0 ? 4 : 64}; };
  const Trained alternated = train_mlp(true, alternating);
  EXPECT_EQ(alternated, train_mlp(false, alternating));
  expect_captured(alternated);
}

TEST_F(CudaGraphReplay, PlansThatAreDroppedFreeTheirGraphs) {
  const auto batch_of = [](int step) { return int64_t{step < 4 ? 64 : 4}; };
  const auto limit = [](MlpStep& graph, int) { graph.config().set_max_plans(1); };
  const Trained replayed = train_mlp(true, batch_of, limit);
  EXPECT_EQ(replayed, train_mlp(false, batch_of, limit));
  expect_captured(replayed);
}

TEST_F(CudaGraphReplay, MayBeSwitchedAtAnyRun) {
  const auto toggle = [](MlpStep& graph, int step) {
    graph.config().set_cuda_graphs(step != 5 && step != 0);
  };
  const Trained replayed = train_mlp(true, always_16, toggle);
  EXPECT_EQ(replayed, train_mlp(false, always_16));
  expect_captured(replayed);
}

// Runs of a timeline measure each step, so they do without.
TEST_F(CudaGraphReplay, RunsOfATimelineDoWithout) {
  const TempFolder folder;
  const std::string path = folder.file("timeline.json");
  const auto record = [&](MlpStep& graph, int step) {
    if (step == 4) graph.config().set_timeline(path, {.skip = 1, .runs = 2, .kernels = true});
  };
  const Trained replayed = train_mlp(true, always_16, record);
  EXPECT_EQ(replayed, train_mlp(false, always_16));
  expect_captured(replayed);
}

// Parameters get other memory between two runs.
TEST_F(CudaGraphReplay, FollowsMemoryThatMoves) {
  const auto train = [](bool uses_graphs) {
    manual_seed(7);
    nn::Sequential net = make_mlp();
    optim::SGD sgd(net.parameters(), {.lr = 0.05});
    MlpStep graph(net, sgd);
    graph.config().set_cuda_graphs(uses_graphs);
    Trained trained;
    for (int step = 0; step < 12; ++step) {
      if (step > 4 && step % 3 == 0) {
        const NoGradGuard no_grad;
        for (const Tensor& parameter : net.parameters())
          parameter.set_data(parameter.clone());
      }
      const Tensor x = randn({16, 8}, kOnDevice), target = randn({16, 4}, kOnDevice);
      trained.losses.push_back(graph(x, target).item<float>());
    }
    finish(trained, net, graph);
    return trained;
  };
  const Trained replayed = train(true);
  EXPECT_EQ(replayed, train(false));
  expect_captured(replayed);
}

TEST_F(CudaGraphReplay, WorksWithoutACacheOfMemory) {
  const Trained plain = train_mlp(false, always_16);
  const WithoutCache without;
  run_ranks(1, [&] {
    cuda::set_device(1 % cuda::device_count());
    const Trained replayed = train_mlp(true, always_16);
    EXPECT_EQ(replayed, plain);
    expect_captured(replayed);
  });
}

// Dropout, AdamW whose rate follows a schedule, clipping, and several micro-batches.
struct GptStep : nn::Graph<GptStep> {
  models::Gpt gpt;

  GptStep(models::Gpt g, optim::Optimizer& optimizer, optim::lr_scheduler::LRScheduler& schedule,
          int64_t micro_batches)
      : gpt(g) {
    add_optimizer(optimizer, {.lr_scheduler = &schedule, .clip_grad_norm = 0.5});
    config().set_micro_batches(micro_batches);
  }

  Tensor build(const Tensor& tokens, const Tensor& target) {
    const Tensor logits = gpt(tokens);
    const Tensor loss = cross_entropy(logits.reshape({-1, logits.size(-1)}), target.flatten());
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

Trained train_gpt(bool uses_graphs, int64_t micro_batches, bool is_mixed) {
  manual_seed(11);
  models::Gpt gpt(
      {.vocab_size = 17, .block_size = 8, .n_layer = 2, .n_head = 2, .n_embd = 16, .dropout = 0.2});
  gpt.to("cuda");
  optim::AdamW adam(gpt.parameters(), {.lr = 0.01});
  optim::lr_scheduler::StepLR schedule(adam, {.step_size = 2, .gamma = 0.5});
  GptStep graph(gpt, adam, schedule, micro_batches);
  graph.config().set_cuda_graphs(uses_graphs);
  if (is_mixed) graph.config().enable_amp(bfloat16);
  Trained trained;
  Tensor loss;
  for (int step = 0; step < 7; ++step) {
    const TensorOptions tokens{.dtype = int64, .device = "cuda"};
    const Tensor x = randint(0, 17, {4, 8}, tokens), target = randint(0, 17, {4, 8}, tokens);
    loss = graph(x, target);
    trained.losses.push_back(loss.item<float>());
  }
  finish(trained, gpt, graph);
  return trained;
}

TEST_F(CudaGraphReplay, GptDrawsNewNumbersAndFollowsItsSchedule) {
  const Trained replayed = train_gpt(true, 1, false);
  EXPECT_EQ(replayed, train_gpt(false, 1, false));
  expect_captured(replayed);
}

TEST_F(CudaGraphReplay, GptInMicroBatchesIsOneGraph) {
  const Trained replayed = train_gpt(true, 2, false);
  EXPECT_EQ(replayed, train_gpt(false, 2, false));
  expect_captured(replayed);
}

TEST_F(CudaGraphReplay, GptInMixedPrecision) {
  const Trained replayed = train_gpt(true, 1, true);
  EXPECT_EQ(replayed, train_gpt(false, 1, true));
  expect_captured(replayed);
}

// Numbers of the host that a kernel would get by value: these draws stay outside.
struct Draws : nn::Graph<Draws> {
  Draws(bool uses_graphs) { config().set_cuda_graphs(uses_graphs); }

  std::vector<Tensor> build(const Tensor& x) {
    const Tensor noise = randn_like(x) + rand_like(x) + bernoulli(abs(x) * 0.1);
    const Tensor order = randperm(6, {.device = "cuda"});
    const Tensor sum = relu((x + noise) * 2) - sigmoid(x) * noise;
    return {noise, order, index_select(sum, 0, order)};
  }
};

TEST_F(CudaGraphReplay, DrawsOnTheHostStayOutside) {
  const auto run = [](bool uses_graphs, std::string& explanation) {
    manual_seed(5);
    Draws graph(uses_graphs);
    Floats all;
    for (int step = 0; step < 6; ++step) {
      const std::vector<Tensor> results = graph(ones({6, 3}, kOnDevice));
      for (const Tensor& result : results) {
        const Floats own = values_of(result);
        all.insert(all.end(), own.begin(), own.end());
      }
    }
    explanation = graph.explain();
    return all;
  };
  std::string plain, replayed;
  EXPECT_EQ(run(true, replayed), run(false, plain));
  EXPECT_NE(replayed.find("graph"), std::string::npos);
  EXPECT_NE(replayed.find("  randperm at "), std::string::npos) << replayed;
  EXPECT_NE(replayed.find("queue"), std::string::npos) << replayed;
}

// A GradScaler skips steps: their updates are a graph of their own, which is not launched then.
struct ScaledStep : nn::Graph<ScaledStep> {
  models::Mlp net;

  ScaledStep(models::Mlp n, optim::Optimizer& optimizer, bool uses_graphs) : net(n) {
    add_optimizer(optimizer, {.clip_grad_norm = 0.1});
    config()
        .enable_amp(float16, {.init_scale = 33554432, .growth_interval = 2})
        .set_passes(nn::exact)
        .set_cuda_graphs(uses_graphs);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

TEST_F(CudaGraphReplay, AGuardIsReadBeforeItsGraph) {
  const auto train = [](bool uses_graphs, std::vector<double>& scales) {
    manual_seed(3);
    models::Mlp net({5, 8, 8, 4});
    net.to("cuda");
    optim::Adam adam(net.parameters(), {.lr = 0.02});
    ScaledStep graph(net, adam, uses_graphs);
    Trained trained;
    for (int step = 0; step < 20; ++step) {
      const Tensor x = randn({6, 5}, kOnDevice);
      const Tensor y = randint(0, 4, {6}, {.dtype = int64, .device = "cuda"});
      trained.losses.push_back(graph(x, y).item<float>());
      scales.push_back(graph.config().grad_scaler()->get_scale());
    }
    finish(trained, net, graph);
    return trained;
  };
  std::vector<double> plain_scales, scales;
  const Trained plain = train(false, plain_scales), replayed = train(true, scales);
  EXPECT_EQ(replayed, plain);
  EXPECT_EQ(scales, plain_scales);
  EXPECT_NE(replayed.summary.find("CUDA graphs: 2 graphs queue "), std::string::npos)
      << replayed.explanation;
  EXPECT_EQ(replayed.explanation.find("  adam"), std::string::npos) << replayed.explanation;
}

// Statistics of batch norm, and an error in the middle of a replayed step.
struct CheckedStep : nn::Graph<CheckedStep> {
  nn::Sequential net;

  CheckedStep(nn::Sequential n, optim::Optimizer& optimizer, bool uses_graphs) : net(n) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact).set_cuda_graphs(uses_graphs);
  }

  Tensor build(const Tensor& x, const Tensor& target) {
    const Tensor y = check_finite(net(x), "y");
    const Tensor loss = mse_loss(y, target);
    loss.backward();
    return loss;
  }
};

TEST_F(CudaGraphReplay, AFailedRunIsTakenBack) {
  const auto train = [](bool uses_graphs) {
    manual_seed(7);
    nn::Sequential net(nn::Linear(8, 16), nn::BatchNorm1d(16), nn::ReLU(), nn::Dropout(0.3),
                       nn::Linear(16, 4));
    net.to("cuda");
    optim::Adam adam(net.parameters(), {.lr = 0.01});
    CheckedStep graph(net, adam, uses_graphs);
    Trained trained;
    for (int step = 0; step < 9; ++step) {
      const Tensor x = randn({16, 8}, kOnDevice), target = randn({16, 4}, kOnDevice);
      if (step == 1 || step == 6) {
        EXPECT_THROW(graph(x * INFINITY, target), InvalidArgument) << step;
      }
      trained.losses.push_back(graph(x, target).item<float>());
    }
    finish(trained, net, graph);
    return trained;
  };
  const Trained replayed = train(true);
  EXPECT_EQ(replayed, train(false));
  EXPECT_NE(replayed.summary.find("CUDA graphs: 2 graphs queue "), std::string::npos)
      << replayed.summary;
  EXPECT_NE(replayed.explanation.find("  check_finite at "), std::string::npos)
      << replayed.explanation;
}

// A kernel reports an index out of range as it does without graphs.
TEST_F(CudaGraphReplay, WrongIndicesAreReported) {
  struct Look : nn::Graph<Look> {
    nn::Embedding table{10, 4};

    Look() {
      table.to("cuda");
      config().set_cuda_graphs();
    }

    Tensor build(const Tensor& index) { return relu(table(index) * 2) + sigmoid(table(index)); }
  };

  Look graph;
  const NoGradGuard no_grad;
  const auto index = [](int64_t last) { return tensor(std::vector<int64_t>{1, last}, kOnDevice); };
  for (int step = 0; step < 4; ++step)
    EXPECT_EQ(graph(index(3)).to("cpu").dim(), 2);
  EXPECT_THROW(static_cast<void>(graph(index(30)).to("cpu")), InvalidArgument);
  EXPECT_EQ(graph(index(3)).to("cpu").dim(), 2);
}

// Exchanges between ranks are between the graphs.
TEST_F(CudaGraphReplay, RanksExchangeBetweenTheirGraphs) {
  for (const bool share : {false, true}) {
    run_ranks(2, [&] {
      if (share) cuda::set_device(0);
      const Placement two("cuda", {0, 1});
      const auto train = [&](bool uses_graphs) {
        manual_seed(7);
        nn::Sequential net = make_mlp();
        net.to_global(two, sbp::broadcast);
        optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9});
        MlpStep graph(net, sgd);
        graph.config().set_cuda_graphs(uses_graphs);
        Trained trained;
        for (int step = 0; step < 6; ++step) {
          const TensorOptions data{.placement = two, .sbp = sbp::split(0)};
          const Tensor x = randn({16, 8}, data), target = randn({16, 4}, data);
          trained.losses.push_back(graph(x, target).item<float>());
        }
        trained.summary = graph.summary();
        trained.explanation = graph.explain();
        return trained;
      };
      const Trained replayed = train(true);
      EXPECT_EQ(replayed, train(false));
      EXPECT_NE(replayed.summary.find("CUDA graphs: "), std::string::npos);
      EXPECT_EQ(replayed.summary.find("CUDA graphs: 0"), std::string::npos) << replayed.explanation;
      EXPECT_NE(replayed.explanation.find("ranks exchange data"), std::string::npos)
          << replayed.explanation;
    });
  }
}

TEST(CudaGraphsOnTheHost, AStepInHostMemoryHasNone) {
  struct Twice : nn::Graph<Twice> {
    Twice() { config().set_cuda_graphs(); }

    Tensor build(const Tensor& x) { return x * 2; }
  };

  Twice graph;
  for (int step = 0; step < 4; ++step)
    EXPECT_EQ(graph(ones({3})).to_vector<float>(), Floats(3, 2));
  EXPECT_NE(graph.summary().find("CUDA graphs: 0 graphs queue 0 of "), std::string::npos)
      << graph.summary();
}

}  // namespace

}  // namespace flow
