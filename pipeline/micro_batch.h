// Micro-batching as a placement axis in time: its "ranks" run one after another. Every value of a
// traced step gets S, B or P along it from the ops' ordinary signature tables.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/id_map.h"
#include "graph/ir/ir.h"
#include "pipeline/batch_cut.h"

namespace flow::pipeline {

// When a node runs: once before the micro-batches, in each of them, for each in order once all are
// done, or once after all.
enum class NodeTime : uint8_t { kBefore, kEach, kSequential, kAfter };

struct MicroBatchPlan {
  int64_t num_micro_batches = 1;
  BatchCut cut;
  // By value. S(d): each micro-batch has its part of dim d. P: each has an addend, the sum over
  // micro-batches is the value. B: the same at all times.
  graph::IdMap<graph::ValueId, Sbp> value_sbp;
  // By value that is B, too: each micro-batch has one of its own, as statistics of its samples are.
  graph::IdMap<graph::ValueId, bool> is_per_micro_batch;
  // By node.
  std::vector<NodeTime> node_time;
  // By node that runs for each micro-batch: how it takes its inputs. Of a value that is B it may
  // take parts.
  std::vector<std::vector<Sbp>> input_sbp;

  // By value: the same at all times, but made anew for each micro-batch.
  graph::IdMap<graph::ValueId, bool> is_made_each;

  const Sbp& sbp_of(graph::ValueId id) const { return value_sbp[id]; }

  bool is_per_micro_batch_of(graph::ValueId id) const { return is_per_micro_batch[id]; }
};

// Graph inputs are S(0), but for scalars and the last `num_whole`, which are B as captures are.
// Cutting is by samples, so a signature that holds for one sample a rank holds for any parts.
//
// Transient nodes run for each micro-batch where all who read them do: addends are moved one by
// one, and what is the same at all times is made again, so that neither is kept.
//
// A value that is P along the axis and used by an op without a signature for it is summed first, so
// that op runs after all micro-batches. Where a micro-batch needs its result (the number of targets
// that a mean is divided by), the sum is computed from the whole batch before the first one; it
// must depend on inputs and what the step does not write. Throws Unsupported, naming op and user
// line, where it does not, and when an op mixes samples: it needs a split value and has no
// signature.
//
// Batch norm takes the statistics of each micro-batch, over all ranks: they are the micro-batch's
// own (is_per_micro_batch), and what it writes of them is written in the order of micro-batches. A
// single micro-batch is the batch: any op takes it, and no sum has to be waited for.
MicroBatchPlan plan_micro_batches(const graph::Graph& graph, int64_t num_micro_batches,
                                  size_t num_whole = 0);

}  // namespace flow::pipeline
