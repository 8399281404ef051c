#include "graph/passes/fuse_batch_norm.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/passes/dead_nodes.h"
#include "ops/elementwise/activation_op.h"
#include "ops/norm/batch_norm_op.h"

namespace flow::graph {

namespace {

template <class Attrs>
const Attrs& attrs_of(const Node& node) {
  return *static_cast<const Attrs*>(node.raw_attrs());
}

// Nodes by their positions: a batch norm, the hardtanh of its result, and for each gradient of the
// hardtanh the gradient of the batch norm that alone reads it.
struct Match {
  size_t norm = 0;
  size_t clamp = 0;
  std::vector<std::pair<size_t, size_t>> gradients = {};
};

class Fusion {
 public:
  explicit Fusion(Graph& graph)
      : graph_(graph), uses_(graph), is_removed_(graph.nodes.size(), false) {}

  int64_t run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (graph_.nodes[i].op != &ops::kBatchNorm) continue;
      const std::optional<Match> match = match_of(i);
      if (match) rewrite(*match);
    }
    return remove_nodes(graph_, is_removed_);
  }

 private:
  const Node& node(size_t index) const { return graph_.nodes[index]; }

  // Between the bounds nothing is rounded if the bounds are numbers of the dtype.
  bool is_supported(const Node& norm) const {
    const Value& x = graph_.value(norm.inputs[0]);
    return x.device == DeviceType::kCpu && dtype_size(x.dtype) >= 4 && norm.guard < 0 &&
           attrs_of<ops::BatchNormAttrs>(norm).parts == 1;
  }

  bool is_result(ValueId id) const {
    return uses_.num_uses(id) != static_cast<int64_t>(uses_.readers(id).size());
  }

  std::optional<Match> match_of(size_t index) const {
    const Node& norm = node(index);
    const ValueId middle = norm.outputs[0];
    if (!is_supported(norm) || is_result(middle)) return {};
    Match match{.norm = index};
    for (const size_t reader : uses_.readers(middle)) {
      const Node& use = node(reader);
      if (use.op == &ops::kHardtanh && match.clamp == 0 && runs_alike(norm, use)) {
        match.clamp = reader;
        continue;
      }
      if (use.op != &ops::kHardtanhGrad || use.inputs[1] != middle || use.inputs[0] == middle)
        return {};
      const std::optional<size_t> next = gradient_after(reader, norm);
      if (!next) return {};
      match.gradients.emplace_back(reader, *next);
    }
    if (match.clamp == 0) return {};
    const AttrsEqual same{node(match.clamp)};
    const bool has_other_attrs =
        std::any_of(match.gradients.begin(), match.gradients.end(),
                    [&](const auto& pair) { return !same(node(pair.first)); });
    if (has_other_attrs) return {};
    return match;
  }

  // Whether hardtanh and its gradient have the same bounds.
  struct AttrsEqual {
    const Node& clamp;

    bool operator()(const Node& gradient) const {
      return clamp.op->attrs->equal(clamp.raw_attrs(), gradient.raw_attrs(), true);
    }
  };

  // The gradient of the batch norm that reads the gradient of the hardtanh; none if others do.
  std::optional<size_t> gradient_after(size_t index, const Node& norm) const {
    const ValueId passed = node(index).outputs[0];
    const std::span<const size_t> readers = uses_.readers(passed);
    if (readers.size() != 1 || is_result(passed)) return {};
    const Node& next = node(readers[0]);
    const bool is_gradient =
        next.op == &ops::kBatchNormBackward && next.inputs[0] == passed &&
        next.inputs[1] == norm.inputs[0] && next.inputs[2] == norm.outputs[1] &&
        attrs_of<ops::BatchNormAttrs>(next).parts == 1 && runs_alike(node(index), next);
    if (!is_gradient) return {};
    return readers[0];
  }

  void set_attrs(Node& target, const Node& norm, const Node& clamp) const {
    const auto& bounds = attrs_of<ops::HardtanhAttrs>(clamp);
    const ops::BatchNormHardtanhAttrs attrs{.eps = attrs_of<ops::BatchNormAttrs>(norm).eps,
                                            .min_val = bounds.min_val,
                                            .max_val = bounds.max_val};
    target.attrs.resize(sizeof(attrs));
    std::memcpy(target.attrs.data(), &attrs, sizeof(attrs));
  }

  void rewrite(const Match& match) {
    Node& norm = graph_.nodes[match.norm];
    const Node& clamp = node(match.clamp);
    const ValueId y = clamp.outputs[0];
    for (const auto& [first, second] : match.gradients) {
      Node& gradient = graph_.nodes[second];
      set_attrs(gradient, gradient, clamp);
      gradient.op = &ops::kBatchNormHardtanhBackward;
      gradient.inputs[0] = node(first).inputs[0];
      gradient.inputs.insert(gradient.inputs.begin() + 1, y);
      is_removed_[first] = true;
    }
    set_attrs(norm, norm, clamp);
    norm.op = &ops::kBatchNormHardtanh;
    norm.outputs[0] = y;
    is_removed_[match.clamp] = true;
  }

  Graph& graph_;
  GraphUses uses_;
  std::vector<bool> is_removed_;
};

}  // namespace

int64_t fuse_batch_norm(Graph& graph) {
  return Fusion(graph).run();
}

}  // namespace flow::graph
