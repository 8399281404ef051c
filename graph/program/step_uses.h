// How a step reads its values, found once for all ranks. Lowering uses it.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"
#include "graph/program/order.h"

namespace flow::graph {

// The graph and the order must outlive it. Immutable.
class StepUses {
 public:
  StepUses(const Graph& graph, const Order& order);

  // The node that makes the value; null for inputs and captures.
  const Node* maker_node(ValueId id) const { return uses_.maker_node(id); }

  // True if something reads the value, or a view of it, after the node has run. The node must then
  // not write the value in place.
  bool is_read_after(ValueId id, size_t node) const { return last_read_[id] != time_of(node); }

  // True if the node writes `id`, a view, in place, and something reads the memory later as it was:
  // anything but what puts the written view back where it was taken.
  bool damages_base(ValueId id, size_t node) const;

  // True if the addends that micro-batches make of the value are added up.
  bool is_summed(ValueId id) const { return is_summed_[id]; }

  // True if a node that runs for each micro-batch reads the value.
  bool is_read_in_parts(ValueId id) const { return is_read_in_parts_[id]; }

 private:
  // The position of the node in the program, for comparisons.
  size_t time_of(size_t node) const {
    return static_cast<size_t>(order_.cut.node_time[node]) * graph_.nodes.size() + node;
  }

  // All values whose memory has this root.
  std::vector<ValueId> values_in(ValueId root) const;
  // The written values and what is made of them by views, by writes, and by putting views back into
  // their base. `put_backs`: the nodes that put back what was a view of `root`.
  std::set<ValueId> made_of(std::vector<ValueId> written, ValueId root,
                            std::set<size_t>& put_backs) const;
  void read(ValueId id, size_t time);
  void read_whole(ValueId id, size_t time);

  const Graph& graph_;
  const Order& order_;
  GraphUses uses_;
  IdMap<ValueId, ValueId> root_;      // of the memory
  IdMap<ValueId, size_t> last_read_;  // by time_of()
  IdMap<ValueId, bool> is_summed_;
  IdMap<ValueId, bool> is_read_in_parts_;
};

}  // namespace flow::graph
