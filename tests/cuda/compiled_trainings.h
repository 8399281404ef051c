// Compiled trainings that several test programs of device cuda run.
#pragma once

#include <functional>
#include <vector>

#include "nn/flow.h"
#include "tests/support/stage_list.h"

namespace flow {

struct MlpStep : nn::Graph<MlpStep> {
  nn::Sequential net;

  MlpStep(nn::Sequential n, optim::Optimizer& optimizer) : net(n) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x, const Tensor& target) {
    const Tensor loss = mse_loss(net(x), target);
    loss.backward();
    return loss;
  }

  using nn::GraphBase::config;
};

struct TwoStages : nn::Graph<TwoStages> {
  StageList model;

  TwoStages(const StageList& m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(2);
  }

  Tensor build(const Tensor& x, const Tensor& weights) {
    const Tensor loss = sum(model(x) * weights);
    loss.backward();
    return loss;
  }
};

// Runs one of the steps 0, 1 and 2 of a training and returns its loss.
using RunStep = std::function<Tensor(int step, const std::function<Tensor()>& run)>;

// The losses of a training whose stages are on ranks 0 and 1, each step by `run_step`; empty on
// rank 0.
inline std::vector<double> train_in_stages(const char* device, const RunStep& run_step) {
  manual_seed(4);
  StageList model(2, [] { return nn::Sequential(nn::Linear(6, 6), nn::Linear(6, 6)); });
  model.to(device);
  const Placement first(device, {0}), last(device, {1});
  model.place({first, last});
  optim::SGD sgd(model.parameters(), {.lr = 0.1});
  TwoStages graph(model, sgd);
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    const Tensor x = full({8, 6}, 0.1 * (step + 1),
                          {.dtype = float32, .placement = first, .sbp = sbp::broadcast});
    const Tensor weights = ones({8, 6}, {.placement = last, .sbp = sbp::broadcast});
    const Tensor loss = run_step(step, [&] { return graph(x, weights); });
    if (env::rank() == 1) losses.push_back(loss.to_local().item());
  }
  return losses;
}

}  // namespace flow
