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
// before them and the waits for sends whose receiver's action comes before them. With
// Order::receives_early, the receives of an action start before the action that precedes it.
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

  // `next`: the rank's next action, if its receives start before this one.
  void add_action(size_t position, const BlockAction* next);
  // Starts to receive the elements of the edge's value that this rank needs.
  void start_receives(size_t edge, int64_t micro_batch);
  // Receives them.
  void receive(size_t edge, int64_t micro_batch);
  // Adds runs of the first or the second block of receives, of the edge's messages and of those
  // that their senders send before them: messages from one rank are received in the order in which
  // it sends them. `num_added` counts them by sender.
  void add_receives(size_t edge, int64_t micro_batch, BlockIndex PartBuffers::Receive::*block,
                    std::map<int64_t, size_t>& num_added);
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
  std::vector<Send> sends_;  // not yet waited for
  // The position of a message among those of its sender, by edge, micro-batch and sender.
  std::map<std::tuple<size_t, int64_t, int64_t>, size_t> numbers_;
  std::map<int64_t, size_t> num_started_, num_received_;  // by sender
};

}  // namespace flow::graph
