#include "graph/passes/common_subexpressions.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/hash.h"
#include "graph/ir/memory_roots.h"
#include "graph/passes/value_map.h"

namespace flow::graph {

namespace {

size_t hash_of(const Node& node) {
  Hasher hasher;
  hasher.add(node.op);
  for (const ValueId input : node.inputs)
    hasher.add(static_cast<uint64_t>(input));
  if (node.op->attrs != nullptr) hasher.add(node.op->attrs->hash(node.raw_attrs(), true));
  return hasher.value();
}

// Layouts of outputs follow from those of the inputs, except for ops that choose them.
bool same_outputs(const Graph& graph, const Node& a, const Node& b) {
  for (size_t i = 0; i < a.outputs.size(); ++i) {
    if (!(graph.value(a.outputs[i]) == graph.value(b.outputs[i]))) return false;
  }
  return true;
}

bool computes_the_same(const Graph& graph, const Node& a, const Node& b) {
  return a.op == b.op && a.inputs == b.inputs && a.phase == b.phase && a.stage == b.stage &&
         a.draw == b.draw && a.guard == b.guard &&
         (a.op->attrs == nullptr || a.op->attrs->equal(a.raw_attrs(), b.raw_attrs(), true)) &&
         same_outputs(graph, a, b);
}

}  // namespace

int64_t merge_common_subexpressions(Graph& graph) {
  ValueMap map(graph);
  const std::unordered_set<ValueId> written = written_roots(graph);
  std::unordered_multimap<size_t, size_t> seen;  // nodes by hash
  int64_t merged = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    map.apply_to_inputs(node);
    // A value that is written in place must not be shared: the node that writes it may have another
    // input that computes the same.
    const bool is_written = std::any_of(node.outputs.begin(), node.outputs.end(),
                                        [&](ValueId id) { return written.contains(id); });
    if (node.op->mutates != 0 || is_written || node.op->has_effect || node.is_transient) continue;
    const size_t hash = hash_of(node);
    const auto [begin, end] = seen.equal_range(hash);
    bool is_new = true;
    for (auto known = begin; known != end && is_new; ++known) {
      const Node& other = graph.nodes[known->second];
      if (!computes_the_same(graph, other, node)) continue;
      for (size_t j = 0; j < node.outputs.size(); ++j)
        map.replace(node.outputs[j], other.outputs[j]);
      is_new = false;
      ++merged;
    }
    if (is_new) seen.emplace(hash, i);
  }
  map.apply_to_results(graph);
  return merged;
}

}  // namespace flow::graph
