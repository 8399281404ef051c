#include "graph/passes/fuse_activation_grad.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/passes/activation_ops.h"
#include "graph/passes/dead_nodes.h"

namespace flow::graph {

namespace {

class Fusion {
 public:
  explicit Fusion(Graph& graph) : graph_(graph), uses_(graph) {}

  int64_t run() {
    if (has_convolutions(graph_)) return 0;
    std::vector<bool> is_removed(graph_.nodes.size(), false);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const std::optional<size_t> gradient = gradient_for(i);
      if (!gradient) continue;
      join(i, *gradient);
      is_removed[*gradient] = true;
    }
    return remove_nodes(graph_, is_removed);
  }

 private:
  const Node& node(size_t index) const { return graph_.nodes[index]; }

  // The node whose gradient can be computed together with the activation `index`.
  std::optional<size_t> gradient_for(size_t index) const {
    const Node& activation = node(index);
    const ActivationOps* ops = activation_ops(activation.op);
    if (ops == nullptr || activation.phase != Phase::kBackward || !activation.is_transient ||
        !is_supported(graph_.value(activation.inputs[0]))) {
      return {};
    }
    const ValueId x = activation.inputs[0];
    const std::span<const size_t> readers = uses_.readers(x);
    const auto found = std::find_if(readers.begin(), readers.end(), [&](size_t reader) {
      return node(reader).op == ops->gradient && node(reader).inputs[1] == x;
    });
    if (found == readers.end() || !fits(index, *found)) return {};
    return *found;
  }

  // On the CPU, 16-bit types have only the reference kernel of the joined op.
  static bool is_supported(const Value& value) {
    return value.device == DeviceType::kCuda || value.dtype == DType::kFloat32 ||
           value.dtype == DType::kFloat64;
  }

  bool fits(size_t index, size_t gradient) const {
    const Node &activation = node(index), &other = node(gradient);
    const ValueId x = activation.inputs[0], dy = other.inputs[0];
    const bool is_alike = other.phase == activation.phase && other.stage == activation.stage &&
                          other.guard == activation.guard &&
                          graph_.value(other.outputs[0]) == graph_.value(dy) &&
                          graph_.value(activation.outputs[0]) == graph_.value(x);
    return is_alike && gradient > index && dy != x && is_last_read(dy, index, gradient) &&
           is_last_read(x, index, gradient);
  }

  // Whether a node before the joined one makes the value, in memory of its own, and nothing but
  // these two nodes reads it from there on.
  bool is_last_read(ValueId id, size_t index, size_t gradient) const {
    const std::span<const size_t> readers = uses_.readers(id);
    return uses_.has_own_memory(id) && uses_.maker(id) < static_cast<int64_t>(index) &&
           uses_.num_uses(id) == static_cast<int64_t>(readers.size()) &&
           std::all_of(readers.begin(), readers.end(), [&](size_t reader) {
             const bool shows_it = node(reader).op->view != nullptr;
             return !shows_it && (reader <= index || reader == gradient);
           });
  }

  // At the place and line of the activation.
  void join(size_t index, size_t gradient) {
    Node& both = graph_.nodes[index];
    const Node& other = node(gradient);
    both.op = activation_ops(both.op)->with_gradient;
    both.inputs = {other.inputs[0], both.inputs[0]};
    both.outputs = {other.outputs[0], both.outputs[0]};
    both.is_transient = false;
  }

  Graph& graph_;
  GraphUses uses_;
};

}  // namespace

int64_t fuse_activation_grad(Graph& graph) {
  return Fusion(graph).run();
}

}  // namespace flow::graph
