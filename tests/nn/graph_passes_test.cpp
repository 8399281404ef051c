// Compiled steps of the models with each pass off, one at a time and all together. The list of
// passes comes from the library, so a new pass is covered at once.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/passes/pass.h"
#include "nn/flow.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

// Passes that look at sizes also change small steps.
struct GraphPasses : testing::Test {
  void SetUp() override {
    setenv("FLOW_FUSE_LEAST_ELEMENTS", "1", 1);
    setenv("FLOW_RECOMPUTE_LEAST_BYTES", "1", 1);
  }

  void TearDown() override {
    unsetenv("FLOW_FUSE_LEAST_ELEMENTS");
    unsetenv("FLOW_RECOMPUTE_LEAST_BYTES");
  }
};

constexpr int kSteps = 3;

template <class Model>
struct Training : nn::Graph<Training<Model>> {
  Model model;

  Training(const Model& m, optim::Optimizer& optimizer) : model(m) {
    this->add_optimizer(optimizer);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor out = model(x);
    Tensor loss = cross_entropy(out.reshape({-1, out.size(-1)}), y.flatten());
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

using Configure = std::function<void(nn::GraphConfig& config)>;

struct Trained {
  std::vector<float> losses;
  std::vector<float> weights;
  std::string summary;

  void add(const Tensor& loss) { losses.push_back(loss.item<float>()); }

  // How much a pass changed.
  int64_t changes_of(const std::string& pass) const {
    const size_t at = summary.find(pass + ' ', summary.find("passes:"));
    return at == std::string::npos ? 0 : std::stoll(summary.substr(at + pass.size() + 1));
  }
};

// A model with its optimizer and batch.
template <class Model>
struct Task {
  std::string name;
  std::function<Model()> make_model;
  std::function<std::shared_ptr<optim::Optimizer>(const std::vector<Tensor>&)> make_optimizer;
  std::function<Tensor(const TensorOptions&)> make_input;
  Shape labels;
  int64_t classes = 0;
  TrainingLayout layout = {};
};

// Trains eagerly if `configure` is empty.
template <class Model>
Trained train(const Task<Model>& task, const Configure& configure) {
  manual_seed(5);
  const TrainingLayout& layout = task.layout;
  Model model = task.make_model();
  if (layout.placement.defined()) model.to_global(layout.placement, layout.model);
  const auto optimizer = task.make_optimizer(model.parameters());
  Training<Model> graph(model, *optimizer);
  if (configure) configure(graph.config());
  const TensorOptions options{.placement = layout.placement, .sbp = layout.data};
  TensorOptions integers = options;
  integers.dtype = int64;
  Trained run;
  for (int step = 0; step < kSteps; ++step) {
    const Tensor x = task.make_input(options), y = randint(0, task.classes, task.labels, integers);
    if (configure) {
      run.add(graph(x, y));
      continue;
    }
    optimizer->zero_grad();
    const Tensor loss = graph.build(x, y);
    optimizer->step();
    run.add(loss);
  }
  if (configure) {
    const Tensor x = task.make_input(options), y = randint(0, task.classes, task.labels, integers);
    run.summary = graph.compile(x, y).summary();
  }
  for (const Tensor& parameter : model.parameters()) {
    const std::vector<float> values = parameter.template to_vector<float>();
    run.weights.insert(run.weights.end(), values.begin(), values.end());
  }
  return run;
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want,
                 const std::string& where) {
  ASSERT_EQ(got.size(), want.size()) << where;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], 2e-5 * (1 + std::abs(want[i]))) << where << " at " << i;
}

// Every exact pass may be off, and the steps have the bits of eager steps. The same passes next to
// those that are not exact give them within rounding.
template <class Model>
void expect_any_pass_may_be_off(const Task<Model>& task) {
  run_ranks(task.layout.ranks(), [&] {
    const Trained eager = train(task, {});
    for (const graph::PassSet set : {graph::PassSet::kExact, graph::PassSet::kAll}) {
      const bool is_exact = set == graph::PassSet::kExact;
      const auto run = [&](const std::vector<std::string>& off) {
        return train(task, [&](nn::GraphConfig& config) {
          config.set_passes(set);
          for (const std::string& pass : off)
            config.enable_pass(pass, false);
        });
      };
      const auto expect_eager = [&](const Trained& graph, const std::string& off, bool by_bits) {
        const std::string where = str(task.name, " on ", task.layout.name, " without ", off);
        if (by_bits) {
          EXPECT_EQ(graph.losses, eager.losses) << where;
          EXPECT_EQ(graph.weights, eager.weights) << where;
        } else {
          expect_near(graph.losses, eager.losses, where);
          expect_near(graph.weights, eager.weights, where);
        }
      };
      expect_eager(run({}), "none", is_exact);
      std::vector<std::string> all;
      for (const graph::Pass& pass : graph::optimizing_passes(set)) {
        all.push_back(pass.name);
        const Trained off = run({pass.name});
        expect_eager(off, pass.name, is_exact);
        EXPECT_EQ(off.changes_of(pass.name), 0) << off.summary;
      }
      expect_eager(run(all), "all", true);
    }
  });
}

