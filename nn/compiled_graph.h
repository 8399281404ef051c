// A compiled form of a graph.
#pragma once

#include <memory>
#include <string>

namespace flow::graph {
class CompiledStep;
}

namespace flow::nn {

// One compiled form of a graph, for inputs of one layout.
class CompiledGraph {
 public:
  ~CompiledGraph();
  CompiledGraph(const CompiledGraph&) = delete;
  CompiledGraph& operator=(const CompiledGraph&) = delete;

  const graph::CompiledStep& plan() const;

  // A text of several lines: nodes, passes, memory, what was proved about the programs of all
  // ranks, the redistributions with their source lines, the CUDA graphs of the last run if they are
  // on (GraphConfig::set_cuda_graphs), and how many plans the graph keeps.
  std::string summary() const;

  // What each pass changed, and every redistribution of this rank with its source line, route,
  // bytes and predicted time, the next best route, and how often it happens in a run; the costliest
  // come first. With stages or micro-batches also the transfers between stages, and with CUDA
  // graphs the steps that are in none of them, and why.
  std::string explain() const;

  // Writes, as text files to `folder`/rank_<this rank>: the traced step (00_traced.ir), the step
  // after each pass that changed it (03_merge_common_subexpressions.ir), program.txt of this rank,
  // certificate.txt, explain.txt and summary.txt. The inner folder appears complete or not at all,
  // and replaces that of an earlier dump. Does not wait for other ranks. Throws IoError if the
  // folder cannot be written.
  void dump(const std::string& folder) const;

  // Writes the plan of all ranks to a file that flow-plan can show. The file appears complete or
  // not at all. Any rank may call it; it does not wait for other ranks. Throws IoError.
  void save(const std::string& path) const;

  // Writes the predicted execution of the schedule as a timeline. Throws IoError; InvalidArgument
  // for a graph of one stage and one micro-batch, which has no schedule.
  void write_predicted_timeline(const std::string& path) const;

 private:
  friend class GraphBase;
  template <class Derived>
  friend class Graph;
  struct State;

  CompiledGraph();

  std::unique_ptr<State> state_;
  std::shared_ptr<const void> result_;  // the result of build(), with undefined tensors to fill in
};

}  // namespace flow::nn
