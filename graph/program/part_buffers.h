// The buffers in one rank's program for values and for their parts in micro-batches, and the
// messages that bring parts from blocks on other ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "graph/program/builder.h"
#include "graph/program/order.h"

namespace flow::graph {

class PartBuffers {
 public:
  // Graph, order and builder must outlive it.
  PartBuffers(const Graph& graph, const Order& order, ProgramBuilder& builder, int64_t rank);

  int64_t rank() const { return rank_; }

  const Value& value(ValueId id) const { return graph_.value(id); }

  const Sbp& sbp_of(ValueId id) const { return cut_.sbp_of(id); }

  // The value of all micro-batches together; kNoBuffer until it is set.
  BufferId& whole(ValueId id) { return whole_[id]; }

  // Returns the value as an input of a node that runs once. On ranks that hold nothing of it, the
  // buffer has no memory.
  BufferId whole_input(ValueId id);

  // The part of the value in micro-batch m; kNoBuffer until it is made.
  BufferId& part(ValueId id, int64_t m);

  // Returns the value as an input of a node that runs for each micro-batch and takes it in layout
  // `sbp`.
  BufferId part_input(ValueId id, const Sbp& sbp, int64_t m);

  Value part_value(ValueId id, int64_t m) const;
  MetaPtr part_meta(ValueId id, int64_t m) const;

  MetaPtr whole_meta(ValueId id) const { return whole_metas_[id]; }

  bool is_held(ValueId id) const { return whole_meta(id)->is_held; }

  // Adds a micro-batch's addend to the sum. With `may_keep`, the first addend may become the sum
  // itself.
  void add_to_sum(ValueId id, BufferId addend, bool may_keep);

  // Copies the parts of all micro-batches of a split value into the buffer of the whole.
  void collect(ValueId id, BufferId target);

  // Returns a view of the elements [begin, begin + size) along a dim. It has the layout of `meta`
  // with the strides of the base.
  BufferId rows(BufferId base, MetaPtr meta, int64_t dim, int64_t begin);
  // Returns a view of a box of the logical index space that `base`, a part of a global value,
  // holds.
  BufferId box(BufferId base, const Box& box);

  std::vector<Piece> pieces(ValueId id, const Sbp& sbp, int64_t m) const;

  // ---- edges between blocks

  // Sends the elements of the edge's value that this rank has, or keeps them if this rank is the
  // receiver.
  void send(size_t edge, int64_t m);

  // Receives the elements of the edge's value that this rank needs. Messages from one rank are
  // received in the order in which it sends them, so earlier ones are received first.
  void receive(size_t edge, int64_t m);

  // Waits for the sends whose receiver's action comes before `position` in the order of actions. In
  // any order of events, this never waits for something that happens later.
  void end_sends(size_t position);

 private:
  struct Send {
    size_t step = 0;
    size_t received_at = 0;  // position in the order of actions
  };

  // The incoming messages of one sender, and how many of them have been received.
  struct Queue {
    const std::vector<IncomingMessage>* messages = nullptr;
    size_t received = 0;
  };

  // Redistributes a buffer to the layout of `value` among the ranks that have it: adds up partial
  // values, or makes a partial value.
  BufferId lay_out(const Node& node, BufferId buffer, const Value& value);
  // Copies a box, received or from this rank, to its place in the edge's value.
  void place(size_t edge, int64_t m, const Box& part, BufferId source);
  // The buffer that the edge's boxes are copied to.
  BufferId& arrived(size_t edge, int64_t m);
  void receive_next(int64_t from);

  int64_t tag(size_t edge, int64_t m) const {
    return static_cast<int64_t>(edge) * cut_.num_micro_batches + m;
  }

  const Node& node_of(size_t edge) const { return graph_.nodes[order_.edges[edge].node]; }

  const BlockEdge::Transfer& transfer(size_t edge, int64_t m) const {
    return order_.edges[edge].transfers[static_cast<size_t>(m)];
  }

  const Graph& graph_;
  const Order& order_;
  const MicroBatchCut& cut_;  // of order_
  ProgramBuilder& builder_;
  int64_t rank_;
  IdMap<ValueId, MetaPtr> whole_metas_;
  IdMap<ValueId, BufferId> whole_;
  std::vector<BufferId> parts_;  // by value and micro-batch
  // The parts taken from B values, by value, dim and micro-batch.
  std::map<std::tuple<ValueId, int64_t, int64_t>, BufferId> taken_;
  std::vector<Send> sends_;                                  // sends that are not yet waited for
  std::map<int64_t, Queue> incoming_;                        // by sender
  std::set<std::tuple<size_t, int64_t, int64_t>> received_;  // edge, micro-batch, sender
  std::map<std::pair<size_t, int64_t>, BufferId> arrived_;   // of values that become partial
};

}  // namespace flow::graph
