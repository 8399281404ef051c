// One training step, in eager mode or as a compiled graph.
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

// The mean loss over all targets.
Tensor mean_loss(const Tensor& logits, const Tensor& targets);

// What build() of a training graph returns.
struct StepTensors {
  Tensor loss;
  Tensor norm;                    // the norm of all gradients
  std::vector<Tensor> gradients;  // if requested
};

struct StepResult {
  Tensor loss;
  double grad_norm = 0;
  nn::StateDict gradients = {};  // if requested
};

// Trains a model whose layout is set. `inputs` and `targets` have the layouts of TrainLayout.
class TrainStep {
 public:
  virtual ~TrainStep() = default;
  // Runs forward, backward and update. `wants_gradients`: also returns the gradients before the
  // update.
  virtual StepResult run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) = 0;
};

// The model on each rank, if the layout has replicas.
using Replicas = std::optional<nn::parallel::DistributedDataParallel<nn::AnyModule>>;

class EagerStep final : public TrainStep {
 public:
  EagerStep(nn::AnyModule model, optim::Optimizer& optimizer, const TrainLayout& layout);
  StepResult run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) override;

 private:
  Tensor loss_of(const Tensor& inputs, const Tensor& targets);

  nn::AnyModule model_;
  optim::Optimizer& optimizer_;
  bool is_mixed_precision_;
  Replicas replicas_;
};

struct GraphStepOptions {
  Pipelining pipelining = {};
  int64_t other_bytes = 0;    // held by the rank, but not part of the training
  std::string timeline = {};  // a file; empty: no timeline
};

class GraphStep final : public TrainStep {
 public:
  GraphStep(nn::AnyModule model, optim::Optimizer& optimizer, const TrainLayout& layout,
            const GraphStepOptions& options);
  ~GraphStep() override;
  StepResult run(const Tensor& inputs, const Tensor& targets, bool wants_gradients) override;

  // Statistics of the last graph that ran.
  const RunRecord& record() const { return record_; }

 private:
  class TrainGraph;

  StepResult run_watched(TrainGraph& graph, const Tensor& inputs, const Tensor& targets);

  nn::AnyModule model_;
  Replicas replicas_;
  optim::Optimizer& optimizer_;
  const TrainLayout& layout_;
  GraphStepOptions options_;
  std::unique_ptr<TrainGraph> graph_;
  const nn::CompiledGraph* watched_ = nullptr;
  RunRecord record_;
};

}  // namespace flow::conform
