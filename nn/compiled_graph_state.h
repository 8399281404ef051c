// The state of one compiled form of a graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <typeindex>
#include <typeinfo>
#include <vector>

#include "graph/run/compiled_step.h"
#include "nn/graph.h"
#include "nn/graphs/kept_plans.h"
#include "nn/graphs/step_verifier.h"
#include "nn/module_reads.h"
#include "nn/optim/traced_scaler.h"
#include "nn/optim/traced_step.h"
#include "nn/tensor_reads.h"
#include "pipeline/order.h"
#include "pipeline/timeline_recorder.h"

namespace flow::nn {

// The conditions under which a compiled form may be used again.
struct GraphSignature {
  std::type_index arguments = typeid(void);  // which build() is called
  std::vector<MetaPtr> inputs;
  std::vector<size_t> sizes;  // lengths of the vectors among the arguments
  DType default_dtype = DType::kFloat32;
  bool grad_enabled = true;
  bool is_autocast = false;
  DType autocast = DType::kFloat32;
  // The configuration of the graph.
  std::optional<DType> amp = {};
  std::shared_ptr<const optim::GradScaler> scaler = nullptr;  // alive, so its address is its own
  ZeroOptions zero = {};
  int64_t micro_batches = 1;
  pipeline::ScheduleRule schedule = {};
  bool recomputes = false;
  bool is_exact = false;
  graph::PassSet passes = graph::PassSet::kAll;
  graph::OverlapOptions overlap = {};
  std::set<std::string> disabled_passes = {};
  // The guards around the call.
  Placement default_placement = {};
  NdSbp default_sbp = {};
  bool forbids_implicit_boxing = false;
  friend bool operator==(const GraphSignature&, const GraphSignature&) = default;
};

struct CompiledGraph::State {
  const KeptPlans* kept = nullptr;  // the plans of the graph, of which this is one
  GraphSignature signature;
  std::shared_ptr<graph::CompiledStep> plan;
  graph::Graph traced;              // before the passes
  std::vector<graph::Pass> passes;  // that made the plan's graph of it
  ModuleReads modules;
  TensorReads tensors;
  std::optional<optim::TracedScaler> scaler;
  std::vector<optim::TracedStep> steps;  // by optimizer of the graph
  // By optimizer: the number of the plan's output that says whether it steps; -1: it always steps.
  std::vector<int64_t> guards;
  size_t num_guards = 0;
  pipeline::MicroBatching batching;
  bool has_run = false;

  // What compares the first run with eager mode; empty if that is not asked for
  // (FLOW_GRAPH_VERIFY) or not possible, because micro-batches have statistics of their own.
  std::optional<StepVerifier> verifier_of_first_run(std::span<const Tensor> inputs);

  // The schedule, ranks and predicted costs of the step; empty if it has no schedule.
  pipeline::TimelineFile timeline_frame() const;
  // True if a trace would read the same of modules, tensors and optimizers, except for the modes of
  // modules.
  bool fits() const;
  // Throws Unsupported if build() writes to a tensor that a skippable optimizer step writes as
  // well: skipping the step would lose the write.
  void check_guarded_writes() const;
  // Throws InvalidArgument unless every captured tensor that the step writes belongs to a module
  // that it calls or to one of its optimizers.
  void check_writes() const;
};

}  // namespace flow::nn
