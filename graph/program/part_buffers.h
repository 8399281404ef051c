// The buffers in one rank's program for values and for their parts in micro-batches, and the
// messages that bring parts from blocks on other ranks. Micro-batches of equal sizes share buffers
// and steps, so a micro-batch `m` here is the first of its size (BatchCut::like).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
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

  // Copies the part of a split value into the buffer of the whole.
  void collect(ValueId id, BufferId target, int64_t m);

  // Returns a view of the elements [begin, begin + size) along a dim. It has the layout of `meta`
  // with the strides of the base.
  BufferId rows(BufferId base, MetaPtr meta, int64_t dim, int64_t begin);
  // The same; begins[i] is the begin in micro-batch i.
  BufferId rows(BufferId base, MetaPtr meta, int64_t dim, const std::vector<int64_t>& begins);
  // Returns a view of a box of the logical index space that `base`, a part of a global value,
  // holds.
  BufferId box(BufferId base, const Box& box);

  // The pieces of the value that the rank's part in any micro-batch consists of.
  std::vector<Piece> pieces(ValueId id, const Sbp& sbp, int64_t micro_batch) const;

  // Returns a number for each micro-batch: number(i) for those of m's size, otherwise 0.
  template <class Number>
  std::vector<int64_t> by_micro_batch(int64_t m, const Number& number) const {
    std::vector<int64_t> numbers(static_cast<size_t>(cut_.num_micro_batches), 0);
    for (int64_t i = m; i < cut_.num_micro_batches && cut_.batch.like(i) == m; ++i)
      numbers[static_cast<size_t>(i)] = number(i);
    return numbers;
  }

  // ---- edges between blocks

  // Sends the elements of the edge's value that this rank has, or keeps them if this rank is the
  // receiver.
  void send(size_t edge, int64_t m);

  // The blocks of a receive: the one that starts it, and the one that waits for the message and
  // puts it in its place.
  struct Receive {
    BlockIndex start = -1;
    BlockIndex end = -1;
  };

  // Adds the blocks of each message of the edge that this rank receives.
  void add_receives(size_t edge, int64_t m);

  // Makes the value of what was received.
  void arrive(size_t edge, int64_t m);

  // Adds a block for each send that was added, which waits for it.
  void add_waits();

  // The blocks that wait for the sends of an edge.
  std::vector<BlockIndex> waits_of(size_t edge, int64_t m) const;

  // The receive of the edge's message from a rank.
  const Receive& receive_from(size_t edge, int64_t m, int64_t from) const {
    return receives_.at({edge, m, from});
  }

 private:
  struct Send {
    size_t edge = 0;
    int64_t m = 0;
    size_t step = 0;
    BlockIndex wait = -1;
  };

  // Redistributes a buffer to the layout of `value` among the ranks that have it: adds up partial
  // values, or makes a partial value.
  BufferId lay_out(const Node& node, BufferId buffer, const Value& value);
  // Copies a box, received or from this rank, to its place in the edge's value.
  void place(size_t edge, int64_t m, const Box& part, BufferId source);
  // The buffer that the edge's boxes are copied to.
  BufferId& arrived(size_t edge, int64_t m);
  // Adds a buffer that all micro-batches share.
  BufferId add_shared(MetaPtr meta);

  // Of micro-batch 0.
  int64_t tag(size_t edge) const { return static_cast<int64_t>(edge) * cut_.num_micro_batches; }

  const Node& node_of(size_t edge) const { return graph_.nodes[order_.edges[edge].node]; }

  const Graph& graph_;
  const Order& order_;
  const MicroBatchCut& cut_;  // of order_
  ProgramBuilder& builder_;
  int64_t rank_;
  IdMap<ValueId, MetaPtr> whole_metas_;
  IdMap<ValueId, BufferId> whole_;
  std::map<int64_t, IdMap<ValueId, BufferId>> parts_;  // by the first micro-batch of each size
  // The parts taken from B values, by value, dim and micro-batch.
  std::map<std::tuple<ValueId, int64_t, int64_t>, BufferId> taken_;
  std::vector<Send> sends_;
  std::map<std::tuple<size_t, int64_t, int64_t>, Receive> receives_;  // edge, m, sender
  std::map<std::pair<size_t, int64_t>, BufferId> arrived_;  // of values that become partial
};

}  // namespace flow::graph
