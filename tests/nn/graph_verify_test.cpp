// FLOW_GRAPH_VERIFY=1: the first run of a plan is compared with eager mode.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/dispatch.h"
#include "core/kernel.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/support/stage_list.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

class GraphVerify : public testing::Test {
 protected:
  void SetUp() override { setenv("FLOW_GRAPH_VERIFY", "1", 1); }

  void TearDown() override { unsetenv("FLOW_GRAPH_VERIFY"); }
};

std::atomic<int> num_calls{0};

// y = x + the number of calls of this kernel: no two runs give the same.
void drift(const KernelContext& ctx) {
  const auto added = static_cast<float>(++num_calls);
  const float* x = ctx.in(0).as<float>();
  std::transform(x, x + ctx.in(0).numel(), ctx.out(0).as<float>(),
                 [&](float value) { return value + added; });
}

Tensor drifted(const Tensor& x, Site site = Site::here()) {
  static const OpDef op{.name = "test_drift",
                        .infer = [](InferContext& ctx) { ctx.add_output_like(0); },
                        .sbp = [](SbpContext& ctx) { ctx.add({sbp::split(0)}, {sbp::split(0)}); },
                        .grad = not_differentiable};
  if (op_table().find(op.name) == nullptr) {
    register_op(op);
    register_kernel(op, DeviceType::kCpu, {"reference", always<drift>});
  }
  return dispatch(op, {&x}, site);
}

struct Drifting : nn::Graph<Drifting> {
  nn::Linear layer{3, 3};

  Tensor build(const Tensor& x) {
    const Tensor h = relu(layer(x));
    const Tensor y = drifted(h);
    return y * 2;
  }
};

TEST_F(GraphVerify, NamesTheFirstOpThatDiffers) {
  const NoGradGuard no_grad;
  Drifting graph;
  const Tensor x = zeros({2, 3});
  try {
    graph(x);
    FAIL() << "no error";
  } catch (const InternalError& error) {
    const std::string text = error.what();
    for (const char* part :
         {"output 0: element 0 of rank 0 is ", "the first op that differs is test_drift at ",
          "graph_verify_test.cpp:", " in eager mode"})
      EXPECT_NE(text.find(part), std::string::npos) << part << " is not in: " << text;
  }
  EXPECT_NO_THROW(graph(x));  // only the first run is compared
}

TEST_F(GraphVerify, AllRanksGetTheError) {
  run_ranks(2, [] {
    const NoGradGuard no_grad;
    Drifting graph;
    graph.layer.to_global(kPair, sbp::broadcast);
    const Tensor x = zeros({2, 3}, {.placement = kPair, .sbp = sbp::split(0)});
    EXPECT_THROW(graph(x), InternalError);
  });
}

TEST_F(GraphVerify, IsOffByDefault) {
  unsetenv("FLOW_GRAPH_VERIFY");
  const NoGradGuard no_grad;
  Drifting graph;
  EXPECT_NO_THROW(graph(zeros({2, 3})));
}

struct How {
  Placement placement = {};
  int64_t micro_batches = 1;
  int64_t zero = 0;
  bool is_exact = false;
  bool is_half = false;
  bool recomputes = false;
};

struct Train : nn::Graph<Train> {
  nn::Sequential model;

  Train(nn::Sequential m, optim::Optimizer& optimizer, const How& how) : model(m) {
    add_optimizer(optimizer, {.clip_grad_norm = 1.0});
    config().set_micro_batches(how.micro_batches).enable_zero({.stage = how.zero});
    if (how.is_exact) config().set_passes(nn::exact);
    if (how.is_half) config().enable_amp(float16);
    if (how.recomputes) config().enable_recompute();
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(check_finite(model(x), "logits"), y);
    loss.backward();
    return loss;
  }
};

// Trains with different generators and compares with a run that is not verified.
std::vector<float> train(const How& how) {
  manual_seed(5);
  nn::Sequential model{nn::Linear(4, 8), nn::LayerNorm({8}), nn::GELU(), nn::Dropout(0.5),
                       nn::Linear(8, 3)};
  TensorOptions rows;
  if (how.placement.defined()) {
    model.to_global(how.placement, sbp::broadcast);
    rows = {.placement = how.placement, .sbp = sbp::split(0)};
  }
  optim::AdamW optimizer(model.parameters(), {.lr = 0.01});
  Train graph(model, optimizer, how);
  std::vector<float> losses;
  for (int step = 0; step < 3; ++step) {
    TensorOptions labels = rows;
    labels.dtype = int64;
    losses.push_back(graph(randn({8, 4}, rows), randint(0, 3, {8}, labels)).item<float>());
  }
  return losses;
}

TEST_F(GraphVerify, AgreesWithStepsOfEveryKind) {
  const std::vector<How> all = {
      {},
      {.is_exact = true},
      {.is_half = true},
      {.micro_batches = 3},
      {.recomputes = true},
      {.placement = kPair},
      {.placement = kPair, .is_exact = true},
      {.placement = kPair, .micro_batches = 2, .is_half = true},
      {.placement = kPair, .zero = 1},
      {.placement = kPair, .zero = 2},
      {.placement = kPair, .zero = 3},
      {.placement = kPair, .micro_batches = 2, .zero = 3, .recomputes = true},
  };
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<std::vector<float>> losses(2);
    for (const bool is_verified : {false, true}) {
      setenv("FLOW_GRAPH_VERIFY", is_verified ? "1" : "0", 1);
      run_ranks(all[i].placement.defined() ? 2 : 1, [&] {
        const std::vector<float> own = train(all[i]);
        if (env::rank() == 0) losses[is_verified ? 1 : 0] = own;
      });
    }
    EXPECT_EQ(losses[0], losses[1]) << i;
  }
}

nn::Sequential linear_stage() {
  return nn::Sequential(nn::Linear(3, 3));
}

struct Pipeline : nn::Graph<Pipeline> {
  StageList model;

  Pipeline(const StageList& m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(4).set_schedule(pipeline::one_f_one_b());
  }

  Tensor build(const Tensor& x) {
    Tensor loss = model.stages[1](tanh(model.stages[0](x))).square().mean();
    loss.backward();
    return loss;
  }
};

TEST_F(GraphVerify, AgreesWithAPipeline) {
  run_ranks(2, [] {
    const std::vector<Placement> placements{{"cpu", {0}}, {"cpu", {1}}};
    StageList model(2, linear_stage);
    model.place(placements);
    optim::AdamW optimizer(model.parameters(), {.lr = 0.1});
    Pipeline graph(model, optimizer);
    const Tensor x = randn({8, 3}, {.placement = placements[0], .sbp = sbp::broadcast});
    for (int step = 0; step < 2; ++step)
      EXPECT_NO_THROW(graph(x));
  });
}

}  // namespace
}  // namespace flow
