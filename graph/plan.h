// A traced step made ready to run on this rank: passes, program, executor.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/executor.h"
#include "graph/passes/pass.h"
#include "graph/tracer.h"

namespace flow::graph {

// Immutable but for the memory it runs in. Belongs to the rank it was made on; not thread safe.
class Plan {
 public:
  explicit Plan(TracedStep step, PassSet passes = PassSet::kAll);
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // Carries out the step: `inputs` as they were added to the trace; gives its outputs, in memory of
  // their own. Captured tensors that the step writes have new values afterwards. Throws
  // InvalidArgument, before anything runs, when a tensor's layout is not that of the trace.
  std::vector<Tensor> run(std::span<const Tensor> inputs);

  // Whether every captured tensor still has the layout it was traced with.
  bool fits() const;

  const Graph& graph() const { return graph_; }

  const Program& program() const { return program_; }

  const std::vector<PassResult>& passes() const { return passes_; }

  // Tensors from outside, as graph().captures.
  const std::vector<Tensor>& captures() const { return captures_; }

 private:
  Graph graph_;
  std::vector<PassResult> passes_;
  std::vector<Tensor> captures_;
  Program program_;
  std::vector<MetaPtr> output_metas_;
  std::vector<Tensor> externals_;       // inputs, captures, outputs; the latter only during a run
  std::unique_ptr<Executor> executor_;  // made at the first run
};

}  // namespace flow::graph
