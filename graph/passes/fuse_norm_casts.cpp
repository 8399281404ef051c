#include "graph/passes/fuse_norm_casts.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/passes/dead_nodes.h"
#include "ops/elementwise/cast_op.h"
#include "ops/norm/norm_op.h"

namespace flow::graph {

namespace {

bool is_narrow(DType dtype) {
  return is_half(dtype);
}

class Fusion {
 public:
  explicit Fusion(Graph& graph)
      : graph_(graph), uses_(graph), is_removed_(graph.nodes.size(), false) {}

  int64_t run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (node(i).op == &ops::kLayerNorm) join_result(i);
      if (node(i).op == &ops::kLayerNormBackward) join_gradient(i);
    }
    return remove_nodes(graph_, is_removed_);
  }

 private:
  const Node& node(size_t index) const { return graph_.nodes[index]; }

  // Whether x and the parameters are as the joined ops take them: sums over ranks that have not
  // been added up are not.
  bool is_supported(const Node& norm, size_t first) const {
    for (size_t i = first; i < norm.inputs.size(); ++i) {
      if (norm.inputs[i] == kNoValue) continue;
      const Value& value = graph_.value(norm.inputs[i]);
      if (value.device != DeviceType::kCuda || value.dtype != DType::kFloat32 ||
          has_partial(value)) {
        return false;
      }
    }
    return true;
  }

  static bool has_partial(const Value& value) {
    for (const Sbp& sbp : value.nd_sbp)
      if (sbp.is_partial()) return true;
    return false;
  }

  // The only node that reads a value which the step does not return.
  std::optional<size_t> only_reader(ValueId id) const {
    const std::span<const size_t> readers = uses_.readers(id);
    if (readers.size() != 1 || uses_.num_uses(id) != 1) return {};
    return readers[0];
  }

  void join_result(size_t index) {
    const std::optional<size_t> cast = only_reader(node(index).outputs[0]);
    if (!cast || node(*cast).op != &ops::kCast || !runs_alike(node(index), node(*cast)) ||
        !is_supported(node(index), 0)) {
      return;
    }
    const ValueId result = node(*cast).outputs[0];
    if (!is_narrow(graph_.value(result).dtype)) return;
    Node& norm = graph_.nodes[index];
    ops::NormAttrs own;
    std::memcpy(&own, norm.attrs.data(), sizeof(own));
    const ops::NarrowNormAttrs attrs{own.num_dims, own.eps, graph_.value(result).dtype};
    norm.attrs.resize(sizeof(attrs));
    std::memcpy(norm.attrs.data(), &attrs, sizeof(attrs));
    norm.op = &ops::kLayerNormNarrow;
    norm.outputs[0] = result;
    is_removed_[*cast] = true;
  }

  void join_gradient(size_t index) {
    const ValueId dy = node(index).inputs[0];
    const int64_t maker = uses_.maker(dy);
    if (maker < 0 || only_reader(dy) != index || !is_supported(node(index), 1)) return;
    const Node& cast = node(static_cast<size_t>(maker));
    if (cast.op != &ops::kCast || !runs_alike(cast, node(index))) return;
    const Value& source = graph_.value(cast.inputs[0]);
    if (!is_narrow(source.dtype) || has_partial(source)) return;
    Node& gradient = graph_.nodes[index];
    gradient.op = &ops::kLayerNormNarrowBackward;
    gradient.inputs[0] = cast.inputs[0];
    is_removed_[static_cast<size_t>(maker)] = true;
  }

  Graph& graph_;
  GraphUses uses_;
  std::vector<bool> is_removed_;
};

}  // namespace

int64_t fuse_norm_casts(Graph& graph) {
  return Fusion(graph).run();
}

}  // namespace flow::graph
