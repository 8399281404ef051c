// Which node makes each value of a graph, and which nodes read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// Found by one walk through a graph, which must outlive it; valid as long as the graph's nodes,
// outputs and captures stay as they are. Immutable.
class GraphUses {
 public:
  explicit GraphUses(const Graph& graph);

  // The index of the node that makes the value; -1 for inputs and captures.
  int64_t maker(ValueId id) const { return maker_[id]; }

  // The node that makes the value; null for inputs, captures and kNoValue.
  const Node* maker_node(ValueId id) const {
    return id == kNoValue || maker_[id] < 0 ? nullptr
                                            : &graph_.nodes[static_cast<size_t>(maker_[id])];
  }

  // Whether a node makes the value in memory of its own: neither a view of another value nor one
  // that is written in place.
  bool has_own_memory(ValueId id) const {
    const Node* maker = maker_node(id);
    return maker != nullptr && maker->op->view == nullptr && maker->op->mutates == 0;
  }

  // The nodes that read the value, in program order; one that reads it twice is listed twice.
  std::span<const size_t> readers(ValueId id) const {
    const ReaderRange range = ranges_[id];
    return {readers_.data() + range.begin, range.size};
  }

  // How often the value is read, returned or written back.
  int64_t num_uses(ValueId id) const {
    return static_cast<int64_t>(ranges_[id].size) + num_results_[id];
  }

 private:
  // Which of readers_ belong to a value.
  struct ReaderRange {
    size_t begin = 0;
    size_t size = 0;
  };

  const Graph& graph_;
  IdMap<ValueId, int64_t> maker_;
  IdMap<ValueId, ReaderRange> ranges_;
  IdMap<ValueId, int64_t> num_results_;
  std::vector<size_t> readers_;
};

}  // namespace flow::graph
