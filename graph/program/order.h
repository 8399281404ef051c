// The order in which a step runs and its division into micro-batches. `pipeline` makes this data
// once for a step, and lower() reads it for every rank. A step without micro-batches has
// plain_order().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor_meta.h"
#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"
#include "graph/program/batch_parts.h"

namespace flow::graph {

// When a node runs: once before the micro-batches; in each of them; after all of them, once for
// each in order; or once after all.
enum class NodeTime : uint8_t { kBefore, kEach, kSequential, kAfter };

// The layout of every value along the micro-batch axis, whose "ranks" run one after another.
struct MicroBatchCut {
  int64_t num_micro_batches = 1;
  BatchCut batch;
  // S(d): each micro-batch has its part of dim d. P: each has an addend, and the value is their
  // sum. B: the value is the same for all micro-batches.
  IdMap<ValueId, Sbp> value_sbp;
  // True for a B value that each micro-batch has separately, such as statistics of its samples.
  IdMap<ValueId, bool> is_per_micro_batch;
  // By node.
  std::vector<NodeTime> node_time;
  // For each node that runs in every micro-batch: the layouts in which it takes its inputs. It may
  // take parts of a B value.
  std::vector<std::vector<Sbp>> input_sbp;
  // By node: true if its kernels in micro-batches need the positions of their parts in the batch.
  std::vector<bool> is_positional;
  // True for a value that is the same for all micro-batches but computed again for each.
  IdMap<ValueId, bool> is_made_each;

  const Sbp& sbp_of(ValueId id) const { return value_sbp[id]; }

  bool is_per_micro_batch_of(ValueId id) const { return is_per_micro_batch[id]; }

  // The first micro-batch of each size, ascending.
  std::vector<int64_t> sizes() const;
};

// A block is what one stage computes of one kind (forward, backward, weight gradients) for a
// micro-batch.
using BlockId = int32_t;
inline constexpr BlockId kAfterActions = -1;

// One block run for one micro-batch.
struct BlockAction {
  BlockId block = kAfterActions;
  int64_t micro_batch = 0;
  std::string name;  // "1F0"
};

// A box of the logical index space that `from` has and `to` needs. Both are the same rank if the
// receiver has the box already.
struct Message {
  int64_t from = 0;
  int64_t to = 0;
  Box box;
  friend bool operator==(const Message&, const Message&) = default;
};

// A redistribution from the ranks of one block to those of another. It is sent when `from` ends and
// has been received when `to` begins, or after all actions.
struct BlockEdge {
  size_t node = 0;
  BlockId from = kAfterActions;
  BlockId to = kAfterActions;
  // By the first micro-batch of each size (BatchCut::like). At most one message goes from a rank to
  // another.
  std::map<int64_t, std::vector<Message>> messages;
};

// A message as its receiver finds it.
struct IncomingMessage {
  size_t edge = 0;
  int64_t micro_batch = 0;
};

struct Order {
  MicroBatchCut cut;
  // The actions of all ranks in the order in which they are predicted to begin. Empty: all nodes
  // run once.
  std::vector<BlockAction> actions;
  std::vector<std::vector<size_t>> positions;  // of an action, by block and micro-batch
  std::vector<std::vector<int64_t>> ranks;     // by block, sorted; empty: every rank takes part
  std::vector<std::vector<size_t>> nodes;      // by block, in program order
  std::vector<size_t> nodes_after;  // nodes that run for each micro-batch after all actions
  std::vector<BlockEdge> edges;     // in order of nodes
  std::vector<int64_t> edge_of;     // by node: its edge, or -1
  std::vector<std::vector<size_t>> edges_to;  // by block: the edges that end there
  // By receiver, then by sender: the messages in the order in which they are sent.
  std::map<int64_t, std::map<int64_t, std::vector<IncomingMessage>>> incoming;
  // The receives of an action start when the rank's action before it begins.
  bool receives_early = true;
  // For each node whose attributes differ between micro-batches: the attributes by the first
  // micro-batch of each size.
  std::map<size_t, std::map<int64_t, std::vector<std::byte>>> attrs;

  // True if all nodes run once, in program order.
  bool is_plain() const { return actions.empty(); }

  bool takes_part(BlockId block, int64_t rank) const;

  // The position of the action that receives an edge's messages of a micro-batch.
  size_t received_at(const BlockEdge& edge, int64_t micro_batch) const;

  const std::vector<Message>& messages(const BlockEdge& edge, int64_t micro_batch) const {
    return edge.messages.at(cut.batch.like(micro_batch));
  }
};

// Returns the order of a step with one stage and one micro-batch.
Order plain_order(const Graph& graph);

// What the sender's ranks have of an edge's value in a micro-batch after partial values are added
// up, and what the receiver's ranks have before a partial value is made of it.
Value sent_value(const Graph& graph, const MicroBatchCut& cut, const BlockEdge& edge, int64_t m);
Value arrived_value(const Graph& graph, const MicroBatchCut& cut, const BlockEdge& edge, int64_t m);

// Returns micro-batch m's part of a value.
Value value_in(const Graph& graph, const MicroBatchCut& cut, ValueId id, int64_t m);

}  // namespace flow::graph
