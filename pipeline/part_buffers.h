// The buffers of one rank's program for values and their micro-batches.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "graph/program/builder.h"
#include "pipeline/micro_batch.h"

namespace flow::pipeline {

class PartBuffers {
 public:
  // All must outlive it. Values are those of the graph and of its micro-batches as planned.
  PartBuffers(const graph::Graph& graph, const MicroBatchPlan& plan, graph::ProgramBuilder& builder,
              int64_t rank);

  int64_t rank() const { return rank_; }

  const graph::Value& value(graph::ValueId id) const { return graph_.value(id); }

  const Sbp& sbp_of(graph::ValueId id) const { return plan_.sbp_of(id); }

  // All micro-batches together; kNoBuffer until it is set.
  graph::BufferId& whole(graph::ValueId id) { return whole_[static_cast<size_t>(id)]; }

  // As an input of a node that runs once: on ranks that hold nothing, a buffer that says so.
  graph::BufferId whole_input(graph::ValueId id);

  // What micro-batch m has of it; kNoBuffer until it is made.
  graph::BufferId& part(graph::ValueId id, int64_t m);

  // As an input of a node that runs for each micro-batch and takes it as `sbp`.
  graph::BufferId part_input(graph::ValueId id, const Sbp& sbp, int64_t m);

  graph::Value part_value(graph::ValueId id, int64_t m) const;
  MetaPtr part_meta(graph::ValueId id, int64_t m) const;
  MetaPtr whole_meta(graph::ValueId id) const;

  bool is_held(graph::ValueId id) const { return whole_meta(id)->is_held; }

  // Adds a micro-batch's addend; the first may become the sum itself where nobody else has it.
  void add_to_sum(graph::ValueId id, graph::BufferId addend, bool may_keep);

  // Copies all micro-batches of a split value to where the whole of it lies.
  void collect(graph::ValueId id, graph::BufferId target);

  // A view of the elements [begin, begin + size) along a dim; `meta`'s layout with the strides of
  // the base.
  graph::BufferId rows(graph::BufferId base, MetaPtr meta, int64_t dim, int64_t begin);
  // A view of a box of the logical index space that `base`, a part of a global value, holds.
  graph::BufferId box(graph::BufferId base, const Box& box);

  std::vector<Piece> pieces(graph::ValueId id, const Sbp& sbp, int64_t m) const;

 private:
  bool is_made_each(graph::ValueId id) const { return plan_.is_made_each[static_cast<size_t>(id)]; }

  const graph::Graph& graph_;
  const MicroBatchPlan& plan_;
  graph::ProgramBuilder& builder_;
  int64_t rank_;
  std::vector<graph::BufferId> whole_;  // by value
  std::vector<graph::BufferId> parts_;  // by value and micro-batch
  // Of values that are B: parts that were taken, by value, dim and micro-batch.
  std::map<std::tuple<graph::ValueId, int64_t, int64_t>, graph::BufferId> taken_;
};

}  // namespace flow::pipeline
