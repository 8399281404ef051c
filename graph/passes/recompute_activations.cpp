#include "graph/passes/recompute_activations.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/env.h"
#include "graph/ir/graph_uses.h"
#include "graph/passes/node_cost.h"
#include "ops/elementwise/row_table.h"

namespace flow::graph {

namespace {

// Smaller results stay in the caches until backward, or are a small part of a step's memory.
constexpr int64_t kLeastBytes = int64_t{8} << 20;

class Recomputation {
 public:
  explicit Recomputation(Graph& graph) : graph_(graph), uses_(graph) {}

  int64_t run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (is_wanted(i)) plan(i);
    }
    insert();
    return num_added_;
  }

 private:
  bool is_backward(size_t node) const { return graph_.nodes[node].phase == Phase::kBackward; }

  // True if the node's result is large and backward needs it and the node's input as well.
  bool is_wanted(size_t index) const {
    const Node& node = graph_.nodes[index];
    const bool is_activation = node.op == &ops::op_of<ops::Gelu>() ||
                               node.op == &ops::op_of<ops::GeluTanh>() ||
                               node.op == &ops::op_of<ops::Silu>();
    if (!is_activation || node.phase != Phase::kForward || node.guard >= 0) return false;
    const int64_t bytes = bytes_of(graph_.value(node.outputs[0]));
    const std::span<const size_t> readers = uses_.readers(node.outputs[0]);
    const bool is_returned =
        uses_.num_uses(node.outputs[0]) != static_cast<int64_t>(readers.size());
    if (bytes < least_bytes_ || is_returned) return false;
    const size_t first = first_backward(readers);
    const std::span<const size_t> of_input = uses_.readers(node.inputs[0]);
    return first < graph_.nodes.size() &&
           std::any_of(of_input.begin(), of_input.end(),
                       [&](size_t reader) { return is_backward(reader) && reader > first; });
  }

  size_t first_backward(std::span<const size_t> readers) const {
    const auto first = std::find_if(readers.begin(), readers.end(),
                                    [&](size_t reader) { return is_backward(reader); });
    return first == readers.end() ? graph_.nodes.size() : *first;
  }

  void plan(size_t index) {
    Node copy = graph_.nodes[index];
    const ValueId result = copy.outputs[0];
    copy.phase = Phase::kBackward;
    copy.is_transient = true;
    copy.outputs[0] = graph_.add_value(Value(graph_.value(result)));
    for (const size_t reader : uses_.readers(result)) {
      if (!is_backward(reader)) continue;
      std::replace(graph_.nodes[reader].inputs.begin(), graph_.nodes[reader].inputs.end(), result,
                   copy.outputs[0]);
    }
    const size_t before = first_backward(uses_.readers(result));
    added_[before].push_back(std::move(copy));
    ++num_added_;
  }

  void insert() {
    if (added_.empty()) return;
    std::vector<Node> nodes;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const auto before = added_.find(i);
      if (before != added_.end()) {
        for (Node& node : before->second)
          nodes.push_back(std::move(node));
      }
      nodes.push_back(std::move(graph_.nodes[i]));
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  GraphUses uses_;
  int64_t least_bytes_ = least_recomputed_bytes();
  std::map<size_t, std::vector<Node>> added_;  // by the node that they come before
  int64_t num_added_ = 0;
};

}  // namespace

int64_t least_recomputed_bytes() {
  return env_int("FLOW_RECOMPUTE_LEAST_BYTES", kLeastBytes);
}

int64_t recompute_activations(Graph& graph) {
  return Recomputation(graph).run();
}

}  // namespace flow::graph
