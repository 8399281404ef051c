// The order in which the blocks of a rank's program run.
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
#include "graph/program/part_buffers.h"

namespace flow::graph {

// Adds the runs of a pipelined program: the actions in which a rank takes part, with the receives
// before them and the waits for sends whose receiver's action comes before them.
class BlockRuns {
 public:
  // All of them must outlive it. The blocks must have been added.
  BlockRuns(const Order& order, int64_t rank, const PartBuffers& buffers, ProgramBuilder& builder);

  // The block of the actions with a block of the order, for the micro-batches of m's size.
  void set_block(BlockId block, int64_t m, BlockIndex index) { blocks_[{block, m}] = index; }

  // Runs all actions, then receives what is needed after them and waits for the last sends.
  void add_actions();

  // Runs a block that runs once.
  void add_once(BlockIndex block) { builder_.add_run({.block = block}); }

  // For each micro-batch in order: runs its block, by the first micro-batch of each size.
  void add_each(const std::map<int64_t, BlockIndex>& blocks);

 private:
  struct Send {
    BlockIndex wait = -1;
    int32_t micro_batch = 0;
    size_t received_at = 0;
  };

  void add_action(size_t position);
  // Receives the elements of the edge's value that this rank needs. Messages from one rank are
  // received in the order in which it sends them, so earlier ones are received first.
  void receive(size_t edge, int64_t micro_batch);
  void receive_next(int64_t from);
  // Waits for the sends whose receiver's action comes before `position` in the order of actions. In
  // any order of events, this never waits for something that happens later.
  void end_sends(size_t position);

  int64_t like(int64_t micro_batch) const { return order_.cut.batch.like(micro_batch); }

  const Order& order_;
  int64_t rank_;
  const PartBuffers& buffers_;
  ProgramBuilder& builder_;
  std::map<std::pair<BlockId, int64_t>, BlockIndex> blocks_;
  std::vector<std::vector<size_t>> edges_from_;  // by block: those on which this rank sends
  std::vector<size_t> edges_here_;               // those on which this rank receives
  std::set<BlockId> has_run_;
  std::vector<Send> sends_;                                  // not yet waited for
  std::map<int64_t, size_t> num_received_;                   // by sender
  std::set<std::tuple<size_t, int64_t, int64_t>> received_;  // edge, micro-batch, sender
};

}  // namespace flow::graph
