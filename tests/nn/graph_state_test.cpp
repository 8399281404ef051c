// The state of a graph in one dictionary: training that goes on from it equals training that was
// not interrupted, bit for bit.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

namespace lrs = optim::lr_scheduler;

// Everything that a state contains: batch norm, Adam, a schedule and a scaler.
struct Train : nn::Graph<Train> {
  nn::Sequential model;

  Train(nn::Sequential m, optim::Optimizer& optimizer, lrs::LRScheduler& rate, int64_t zero)
      : model(register_module("model", m)) {
    add_optimizer(optimizer, {.lr_scheduler = &rate});
    config().enable_amp(float16, {.init_scale = 64, .growth_interval = 3});
    config().enable_zero({.stage = zero});
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = mse_loss(model(x), y);
    loss.backward();
    return loss;
  }
};

struct Setting {
  Placement placement = {};
  int64_t zero = 0;
};

struct Training {
  nn::Sequential model{nn::Linear(4, 8), nn::BatchNorm1d(8), nn::ReLU(), nn::Dropout(0.3),
                       nn::Linear(8, 2)};
  optim::AdamW optimizer;
  lrs::OneCycleLR rate;
  Train graph;
  TensorOptions layout;

  explicit Training(const Setting& setting)
      : optimizer(moved(setting).parameters(), {.lr = 0.01}),
        rate(optimizer, {.max_lr = {0.1}, .total_steps = 30}),
        graph(model, optimizer, rate, setting.zero) {
    if (!setting.placement.defined()) return;
    layout.placement = setting.placement;
    layout.sbp = sbp::split(0);
  }

  nn::Sequential& moved(const Setting& setting) {
    if (setting.placement.defined()) model.to_global(setting.placement, sbp::broadcast);
    return model;
  }

  // The losses of the steps first to last - 1.
  std::vector<float> train(int64_t first, int64_t last) {
    std::vector<float> losses;
    for (int64_t step = first; step < last; ++step) {
      const Tensor x = randn({8, 4}, layout), y = randn({8, 2}, layout);
      losses.push_back(graph(x, y).item<float>());
    }
    return losses;
  }
};

// Through a file, and into a graph that has run already or not.
void expect_resumes(const Setting& setting, const std::string& file) {
  constexpr int64_t kStop = 4, kEnd = 9;
  manual_seed(7);
  Training whole(setting);
  const std::vector<float> all = whole.train(0, kEnd);
  manual_seed(7);
  Training first(setting);
  first.train(0, kStop);
  nn::save_safetensors(file, first.graph.state_dict());
  const Generator::State generator = generator_state();
  for (const int64_t calls_before : {0, 2}) {
    manual_seed(1);
    Training second(setting);
    second.train(0, calls_before);
    second.graph.load_state_dict(nn::load_safetensors(file));
    set_generator_state(generator);
    EXPECT_EQ(second.train(kStop, kEnd), std::vector(all.begin() + kStop, all.end()))
        << calls_before << " calls before, stage " << setting.zero;
    const nn::StateDict state = second.graph.state_dict();
    for (const auto& [name, tensor] : whole.graph.state_dict())
      EXPECT_EQ(state.at(name).to(float64).to_vector<double>(),
                tensor.to(float64).to_vector<double>())
          << name;
  }
}

TEST(GraphState, ResumedTrainingEqualsUninterruptedTraining) {
  const TempFolder folder;
  expect_resumes({}, folder.file("graph.safetensors"));
}

TEST(GraphState, TheSameOnTwoRanksAndWithZero) {
  const TempFolder folder;
  const std::string file = folder.file("graph.safetensors");
  for (const int64_t stage : {0, 1, 3})
    run_ranks(2, [&] { expect_resumes({.placement = kPair, .zero = stage}, file); });
}

TEST(GraphState, HasTheNamesOfItsParts) {
  Training training({});
  training.train(0, 1);
  const nn::StateDict state = training.graph.state_dict();
  for (const char* name :
       {"model.0.weight", "model.1.running_mean", "optimizer.0.0.exp_avg", "optimizer.0.group.0.lr",
        "lr_scheduler.0.last_epoch", "grad_scaler.scale"})
    EXPECT_TRUE(state.contains(name)) << name;
  const size_t size = training.model.state_dict().size() + training.optimizer.state_dict().size() +
                      training.rate.state_dict().size() + 5;
  EXPECT_EQ(state.size(), size);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(GraphState, RefusesOtherStates) {
  Training training({});
  training.train(0, 1);
  const nn::StateDict good = training.graph.state_dict();
  const std::vector<float> weight = good.at("model.0.weight").to_vector<float>();
  nn::StateDict more = good;
  more["other.weight"] = zeros({1});
  more["model.0.weight"] = zeros({8, 4});
  EXPECT_TRUE(
      has(error_of([&] { training.graph.load_state_dict(more); }), "unexpected: other.weight"));
  nn::StateDict less = good;
  std::erase_if(less, [](const auto& it) { return it.first.starts_with("optimizer."); });
  less["model.0.weight"] = zeros({8, 4});
  EXPECT_TRUE(has(error_of([&] { training.graph.load_state_dict(less); }), "missing: optimizer.0"));
  EXPECT_EQ(training.model.state_dict().at("0.weight").to_vector<float>(), weight);
}

TEST(GraphState, RefusesModulesWithoutOrWithBadNames) {
  struct Unnamed : nn::Graph<Unnamed> {
    explicit Unnamed(optim::Optimizer& optimizer) { add_optimizer(optimizer); }

    Tensor build(const Tensor& x) { return x + 1; }

    void name(const char* text) { register_module(text, nn::Linear(1, 1)); }
  };

  nn::Linear layer(2, 2);
  optim::SGD optimizer(layer.parameters(), {.lr = 0.1});
  Unnamed graph(optimizer);
  EXPECT_TRUE(has(error_of([&] { graph.state_dict(); }),
                  "parameter 0 of optimizer 0, (2, 2) float32, belongs to no registered module"));
  graph.name("a");
  for (const char* bad : {"", "a", "a.b", "optimizer", "lr_scheduler", "grad_scaler"})
    EXPECT_THROW(graph.name(bad), InvalidArgument) << bad;
}

}  // namespace
}  // namespace flow
