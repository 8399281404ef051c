// What only an emulated device can show of compiled steps as CUDA graphs: how often the host calls
// the device, graphs that cannot be made, and shortage of memory.
#include <cstdint>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda_device.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/cuda_emulator/library_hooks.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

const TensorOptions kOnDevice{.device = "cuda"};

struct Step : nn::Graph<Step> {
  nn::Sequential net;

  Step(nn::Sequential n, optim::Optimizer& optimizer) : net(n) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
  }

  Tensor build(const Tensor& x, const Tensor& target) {
    const Tensor loss = mse_loss(net(x), target);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

// Trains with dropout.
struct Training {
  nn::Sequential net;
  optim::AdamW adam;
  Step graph;
  Floats losses = {};
  int64_t num_queued = 0;  // in the last run
  int64_t num_launches = 0;

  explicit Training(bool uses_graphs) : net(make()), adam(net.parameters()), graph(net, adam) {
    graph.config().set_cuda_graphs(uses_graphs);
  }

  static nn::Sequential make() {
    manual_seed(7);
    nn::Sequential made(nn::Linear(8, 32), nn::LayerNorm({32}), nn::ReLU(), nn::Dropout(0.2),
                        nn::Linear(32, 32), nn::GELU(), nn::Dropout(0.2), nn::Linear(32, 4));
    made.to("cuda");
    return made;
  }

  void run(int steps, int64_t batch = 16) {
    for (int step = 0; step < steps; ++step) {
      const Tensor x = randn({batch, 8}, kOnDevice), target = randn({batch, 4}, kOnDevice);
      const int64_t queued = cuda_emulator::num_queued();
      const int64_t launches = cuda_emulator::num_launches();
      const Tensor loss = graph(x, target);
      num_queued = cuda_emulator::num_queued() - queued;
      num_launches = cuda_emulator::num_launches() - launches;
      losses.push_back(loss.item<float>());
    }
  }
};

TEST(CudaGraphCalls, AReplayedStepIsAFewCalls) {
  Training plain(false);
  plain.run(5);
  const int64_t graphs = cuda_emulator::num_graph_launches();
  Training replayed(true);
  replayed.run(5);

  EXPECT_EQ(replayed.losses, plain.losses);
  EXPECT_EQ(cuda_emulator::num_graph_launches() - graphs, 3);
  EXPECT_GE(plain.num_launches, 30);
  EXPECT_EQ(replayed.num_launches, 0);
  // The graph, the rates, the random streams, copies of two inputs and the loss, and events of the
  // pinned memory, which is in small pieces here.
  EXPECT_LE(replayed.num_queued, 8);
}

TEST(CudaGraphCalls, GraphsEndWithTheirPlan) {
  const int64_t before = cuda_emulator::num_live_graphs();
  {
    Training training(true);
    training.graph.config().set_max_plans(1);
    training.run(4);
    EXPECT_EQ(cuda_emulator::num_live_graphs(), before + 1);
    training.run(1, 32);
    EXPECT_EQ(cuda_emulator::num_live_graphs(), before);
    training.run(3, 32);
    EXPECT_EQ(cuda_emulator::num_live_graphs(), before + 1);
    training.graph.config().set_cuda_graphs(false);
    training.run(1, 32);
    EXPECT_EQ(cuda_emulator::num_live_graphs(), before);
    training.graph.config().set_cuda_graphs(true);
    training.run(1, 32);
    EXPECT_EQ(cuda_emulator::num_live_graphs(), before + 1);
  }
  EXPECT_EQ(cuda_emulator::num_live_graphs(), before);
}

// Steps go on without graphs, and summary() says why.
TEST(CudaGraphCalls, WhatCannotBeCapturedRunsAsItIs) {
  Training plain(false);
  plain.run(6);
  cuda_emulator::refuse_graphs(cudaErrorInvalidValue);
  Training refused(true);
  refused.run(5);
  cuda_emulator::refuse_graphs(cudaErrorMemoryAllocation);
  Training too_large(true);
  too_large.run(5);
  cuda_emulator::refuse_graphs(cudaSuccess);
  too_large.run(1);

  EXPECT_EQ(too_large.losses, plain.losses);
  EXPECT_EQ(refused.losses, Floats(plain.losses.begin(), plain.losses.begin() + 5));
  EXPECT_NE(refused.graph.summary().find("CUDA graphs: 0 graphs queue 0 of "), std::string::npos)
      << refused.graph.summary();
  EXPECT_NE(refused.graph.explain().find("cudaGraphInstantiate"), std::string::npos)
      << refused.graph.explain();
  EXPECT_NE(too_large.graph.summary().find("CUDA graphs: none: [cuda] cudaGraphInstantiate"),
            std::string::npos)
      << too_large.graph.summary();
}

// A launch that fails once, also of work that several steps have joined, costs no step its graph.
TEST(CudaGraphCalls, ALaunchThatFailsIsBlamedOnItsStep) {
  Training whole(true);
  whole.run(4);
  EXPECT_NE(whole.graph.summary().find("CUDA graphs: 1 graph queues "), std::string::npos);
  int64_t failed = 0;
  for (;; ++failed) {
    cuda_emulator::fail_captured_launch(failed);
    Training training(true);
    training.run(4);
    EXPECT_EQ(training.losses, whole.losses);
    EXPECT_EQ(training.graph.summary(), whole.graph.summary()) << "launch " << failed;
    if (cuda_emulator::has_captured_launch_to_fail()) break;
  }
  cuda_emulator::fail_captured_launch(-1);
  EXPECT_GE(failed, 20);
}

TEST(CudaGraphCalls, TooLittleMemoryForTheCopiesOfInputs) {
  struct Sum : nn::Graph<Sum> {
    Sum() { config().set_cuda_graphs(); }

    Tensor build(const Tensor& x) { return relu(x * 2).sum() + sigmoid(x).sum(); }
  };

  run_ranks(1, [] {
    const NoGradGuard no_grad;
    const auto x = [] { return ones({3 << 20}, kOnDevice); };  // 12 MiB
    Sum graph;
    const Tensor first = x(), second = x();
    const float expected = graph(first).item<float>();
    EXPECT_EQ(graph(first).item<float>(), expected);
    cuda::DeviceAllocator& allocator = cuda::rank_device(*thread_state().context).allocator();
    allocator.set_limit(allocator.stats().bytes_in_use + (int64_t{4} << 20));
    EXPECT_EQ(graph(second).item<float>(), expected);
    EXPECT_EQ(graph(first).item<float>(), expected);
    allocator.set_limit(INT64_MAX);
    EXPECT_NE(graph.summary().find("CUDA graphs: none: [cuda] the request exceeds"),
              std::string::npos)
        << graph.summary();
  });
}

}  // namespace

}  // namespace flow
