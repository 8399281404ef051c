// Which work of backward can wait until a transfer has started, so that it hides the transfer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "graph/ir/graph_uses.h"
#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// Finds work for one transfer after the other, in program order. The graph must outlive it and stay
// as it is.
class DelayableWork {
 public:
  DelayableWork(const Graph& graph, const GraphUses& uses);

  // Nodes of backward in [from, place), and updates of optimizers there, that the node `transfer`
  // does not need and nothing before `place` reads, in program order: the last ones, until their
  // predicted time reaches `wanted_us`. They may run just before the node `place`, after the
  // transfer has started, in the order given. None is chosen whose delay would raise the predicted
  // peak of memory of the stage.
  std::vector<size_t> find(size_t transfer, size_t from, size_t place, double wanted_us);

 private:
  struct Search;

  bool may_wait(const Node& node, int64_t stage) const;
  // The predicted bytes that a rank of the stage holds while each node runs, without what lives
  // through the whole step.
  const std::vector<int64_t>& live_bytes(int64_t stage);

  const Graph& graph_;
  const GraphUses& uses_;
  IdMap<ValueId, ValueId> root_;
  IdMap<ValueId, int64_t> bytes_;      // of the largest part of a root that a node makes
  IdMap<ValueId, size_t> read_until_;  // the index after the last reader of a root or its views
  std::map<int64_t, std::vector<int64_t>> live_;  // by stage: live_bytes
};

}  // namespace flow::graph
