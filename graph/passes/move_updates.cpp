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

// Updates of fewer bytes wait for others on a CUDA device, where a launch for each would cost more
// than the update. So many bytes of gradients may wait.
constexpr int64_t kJoinedBytes = int64_t{16} << 20;

class Move {
 public:
  explicit Move(Graph& graph) : graph_(graph), uses_(graph), root_(memory_roots(graph)) {
    for (size_t i = 0; i < graph.nodes.size(); ++i) {
      const Node& node = graph.nodes[i];
      if (node.phase == Phase::kForward || node.op->has_effect) first_place_ = i + 1;
    }
  }

  int64_t run() {
    std::vector<size_t> places = choose_places(std::vector<size_t>(graph_.nodes.size(), 0));
    const std::vector<size_t> joined = joined_on_devices(places);
    if (!joined.empty()) places = choose_places(joined);
    std::vector<std::vector<size_t>> placed(graph_.nodes.size());  // by the node that they precede
    int64_t num_moved = 0;
    for (size_t i = 0; i < places.size(); ++i) {
      placed[places[i]].push_back(i);
      num_moved += places[i] == i ? 0 : 1;
    }
    if (num_moved > 0) reorder(placed);
    return num_moved;
  }

 private:
  // The first possible place of each node, but none before that in `least`.
  std::vector<size_t> choose_places(const std::vector<size_t>& least) {
    std::vector<size_t> places;
    exists_at_.assign(graph_.values.size(), 0);
    read_until_.assign(graph_.values.size(), 0);
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const size_t place = may_move(node) ? std::min(std::max(earliest(node), least[i]), i) : i;
      const size_t next = place == i ? i + 1 : place;
      places.push_back(place);
      for (const ValueId input : node.inputs) {
        if (input == kNoValue) continue;
        size_t& read = read_until_[root_[input]];
        read = std::max(read, next);
      }
      for (const ValueId output : node.outputs)
        exists_at_[output] = next;
    }
    return places;
  }

  // Groups of updates on CUDA devices. A group has one place, the last one of its updates, because
  // neighbours run in one launch (JoinLaunches). Returns the place of each node's group, 0 for
  // nodes without one; empty: there are no groups.
  std::vector<size_t> joined_on_devices(const std::vector<size_t>& places) const {
    std::vector<size_t> updates;
    for (size_t i = 0; i < places.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const bool is_update = node.op->mutates != 0 && may_move(node);
      if (is_update && graph_.value(node.inputs[0]).device == DeviceType::kCuda)
        updates.push_back(i);
    }
    if (updates.empty()) return {};
    std::stable_sort(updates.begin(), updates.end(),
                     [&](size_t a, size_t b) { return places[a] < places[b]; });
    std::vector<size_t> joined(places.size(), 0);
    size_t first = 0;
    int64_t bytes = 0;
    for (size_t k = 0; k < updates.size(); ++k) {
      const Value& updated = graph_.value(graph_.nodes[updates[k]].inputs[0]);
      bytes += updated.shape.numel() * static_cast<int64_t>(dtype_size(updated.dtype));
      if (bytes < kJoinedBytes && k + 1 < updates.size()) continue;
      for (; first <= k; ++first)
        joined[updates[first]] = places[updates[k]];
      bytes = 0;
    }
    return joined;
  }

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
