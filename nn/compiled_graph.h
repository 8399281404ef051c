// What a graph keeps of one of its compiled forms.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "graph/run/compiled_step.h"
#include "nn/graph.h"
#include "nn/module.h"
#include "nn/optim/traced_scaler.h"
#include "nn/optim/traced_step.h"
#include "pipeline/micro_batching.h"
#include "pipeline/timeline_recorder.h"

namespace flow::nn {

// What a compiled graph was made for.
struct GraphSignature {
  std::vector<MetaPtr> inputs;
  std::vector<size_t> sizes;  // of vectors among the arguments
  bool grad_enabled = true;
  bool is_autocast = false;
  DType autocast = DType::kFloat32;
  // The graph's configuration.
  std::optional<DType> amp = {};
  const optim::GradScaler* scaler = nullptr;
  ZeroOptions zero = {};
  int64_t micro_batches = 1;
  pipeline::ScheduleRule schedule = {};
  bool recomputes = false;
  bool is_exact = false;
  graph::PassSet passes = graph::PassSet::kAll;
  friend bool operator==(const GraphSignature&, const GraphSignature&) = default;
};

// A module that build() called, and its mode then.
struct CalledModule {
  ModuleBase module;
  bool is_training;
};

struct CompiledGraph::State {
  GraphSignature signature;
  std::unique_ptr<graph::CompiledStep> plan;
  std::vector<CalledModule> modules;
  std::optional<optim::TracedScaler> scaler;
  std::vector<optim::TracedStep> steps;  // by optimizer of the graph
  // By optimizer: which of the plan's first outputs says whether it steps, -1: it always does.
  std::vector<int64_t> guards;
  size_t num_guards = 0;
  pipeline::MicroBatching batching;

  // The schedule, ranks and predicted costs of the step; empty where it has no schedule.
  pipeline::TimelineFile timeline_frame() const;
  // Whether its modules are in the modes they had.
  bool has_modes() const;
  // Whether the tensors it reads and writes are still the model's and the optimizers'.
  bool fits() const;
  // Throws Unsupported: what build() writes before a step that may be left out would be lost with
  // it.
  void check_guarded_writes() const;
  // Throws InvalidArgument unless captured tensors that the step writes belong to modules it calls
  // or to its optimizers.
  void check_writes() const;
};

}  // namespace flow::nn
