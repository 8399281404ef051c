// Graphs on a device: the plan's arena lies there, and its steps give the eager ones' results.
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

class CudaGraph : public CudaFixture {};

struct Step : nn::Graph<Step> {
  nn::Sequential net;

  Step(nn::Sequential n, optim::Optimizer& optimizer) : net(n) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& target) {
    const Tensor loss = mse_loss(net(x), target);
    loss.backward();
    return loss;
  }
};

Floats train(bool is_compiled, const Placement& placement) {
  manual_seed(7);
  nn::Sequential net(nn::Linear(8, 32), nn::ReLU(), nn::Linear(32, 4));
  net.to("cuda");
  if (placement.defined()) net.to_global(placement, sbp::broadcast);
  optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  Step graph(net, sgd);
  TensorOptions data{.device = "cuda"};
  if (placement.defined()) data = {.placement = placement, .sbp = sbp::split(0)};
  Floats losses;
  for (int step = 0; step < 5; ++step) {
    const Tensor x = randn({16, 8}, data);
    const Tensor target = randn({16, 4}, data);
    if (is_compiled) {
      losses.push_back(graph(x, target).item<float>());
      continue;
    }
    const Tensor loss = mse_loss(net(x), target);
    sgd.zero_grad();
    loss.backward();
    sgd.step();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

TEST_F(CudaGraph, TrainsAsEagerStepsDo) {
  const Floats eager = train(false, {});

  EXPECT_EQ(train(true, {}), eager);
  EXPECT_NE(eager.front(), eager.back());
}

TEST_F(CudaGraph, TrainsOnTwoRanksAsEagerStepsDo) {
  run_ranks(2, [] {
    const Placement two("cuda", {0, 1});
    EXPECT_EQ(train(true, two), train(false, two));
  });
}

}  // namespace

}  // namespace flow
