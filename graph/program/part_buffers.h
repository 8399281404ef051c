// The buffers in one rank's program for values and for their parts in micro-batches.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "graph/program/builder.h"
#include "graph/program/order.h"

namespace flow::graph {

class PartBuffers {
 public:
  // Graph, cut and builder must outlive it.
  PartBuffers(const Graph& graph, const MicroBatchCut& cut, ProgramBuilder& builder, int64_t rank);

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

 private:
  const Graph& graph_;
  const MicroBatchCut& cut_;
  ProgramBuilder& builder_;
  int64_t rank_;
  IdMap<ValueId, MetaPtr> whole_metas_;
  IdMap<ValueId, BufferId> whole_;
  std::vector<BufferId> parts_;  // by value and micro-batch
  // The parts taken from B values, by value, dim and micro-batch.
  std::map<std::tuple<ValueId, int64_t, int64_t>, BufferId> taken_;
};

}  // namespace flow::graph
