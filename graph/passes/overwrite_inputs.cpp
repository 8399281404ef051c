#include "graph/passes/overwrite_inputs.h"

#include <algorithm>
#include <span>

#include "graph/ir/graph_uses.h"
#include "graph/passes/redistributions.h"
#include "ops/elementwise/fused_op.h"

namespace flow::graph {

namespace {

class Overwriting {
 public:
  explicit Overwriting(Graph& graph) : graph_(graph), uses_(graph) {}

  int64_t run() {
    int64_t num_marked = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      Node& node = graph_.nodes[i];
      if (!is_elementwise(node) || node.guard >= 0 || is_moved(node.outputs[0])) continue;
      const auto input = std::find_if(node.inputs.begin(), node.inputs.end(),
                                      [&](ValueId id) { return may_overwrite(id, i); });
      if (input == node.inputs.end()) continue;
      node.overwrites = input - node.inputs.begin();
      ++num_marked;
    }
    return num_marked;
  }

 private:
  // Whether the node's kernel reads each element before it writes that of the result. A fused one
  // writes what it returns when it computes it, and may read inputs until its last instruction.
  static bool is_elementwise(const Node& node) {
    if (node.op != &ops::kFusedElementwise) return ops::FusedProgram::can_contain(*node.op);
    const auto& program = static_cast<const ops::FusedAttrs*>(node.raw_attrs())->program;
    return node.outputs.size() == 1 && program.is_returned(program.num_instructions() - 1);
  }

  // A transfer may decide later where its operand is.
  bool is_moved(ValueId id) const {
    const std::span<const size_t> readers = uses_.readers(id);
    return std::any_of(readers.begin(), readers.end(),
                       [&](size_t reader) { return is_transfer(graph_.nodes[reader]); });
  }

  // Whether the value is like the result, has memory of its own, and is last read by this node.
  bool may_overwrite(ValueId id, size_t index) const {
    const Value& result = graph_.value(graph_.nodes[index].outputs[0]);
    const bool is_own = uses_.has_own_memory(id) && !is_transfer(*uses_.maker_node(id));
    if (!is_own || !(graph_.value(id) == result) || result.device != DeviceType::kCpu) return false;
    const std::span<const size_t> readers = uses_.readers(id);
    return uses_.num_uses(id) == static_cast<int64_t>(readers.size()) &&
           std::all_of(readers.begin(), readers.end(), [&](size_t reader) {
             return reader <= index && graph_.nodes[reader].op->view == nullptr;
           });
  }

  Graph& graph_;
  GraphUses uses_;
};

}  // namespace

int64_t overwrite_inputs(Graph& graph) {
  return Overwriting(graph).run();
}

}  // namespace flow::graph