std::shared_ptr<optim::Optimizer> momentum(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::SGD>(parameters, optim::SGDOptions{.lr = 0.05, .momentum = 0.9});
}

std::shared_ptr<optim::Optimizer> adamw(const std::vector<Tensor>& parameters) {
  return std::make_shared<optim::AdamW>(parameters, optim::AdamWOptions{.lr = 1e-3});
}

Tensor tokens(int64_t vocab, const Shape& shape, TensorOptions options) {
  options.dtype = int64;
  return randint(0, vocab, shape, options);
}

Task<models::Mlp> mlp(const TrainingLayout& layout = {}) {
  return {.name = "mlp",
          .make_model =
              [] {
                return models::Mlp({24, 32, 32, 6});
              },
          .make_optimizer = momentum,
          .make_input =
              [](const TensorOptions& o) {
                return randn({8, 24}, o);
              },
          .labels = {8},
          .classes = 6,
          .layout = layout};
}

Task<models::Gpt> gpt(const TrainingLayout& layout = {}) {
  return {.name = "gpt",
          .make_model =
              [] {
                return models::Gpt({.vocab_size = 32,
                                    .block_size = 8,
                                    .n_layer = 2,
                                    .n_head = 2,
                                    .n_embd = 16,
                                    .dropout = 0.1,
                                    .gelu = "none"});
              },
          .make_optimizer = adamw,
          .make_input =
              [](const TensorOptions& o) {
                return tokens(32, {4, 8}, o);
              },
          .labels = {4, 8},
          .classes = 32,
          .layout = layout};
}

Task<models::MobileNetV2> mobilenet() {
  const models::MobileNetV2Options options{
      .num_classes = 6,
      .inverted_residual_setting = {{1, 8, 1, 1}, {2, 16, 2, 2}},
      .input_channel = 8,
      .last_channel = 32};
  return {.name = "mobilenet",
          .make_model = [options] { return models::MobileNetV2(options); },
          .make_optimizer = momentum,
          .make_input =
              [](const TensorOptions& o) {
                return randn({4, 3, 16, 16}, o);
              },
          .labels = {4},
          .classes = 6};
}

const TrainingLayout kDataParallel{"dp2", kPair, kS0, {{"*", kB}}};

TEST_F(GraphPasses, OfAnMlpMayBeOff) {
  expect_any_pass_may_be_off(mlp());
  expect_any_pass_may_be_off(mlp(kDataParallel));
}

TEST_F(GraphPasses, OfAGptMayBeOff) {
  expect_any_pass_may_be_off(gpt());
  expect_any_pass_may_be_off(gpt({"tp2", kPair, kB, gpt_layout(kS0, kS1, kB)}));
}

TEST_F(GraphPasses, OfALenetMayBeOff) {
  expect_any_pass_may_be_off(Task<models::Lenet>{.name = "lenet",
                                                 .make_model = [] { return models::Lenet(); },
                                                 .make_optimizer = momentum,
                                                 .make_input =
                                                     [](const TensorOptions& o) {
                                                       return randn({2, 1, 28, 28}, o);
                                                     },
                                                 .labels = {2},
                                                 .classes = 10});
}

TEST_F(GraphPasses, OfAMobileNetMayBeOff) {
  expect_any_pass_may_be_off(mobilenet());
}

// The tests above would prove nothing of a pass that changes none of these steps.
TEST_F(GraphPasses, ChangeTheseSteps) {
  const auto changes_of = [](const auto& task, const char* pass) {
    return train(task, [](nn::GraphConfig&) {}).changes_of(pass);
  };

  EXPECT_GT(changes_of(mlp(), "move_updates"), 0);
  EXPECT_GT(changes_of(gpt(), "recompute_activations"), 0);
  EXPECT_GT(changes_of(gpt(), "fuse_elementwise"), 0);
  EXPECT_GT(changes_of(mobilenet(), "fuse_batch_norm"), 0);
}

}  // namespace
}  // namespace flow
