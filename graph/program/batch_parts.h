// The parts of a batch that micro-batches have, and where they are in the shards of ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor_meta.h"
#include "graph/ir/ir.h"

namespace flow::graph {

// How the samples of a batch are divided among micro-batches. Every rank's shard is cut, so that no
// data moves: micro-batch m has the m-th balanced part of each run. Its samples are numbered in the
// order of the runs.
struct BatchCut {
  int64_t num_samples = 0;  // 0: no input has samples
  int64_t num_micro_batches = 1;
  // The shards of the value that is sharded finest of those that exist whole.
  std::vector<Range> runs;

  // The micro-batch's ranges of samples, one for each run.
  std::vector<Range> samples_of(int64_t micro_batch) const;
  int64_t size_of(int64_t micro_batch) const;

  // The first micro-batch whose parts of all runs are as long as those of this one. What a
  // micro-batch computes depends on it, apart from where its samples are.
  int64_t like(int64_t micro_batch) const;
};

// Returns a micro-batch's part of `value`, whose dim `dim` holds the samples in order.
Value part_of(const BatchCut& cut, const Value& value, int64_t dim, int64_t micro_batch);

// The elements along the dim that are both in a rank's shard of the whole and in its shard of a
// part.
struct Piece {
  int64_t in_whole = 0;
  int64_t in_part = 0;
  int64_t size = 0;
  friend bool operator==(const Piece&, const Piece&) = default;
};

// Returns the pieces that make up `part` (a meta of part_of on the same rank), in order. Returns
// none if `whole` does not hold all of it.
std::vector<Piece> pieces_of(const BatchCut& cut, const TensorMeta& whole, const TensorMeta& part,
                             int64_t dim, int64_t micro_batch);

}  // namespace flow::graph
