// Micro-batching as a placement axis in time: its "ranks" run one after another. Every value of a
// traced step gets S, B or P along it from the ops' ordinary signature tables.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir.h"

namespace flow::pipeline {

// When a node runs: once before the micro-batches, once for each, or once after all.
enum class NodeTime : uint8_t { kBefore, kEach, kAfter };

struct MicroBatchPlan {
  int64_t num_micro_batches = 1;
  // By value. S(d): each micro-batch has its balanced part of dim d. P: each has an addend, the sum
  // over micro-batches is the value. B: the same at all times.
  std::vector<Sbp> value_sbp;
  // By node.
  std::vector<NodeTime> node_time;
};

// Graph inputs are S(0), but for scalars and the last `num_whole`, which are B as captures are. A
// value that is P along the axis and used by an op without a signature for it is summed first, so
// that op runs after all micro-batches. Throws Unsupported naming op and user line when an op mixes
// samples: it needs a split value and has no signature.
MicroBatchPlan plan_micro_batches(const graph::Graph& graph, int64_t num_micro_batches,
                                  size_t num_whole = 0);

}  // namespace flow::pipeline
