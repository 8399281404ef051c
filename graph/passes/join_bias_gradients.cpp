#include "graph/passes/join_bias_gradients.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/passes/dead_nodes.h"
#include "ops/linear/contract_and_sum_op.h"
#include "ops/linear/matmul_op.h"
#include "ops/reduce/reduce_op.h"
#include "ops/reduce/reduce_rows.h"

namespace flow::graph {

namespace {

class JoinedGradients {
 public:
  explicit JoinedGradients(Graph& graph)
      : graph_(graph), uses_(graph), is_removed_(graph.nodes.size(), false) {}

  int64_t run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (node(i).op != &ops::kContractLeading || !is_supported(node(i))) continue;
      for (int64_t operand = 0; operand < 2; ++operand) {
        const std::optional<size_t> sum = sum_for(i, operand);
        if (!sum) continue;
        join(i, *sum, operand);
        break;
      }
    }
    return remove_nodes(graph_, is_removed_);
  }

 private:
  const Node& node(size_t index) const { return graph_.nodes[index]; }

  // cuBLASLt has no such sums of float64.
  bool is_supported(const Node& product) const {
    const Value& value = graph_.value(product.inputs[0]);
    return value.device == DeviceType::kCuda &&
           (value.dtype == DType::kFloat32 || is_half(value.dtype));
  }

  // Whether the node sums its input over all dims but the last.
  bool sums_leading_dims(const Node& sum) const {
    const Shape& shape = graph_.value(sum.inputs[0]).shape;
    if (shape.size() < 2 || graph_.value(sum.outputs[0]).shape != Shape{shape.back()}) return false;
    if (sum.op == &ops::kSumTo) return true;
    if (sum.op != &ops::reduction_of<ops::Sum>()) return false;
    ops::ReduceAttrs attrs;
    std::memcpy(&attrs, sum.attrs.data(), sizeof(attrs));
    return std::none_of(attrs.dims.begin(), attrs.dims.end(),
                        [&](int64_t dim) { return dim == shape.size() - 1; });
  }

  // A sum that runs like the product and is read only after it.
  std::optional<size_t> sum_for(size_t product, int64_t operand) const {
    const ValueId summed = node(product).inputs[static_cast<size_t>(operand)];
    for (const size_t reader : uses_.readers(summed)) {
      const Node& sum = node(reader);
      if (is_removed_[reader] || sum.inputs[0] != summed || !sums_leading_dims(sum) ||
          !runs_alike(node(product), sum)) {
        continue;
      }
      const auto readers = uses_.readers(sum.outputs[0]);
      if (std::all_of(readers.begin(), readers.end(), [&](size_t r) { return r > product; }))
        return reader;
    }
    return {};
  }

  // At the place and line of the product.
  void join(size_t product, size_t sum, int64_t operand) {
    Node& both = graph_.nodes[product];
    const ops::ContractAndSumAttrs attrs{operand};
    both.op = &ops::kContractLeadingAndSum;
    both.attrs.resize(sizeof(attrs));
    std::memcpy(both.attrs.data(), &attrs, sizeof(attrs));
    both.outputs.push_back(node(sum).outputs[0]);
    is_removed_[sum] = true;
  }

  Graph& graph_;
  GraphUses uses_;
  std::vector<bool> is_removed_;
};

}  // namespace

int64_t join_bias_gradients(Graph& graph) {
  return JoinedGradients(graph).run();
}

}  // namespace flow::graph
