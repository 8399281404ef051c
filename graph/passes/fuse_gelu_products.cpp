#include "graph/passes/fuse_gelu_products.h"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/passes/dead_nodes.h"
#include "ops/elementwise/fused_op.h"
#include "ops/elementwise/unary_op.h"
#include "ops/linear/linear_gelu_op.h"
#include "ops/linear/matmul_op.h"

namespace flow::graph {

namespace {

class GeluProducts {
 public:
  explicit GeluProducts(Graph& graph)
      : graph_(graph), uses_(graph), is_removed_(graph.nodes.size(), false) {}

  int64_t run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& own = node(i);
      if (!is_supported(own) || is_fused_elsewhere(own.outputs[0])) continue;
      if (own.op == &ops::gelu_tanh_op()) join_result(i);
      if (own.op == &ops::kGeluTanhGrad) join_gradient(i);
    }
    return remove_nodes(graph_, is_removed_);
  }

 private:
  const Node& node(size_t index) const { return graph_.nodes[index]; }

  // cuBLASLt has no gelu of float64.
  bool is_supported(const Node& elementwise) const {
    const Value& value = graph_.value(elementwise.outputs[0]);
    return value.device == DeviceType::kCuda &&
           (value.dtype == DType::kFloat32 || is_half(value.dtype));
  }

  // Next to other elementwise nodes, fuse_elementwise saves as much.
  bool is_fused_elsewhere(ValueId result) const {
    const std::span<const size_t> readers = uses_.readers(result);
    return std::any_of(readers.begin(), readers.end(), [&](size_t reader) {
      return ops::FusedProgram::can_contain(*node(reader).op);
    });
  }

  // The node that makes the value by `op`, in the same run as `reader`, and is not joined yet.
  std::optional<size_t> maker_by(const OpDef& op, ValueId id, const Node& reader) const {
    const int64_t maker = uses_.maker(id);
    if (maker < 0) return {};
    const auto index = static_cast<size_t>(maker);
    if (node(index).op != &op || !runs_alike(node(index), reader)) return {};
    return index;
  }

  // At the place of the product, whose result others may read.
  void join_result(size_t gelu) {
    const auto product = maker_by(ops::kLinear, node(gelu).inputs[0], node(gelu));
    if (!product) return;
    Node& both = graph_.nodes[*product];
    both.op = &ops::kLinearGeluTanh;
    both.outputs.insert(both.outputs.begin(), node(gelu).outputs[0]);
    is_removed_[gelu] = true;
  }

  // At the place of the gradient: between the two, a result of gelu that is computed again may need
  // as much memory as this one. Nothing else may read the product, which is not stored.
  void join_gradient(size_t gradient) {
    const ValueId dy = node(gradient).inputs[0], h = node(gradient).inputs[1];
    const auto product = maker_by(ops::kMatmul, dy, node(gradient));
    if (!product || dy == h || uses_.num_uses(dy) != 1) return;
    const std::vector<ValueId>& operands = node(*product).inputs;
    if (graph_.value(operands[1]).shape.size() != 2) return;
    Node& both = graph_.nodes[gradient];
    both.op = &ops::kMatmulGeluTanhGrad;
    both.inputs = {operands[0], operands[1], h};
    is_removed_[*product] = true;
  }

  Graph& graph_;
  GraphUses uses_;
  std::vector<bool> is_removed_;
};

}  // namespace

int64_t fuse_gelu_products(Graph& graph) {
  return GeluProducts(graph).run();
}

}  // namespace flow::graph
