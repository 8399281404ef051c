// Updates during backward: Lv et al. 2023, "Full Parameter Fine-tuning for Large Language Models
// with Limited Resources".
#include "graph/passes/move_updates.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "boxing/redistribute_op.h"
#include "graph/ir/id_map.h"
#include "graph/ir/memory_roots.h"
#include "graph/passes/redistributions.h"

namespace flow::graph {

namespace {

class Move {
 public:
  explicit Move(Graph& graph)
      : graph_(graph),
        uses_(graph),
        root_(memory_roots(graph)),
        exists_at_(graph.values.size(), 0),
        read_until_(graph.values.size(), 0) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.phase == Phase::kForward || node.op->has_effect) first_place_ = i + 1;
    }
  }

  int64_t run() {
    std::vector<std::vector<size_t>> placed(graph_.nodes.size());  // by the node that they precede
    int64_t num_moved = 0;
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const size_t place = may_move(node) ? std::min(earliest(node), i) : i;
      const size_t next = place == i ? i + 1 : place;
      for (const ValueId input : node.inputs) {
        if (input == kNoValue) continue;
        size_t& read = read_until_[root_[input]];
        read = std::max(read, next);
      }
      for (const ValueId output : node.outputs)
        exists_at_[output] = next;
      placed[place].push_back(i);
      num_moved += place == i ? 0 : 1;
    }
    if (num_moved > 0) reorder(placed);
    return num_moved;
  }

 private:
  // The first place of an update among the nodes before it.
  size_t earliest(const Node& node) const {
    size_t place = first_place_;
    if (node.guard >= 0)
      place = std::max(place, exists_at_[graph_.outputs[static_cast<size_t>(node.guard)]]);
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      if (input == kNoValue) continue;
      place = std::max(place, exists_at_[input]);
      if ((node.op->mutates >> k & 1U) != 0) place = std::max(place, read_until_[root_[input]]);
    }
    return place;
  }

  // An update, or a view, such as that of a learning rate. Another node would keep its result in
  // memory until an update reads it.
  bool may_move(const Node& node) const {
    const bool takes_memory =
        node.op->mutates == 0 && (node.op->view == nullptr || node.op == &boxing::kRedistribute);
    if (node.phase != Phase::kUpdate || takes_memory || node.op->has_effect) return false;
    return std::none_of(node.inputs.begin(), node.inputs.end(),
                        [&](ValueId input) { return is_moved_between_ranks(input); });
  }

  // Whether the value, or what it shows a view of, is the result of a redistribution.
  bool is_moved_between_ranks(ValueId id) const {
    for (const Node* maker = uses_.maker_node(id); maker != nullptr;
         maker = uses_.maker_node(maker->inputs[0])) {
      if (is_transfer(*maker)) return true;
      if (maker->op->view == nullptr) return false;
    }
    return false;
  }

  // At a place, moved nodes come before the one that stood there, in their own order.
  void reorder(const std::vector<std::vector<size_t>>& placed) {
    std::vector<Node> nodes;
    for (size_t place = 0; place < placed.size(); ++place) {
      const std::vector<size_t>& here = placed[place];
      for (const size_t node : here) {
        if (node != place) nodes.push_back(std::move(graph_.nodes[node]));
      }
      if (!here.empty() && here.front() == place) nodes.push_back(std::move(graph_.nodes[place]));
    }
    graph_.nodes = std::move(nodes);
  }

  Graph& graph_;
  GraphUses uses_;
  IdMap<ValueId, ValueId> root_;  // the first value in the memory that the value may be in
  // A place is the index of the node before which an update comes: the first at which a value
  // exists, and the first after all nodes so far that read a value or views of it, by root.
  IdMap<ValueId, size_t> exists_at_;
  IdMap<ValueId, size_t> read_until_;
  size_t first_place_ = 0;
};

}  // namespace

int64_t move_updates(Graph& graph) {
  return Move(graph).run();
}

}  // namespace flow::graph
