// Graphs on a device: the plan's arena lies there, and its steps give the eager ones' results.
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/cuda/compiled_trainings.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

class CudaGraph : public CudaFixture {};

Floats train(bool is_compiled, const Placement& placement) {
  manual_seed(7);
  nn::Sequential net(nn::Linear(8, 32), nn::ReLU(), nn::Linear(32, 4));
  net.to("cuda");
  if (placement.defined()) net.to_global(placement, sbp::broadcast);
  optim::SGD sgd(net.parameters(), {.lr = 0.05, .momentum = 0.9});
  MlpStep graph(net, sgd);
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

// Ranks of one device exchange by pointers, those of two by NCCL or through host memory.
TEST_F(CudaGraph, TrainsOnRanksOfOneDeviceAsOnRanksOfTwo) {
  Floats losses[2];
  for (const bool share : {false, true}) {
    run_ranks(2, [&] {
      if (share) cuda::set_device(0);
      const Placement two("cuda", {0, 1});
      const Floats eager = train(false, two);
      EXPECT_EQ(train(true, two), eager);
      if (env::rank() == 0) losses[share ? 1 : 0] = eager;
    });
  }
  EXPECT_EQ(losses[1], losses[0]);
}

// Products, a norm, an activation and a residual sum in mixed precision, as in a transformer's
// feed-forward block.
struct Block : nn::Module<Block> {
  nn::Linear first, up, down, head;
  nn::LayerNorm norm;

  Block()
      : first(register_module("first", nn::Linear(8, 16))),
        up(register_module("up", nn::Linear(16, 64))),
        down(register_module("down", nn::Linear(64, 16))),
        head(register_module("head", nn::Linear(16, 10))),
        norm(register_module("norm", nn::LayerNorm({16}))) {}

  Tensor forward(const Tensor& x) {
    const Tensor z = cast(first(x), float32);
    return head(z + down(gelu(up(norm(z)), {.approximate = "tanh"})));
  }
};

struct BlockStep : nn::Graph<BlockStep> {
  Block block;

  BlockStep(const Block& b, optim::Optimizer& optimizer) : block(b) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact).enable_amp(bfloat16);
  }

  Tensor build(const Tensor& x, const Tensor& target) {
    const Tensor loss = cross_entropy(block(x), target);
    loss.backward();
    return loss;
  }
};

class CudaMixedGraph : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    setenv("FLOW_RECOMPUTE_LEAST_BYTES", "1", 1);
    setenv("FLOW_FUSE_LEAST_ELEMENTS", "1", 1);
  }

  void TearDown() override {
    unsetenv("FLOW_RECOMPUTE_LEAST_BYTES");
    unsetenv("FLOW_FUSE_LEAST_ELEMENTS");
  }

  struct Trained {
    Floats losses;
    Floats weights;
    std::string summary;
  };

  static Trained train(bool is_compiled) {
    manual_seed(7);
    Block block;
    block.to("cuda");
    optim::AdamW adam(block.parameters(), {.lr = 0.01});
    BlockStep graph(block, adam);
    Trained trained;
    for (int step = 0; step < 4; ++step) {
      const Tensor x = randn({16, 8}, {.device = "cuda"});
      const Tensor target = randint(0, 10, {16}, {.dtype = int64, .device = "cuda"});
      Tensor loss;
      if (is_compiled) {
        loss = graph(x, target);
      } else {
        {
          const AutocastGuard mixed(bfloat16);
          loss = cross_entropy(block(x), target);
        }
        adam.zero_grad();
        loss.backward();
        adam.step();
      }
      trained.losses.push_back(loss.item<float>());
    }
    for (const Tensor& weight : block.parameters()) {
      const Floats values = weight.to("cpu").flatten().to_vector<float>();
      trained.weights.insert(trained.weights.end(), values.begin(), values.end());
    }
    if (is_compiled) trained.summary = graph.explain();
    return trained;
  }
};

TEST_F(CudaMixedGraph, HasTheBitsOfEagerSteps) {
  const Trained eager = train(false);
  const Trained compiled = train(true);

  EXPECT_EQ(compiled.losses, eager.losses);
  EXPECT_EQ(compiled.weights, eager.weights);
  EXPECT_LT(eager.losses.back(), 2 * eager.losses.front());
  for (const char* change : {"fuse_norm_casts: 2 changes", "fuse_activation_grad: 1 changes"})
    EXPECT_NE(compiled.summary.find(change), std::string::npos) << compiled.summary;
  EXPECT_EQ(compiled.summary.find("fuse_elementwise: 0 changes"), std::string::npos)
      << compiled.summary;
}

TEST_F(CudaMixedGraph, LogitsOf16BitsHaveAFloat32Loss) {
  manual_seed(3);
  const Tensor logits = cast(randn({6, 40}), bfloat16);
  const Tensor target = randint(0, 40, {6}, {.dtype = int64});
  const auto loss_and_gradient = [&](const char* device) {
    const Tensor x = logits.to(device).requires_grad_();
    Tensor loss;
    {
      const AutocastGuard mixed(bfloat16);
      loss = cross_entropy(x, target.to(device));
    }
    EXPECT_EQ(loss.dtype(), float32) << device;
    loss.backward();
    EXPECT_EQ(x.grad().dtype(), bfloat16) << device;
    return std::pair(loss.item<float>(), cast(x.grad().to("cpu"), float32).to_vector<float>());
  };

  const auto [loss, gradient] = loss_and_gradient("cuda");
  const auto [expected_loss, expected_gradient] = loss_and_gradient("cpu");
  EXPECT_NEAR(loss, expected_loss, 1e-5);
  ASSERT_EQ(gradient.size(), expected_gradient.size());
  for (size_t i = 0; i < gradient.size(); ++i)
    EXPECT_NEAR(gradient[i], expected_gradient[i], 0x1p-8 * std::abs(expected_gradient[i]) + 1e-6);
}

}  // namespace

}  // namespace flow
