// The peak that is stated before a plan runs is what the allocator hands out when it runs.
#include <cstdlib>
#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/run/compiled_step.h"
#include "nn/flow.h"

namespace flow {
namespace {

template <class Model>
struct Train : nn::Graph<Train<Model>> {
  Model model;

  Train(const Model& m, optim::Optimizer& optimizer) : model(m) { this->add_optimizer(optimizer); }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = cross_entropy(out.reshape({-1, out.size(-1)}), y.flatten());
    loss.backward();
    return loss;
  }
};

struct Peak {
  int64_t stated = 0;
  int64_t measured = 0;
  std::string summary;
};

// Of the first step of a training, on this rank.
template <class Model>
Peak peak_of(Model model, const Tensor& x, const Tensor& y) {
  if (x.is_global()) model.to_global(x.placement(), sbp::broadcast);
  optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
  Train<Model> graph(model, optimizer);
  const nn::CompiledGraph& compiled = graph.compile(x, y);
  const int64_t before = memory_stats().bytes_in_use;
  reset_peak_memory_stats();
  graph(x, y);
  return {compiled.plan().peak_bytes(), memory_stats().peak_bytes_in_use - before,
          compiled.summary()};
}

using Step = std::function<Peak(const TensorOptions& layout)>;

// Locally on one rank, and cut by rows on two.
void expect_stated(const Step& step) {
  setenv("FLOW_NUM_THREADS", "1", 1);  // what several threads take depends on when they meet
  for (const int64_t ranks : {1, 2}) {
    run_ranks(ranks, [&] {
      TensorOptions layout;
      if (ranks > 1) {
        layout.placement = Placement("cpu", {0, 1});
        layout.sbp = sbp::split(0);
      }
      const Peak peak = step(layout);
      EXPECT_EQ(peak.measured, peak.stated) << "on " << ranks << " ranks\n" << peak.summary;
    });
  }
  unsetenv("FLOW_NUM_THREADS");
}

Tensor labels(int64_t classes, const Shape& shape, TensorOptions layout) {
  layout.dtype = int64;
  return randint(0, classes, shape, layout);
}

TEST(GraphMemory, OfAnMlpIsKnown) {
  expect_stated([](const TensorOptions& layout) {
    return peak_of(models::Mlp({784, 512, 512, 10}), randn({64, 784}, layout),
                   labels(10, {64}, layout));
  });
}

TEST(GraphMemory, OfALenetIsKnown) {
  expect_stated([](const TensorOptions& layout) {
    return peak_of(models::Lenet(), randn({16, 1, 28, 28}, layout), labels(10, {16}, layout));
  });
}

TEST(GraphMemory, OfAGptIsKnown) {
  expect_stated([](const TensorOptions& layout) {
    const models::GptOptions options{
        .vocab_size = 64, .block_size = 64, .n_layer = 2, .n_head = 4, .n_embd = 64};
    return peak_of(models::Gpt(options), labels(64, {8, 64}, layout), labels(64, {8, 64}, layout));
  });
}

TEST(GraphMemory, OfAMobileNetIsKnown) {
  expect_stated([](const TensorOptions& layout) {
    return peak_of(models::mobilenet_v2({.num_classes = 10}), randn({4, 3, 32, 32}, layout),
                   labels(10, {4}, layout));
  });
}

struct ConvStage : nn::Module<ConvStage> {
  nn::Conv2d conv;

  ConvStage(int64_t in, int64_t out)
      : conv(register_module("conv", nn::Conv2d(in, out, 3, {.padding = 1}))) {}

  Tensor forward(const Tensor& x) { return relu(conv(x)); }
};

struct TwoConvs : nn::Graph<TwoConvs> {
  ConvStage first{3, 16}, second{16, 16};
  optim::SGD optimizer;

  TwoConvs(const Placement& p0, const Placement& p1)
      : optimizer((first.to_global(p0, sbp::broadcast), second.to_global(p1, sbp::broadcast),
                   std::vector{first.conv.weight, second.conv.weight}),
                  {.lr = 0.1}) {
    first.to<nn::GraphModule>().set_stage(0, p0);
    second.to<nn::GraphModule>().set_stage(1, p1);
    add_optimizer(optimizer);
    config().set_micro_batches(4);
  }

  Tensor build(const Tensor& x) {
    Tensor loss = second(first(x)).square().mean();
    loss.backward();
    return loss;
  }
};

TEST(GraphMemory, OfStagesOfConvolutionsIsKnown) {
  setenv("FLOW_NUM_THREADS", "1", 1);
  run_ranks(2, [] {
    const Placement p0("cpu", {0}), p1("cpu", {1});
    TwoConvs graph(p0, p1);
    const Tensor x = randn({8, 3, 16, 16}, {.placement = p0, .sbp = sbp::broadcast});
    const nn::CompiledGraph& compiled = graph.compile(x);
    const int64_t before = memory_stats().bytes_in_use;
    reset_peak_memory_stats();
    graph(x);
    EXPECT_EQ(memory_stats().peak_bytes_in_use - before, compiled.plan().peak_bytes())
        << compiled.summary();
  });
  unsetenv("FLOW_NUM_THREADS");
}

}  // namespace
}  // namespace flow
