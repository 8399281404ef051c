#include "graph/passes/save_slopes.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/passes/activation_ops.h"
#include "graph/passes/dead_nodes.h"
#include "ops/creation/creation_op.h"
#include "ops/elementwise/fused_op.h"
#include "ops/elementwise/row_table.h"

namespace flow::graph {

namespace {

class SavedSlopes {
 public:
  explicit SavedSlopes(Graph& graph) : graph_(graph), uses_(graph) {}

  int64_t run() {
    if (has_convolutions(graph_)) return 0;
    std::map<size_t, Node> empties;  // by the node that each precedes
    const size_t num_nodes = graph_.nodes.size();
    for (size_t i = 0; i < num_nodes; ++i) {
      if (const std::optional<size_t> gradient = gradient_of(i))
        empties.emplace(i, join(i, *gradient));
    }
    if (empties.empty()) return 0;
    std::vector<Node> nodes;
    for (size_t i = 0; i < num_nodes; ++i) {
      const auto empty = empties.find(i);
      if (empty != empties.end()) nodes.push_back(std::move(empty->second));
      nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
    renumber_values(graph_);
    return static_cast<int64_t>(empties.size());
  }

 private:
  const Node& node(size_t index) const { return graph_.nodes[index]; }

  // The gradient that, next to this activation, alone reads its input.
  std::optional<size_t> gradient_of(size_t index) const {
    const ActivationOps* activation = activation_ops(node(index).op);
    if (activation == nullptr) return {};
    const ValueId x = node(index).inputs[0];
    const std::span<const size_t> readers = uses_.readers(x);
    const bool is_returned = uses_.num_uses(x) != static_cast<int64_t>(readers.size());
    if (is_returned || readers.size() != 2 || readers[0] != index || !uses_.has_own_memory(x))
      return {};
    const Node& gradient = node(readers[1]);
    const bool fits = gradient.op == activation->gradient && gradient.inputs[1] == x &&
                      gradient.inputs[0] != x && runs_with(node(index), gradient) &&
                      is_supported(graph_.value(x)) && !may_be_fused(index);
    if (!fits) return {};
    return readers[1];
  }

  static bool runs_with(const Node& activation, const Node& gradient) {
    return activation.guard < 0 && gradient.guard < 0 && activation.stage == gradient.stage;
  }

  // On the CPU, 16-bit types have only the reference kernel of the joined op. On CUDA devices the
  // derivative costs less than to write it.
  bool is_supported(const Value& x) const {
    return x.device == DeviceType::kCpu && !x.nd_sbp.has_partial() &&
           (x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64);
  }

  // Next to other elementwise nodes, fuse_elementwise saves more.
  bool may_be_fused(size_t index) const {
    const std::span<const size_t> readers = uses_.readers(node(index).outputs[0]);
    return ops::FusedProgram::can_contain(*uses_.maker_node(node(index).inputs[0])->op) ||
           std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
             return ops::FusedProgram::can_contain(*node(reader).op);
           });
  }

  // Returns the node that makes the memory of the activation's result.
  Node join(size_t index, size_t gradient) {
    Node& activation = graph_.nodes[index];
    const ValueId x = activation.inputs[0];
    const Value value = graph_.value(x);
    const ValueId memory = graph_.add_value(Value(value)), slope = graph_.add_value(Value(value));
    Node empty = activation;
    const ops::LayoutAttrs layout{value.shape, value.dtype, value.device, value.placement,
                                  value.nd_sbp};
    empty.op = &ops::kEmpty;
    empty.inputs.clear();
    empty.outputs = {memory};
    empty.attrs.resize(sizeof(layout));
    std::memcpy(empty.attrs.data(), &layout, sizeof(layout));
    activation.op = activation_ops(activation.op)->with_slope;
    activation.inputs = {x, memory};
    activation.outputs = {slope, activation.outputs[0]};
    Node& product = graph_.nodes[gradient];
    product.op = &ops::op_of<ops::Mul>();
    product.inputs[1] = slope;
    return empty;
  }

  Graph& graph_;
  GraphUses uses_;
};

}  // namespace

int64_t save_slopes(Graph& graph) {
  return SavedSlopes(graph).run();
}

}  // namespace flow::graph
