// One step of a training, as calls or as a compiled graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "nn/graph.h"
#include "nn/layers/container.h"
#include "nn/optim/optimizer.h"
#include "nn/parallel/distributed.h"
#include "tools/flow_conform/train_layout.h"
#include "tools/flow_conform/train_summary.h"

namespace flow::conform {

// The mean over all targets.
Tensor mean_loss(const Tensor& logits, const Tensor& targets);

// What build() of a training graph gives.
struct StepTensors {
  Tensor loss;
  Tensor norm;                    // of all gradients
  std::vector<Tensor> gradients;  // where wanted
};

struct StepResult {
  Tensor loss;
  double grad_norm = 0;
  nn::StateDict gradients = {};  // where wanted
};

// Trains a model that is laid out. `inputs` and `targets` are as the layout gives them.
class TrainStep {
 public:
  virtual ~TrainStep() = default;
  // Forward, backward and update. `wants_gradients`: as they were before the update.
  virtual StepResult run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) = 0;
};

class EagerStep final : public TrainStep {
 public:
  EagerStep(nn::AnyModule model, optim::Optimizer& optimizer, const TrainLayout& layout);
  StepResult run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) override;

 private:
  Tensor loss_of(const Tensor& inputs, const Tensor& targets);

  nn::AnyModule model_;
  optim::Optimizer& optimizer_;
  bool is_mixed_precision_;
  std::optional<nn::parallel::DistributedDataParallel<nn::AnyModule>> replicas_;
};

struct GraphStepOptions {
  Pipelining pipelining = {};
  int64_t other_bytes = 0;    // that the rank holds and that have no part in the training
  std::string timeline = {};  // a file; empty: none
};

class GraphStep final : public TrainStep {
 public:
  GraphStep(nn::AnyModule model, optim::Optimizer& optimizer, const TrainLayout& layout,
            const GraphStepOptions& options);
  ~GraphStep() override;
  StepResult run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) override;

  // Of the last graph that ran.
  const RunRecord& record() const { return record_; }

 private:
  class TrainGraph;

  StepResult run_watched(TrainGraph& graph, const Tensor& inputs, const Tensor& targets);

  nn::AnyModule model_;
  optim::Optimizer& optimizer_;
  const TrainLayout& layout_;
  GraphStepOptions options_;
  std::unique_ptr<TrainGraph> graph_;
  const nn::CompiledGraph* watched_ = nullptr;
  RunRecord record_;
};

}  // namespace flow::conform
