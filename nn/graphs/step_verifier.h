// FLOW_GRAPH_VERIFY=1: compares the first run of each plan with what eager mode computes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/generator.h"
#include "graph/ir/id_map.h"
#include "graph/passes/pass.h"
#include "graph/run/compiled_step.h"

namespace flow::nn {

// Made before a run, of which it keeps what the run reads. Needs the memory of all values of the
// step. The calling thread's rank must be that of the run.
class StepVerifier {
 public:
  // True if FLOW_GRAPH_VERIFY asks for it. Of a step that concerns several ranks only the first
  // plan is compared, because a rank may make further ones on its own. The next call returns false
  // then.
  static bool is_wanted(const graph::CompiledStep& plan);

  // `traced` is the step before `passes` made the graph of `plan` of it; both must outlive this
  // object.
  StepVerifier(const graph::Graph& traced, std::span<const graph::Pass> passes,
               const graph::CompiledStep& plan, std::span<const Tensor> inputs);

  // Runs the nodes of the traced step one by one on the copies, and compares the results of the run
  // with theirs: bit for bit if `is_exact`, otherwise within the rounding of the dtype. Throws
  // InternalError if they differ. It names the first op that the passes make differ, with its line,
  // its module and two values. Collective over the ranks of the step's placements.
  void check(std::span<const Tensor> outputs, bool is_exact);

 private:
  using Values = graph::IdMap<graph::ValueId, Tensor>;

  void run_eagerly();
  void run_node(const graph::Node& node);
  bool is_skipped(const graph::Node& node) const;
  // The first element of this rank's part that differs by more than rounding and `slack`, as text;
  // empty: there is none.
  std::string difference(const Tensor& compiled, graph::ValueId value, double slack = 0) const;
  // The largest difference that the eager run makes to an element of this rank's part.
  double largest_change(const graph::Capture& capture) const;
  std::string difference_of_results(std::span<const Tensor> outputs) const;
  // Compiles the step with all values as outputs and compares these.
  std::string first_difference() const;
  // The smallest number among the ranks.
  int64_t least_on_ranks(int64_t number) const;

  const graph::Graph& traced_;
  std::span<const graph::Pass> passes_;
  const graph::CompiledStep& plan_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> captures_;  // before the run
  Generator::State generator_;
  Values values_;  // of the eager run
  bool is_exact_ = false;
};

}  // namespace flow::nn
