// Builds the program of one rank step by step.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/kernel_call.h"
#include "graph/ir/ir.h"
#include "graph/program/program.h"

namespace flow::graph {

// Makes the buffers and steps of one rank, and decides for each node whether it becomes a kernel, a
// view or nothing.
class ProgramBuilder {
 public:
  ProgramBuilder(int64_t rank, const KernelTable& kernels);

  // The steps that follow belong to a new block; the one before it ends.
  BlockIndex begin_block();

  // The block of the steps that follow; -1 until there is one.
  BlockIndex current_block() const { return static_cast<BlockIndex>(program_.blocks.size()) - 1; }

  // The runs that follow belong to part `name`.
  void begin_part(std::string name) {
    program_.parts.push_back({program_.runs.size(), std::move(name)});
  }

  // Adds a run of a block; nothing if the block has no steps.
  void add_run(const BlockRun& run);

  // The buffers that follow have a value of their own for each micro-batch, or one for all.
  void set_per_micro_batch(bool is_per_micro_batch) { is_per_micro_batch_ = is_per_micro_batch; }

  // Returns the table of these numbers by micro-batch, or kNoTable if all of them are 0.
  TableId add_table(std::vector<int64_t> numbers);

  void set_num_draws(int64_t count) { program_.num_draws = count; }

  // Whether the redistributions that follow may be in the background; at first they may.
  void allow_background(bool is_allowed) { allows_background_ = is_allowed; }

  // The kernels that follow run only if this bool scalar is true; kNoBuffer: always.
  void set_guard(BufferId guard) { guard_ = guard; }

  // Adds a buffer in the arena, or one without memory if this rank holds no part.
  BufferId add_buffer(MetaPtr meta);
  BufferId add_external(MetaPtr meta);
  // Adds the steps of `node`, which reads `inputs`. `metas` are the metas of the outputs on this
  // rank. If the op always writes in place, its outputs are its input buffers. Returns the output
  // buffers.
  std::vector<BufferId> add_node(const Node& node, const std::vector<BufferId>& inputs,
                                 const std::vector<MetaPtr>& metas);
  // The form for a random node whose metas do not tell whether all ranks draw the same values.
  std::vector<BufferId> add_node(const Node& node, const std::vector<BufferId>& inputs,
                                 const std::vector<MetaPtr>& metas, bool draws_globally);

  // Lets the nodes that follow write their result over this input if it has the result's layout and
  // memory in the arena; -1: no input. Requires: nothing reads the input afterwards.
  void set_overwritten(int64_t input) { overwritten_ = input; }

  // Adds a view of `base` that begins at `offset` elements, and in a micro-batch at those of the
  // table after them.
  BufferId add_view(BufferId base, MetaPtr meta, int64_t offset, TableId begins = kNoTable);

  // The buffer's meta is the part of these ranks, by micro-batch.
  void set_holders(BufferId buffer, TableId holders) { program_.buffer(buffer).holders = holders; }

  // add_copy: target = source, of the same shape. add_sum: target += source.
  void add_copy(BufferId source, BufferId target);
  void add_sum(BufferId source, BufferId target);
  // add_sum, but in the first run of the block the target becomes the source.
  void add_to_sum(BufferId source, BufferId target);
  // Adds the sums that wait and that make these buffers. The members of a group form the same
  // buckets only if each of them calls this, also if it has nothing else to do with the buffers.
  void complete(const std::vector<BufferId>& buffers);
  // Start a message and return its step, for which a step of the same micro-batch has to wait.
  size_t add_send(BufferId buffer, int64_t peer, int64_t tag, const Node& node);
  size_t add_recv(BufferId buffer, int64_t peer, int64_t tag, const Node& node);
  // Waits for what a step started.
  void add_wait(size_t started);
  // Returns the buffer in strided form, and in contiguous memory. It is converted or copied if
  // necessary.
  BufferId strided(BufferId buffer);
  BufferId contiguous(BufferId buffer);

  const Buffer& buffer(BufferId id) const { return program_.buffers[static_cast<size_t>(id)]; }

  // Plans the memory and returns the program.
  Program finish();

 private:
  void add_in_place(const OpDef& op, const void* attrs, BufferId target, BufferId source);
  // True if the current block may read a buffer that was made in a block: in the same run, or
  // because the block that made the buffer's source always comes before.
  bool may_read(BufferId twin, BufferId source) const;

  // A redistribution that only adds up contiguous addends, and waits for others of its group.
  struct PendingSum {
    Step step;  // with a CollectiveStep
    std::vector<int64_t> ranks;
  };

  // Nearly all steps are added here. What a step uses is summed before it, and complete.
  void add_step(Step step);
  // Adds a redistribution, at once or together with later ones.
  void add_collective(Step step, TransferStart start);
  // Adds a step that sums or redistributes, after those in the background whose buffers it uses.
  void push_collective(Step step, bool in_background);
  // Ends the collectives in the background that use the step's buffers.
  void end_used(const Step& step);
  // Ends the collective in the background with this index in running_.
  void end_running(size_t index);
  // Nothing of the block may be pending or in the background when it ends.
  void end_communication();
  // Whether a kernel would change what it reads from `read` when it writes `written`: they show
  // some memory in common, and are not the same view.
  bool overlaps(BufferId read, BufferId written) const;
  // Where a buffer begins in its root, in elements; none if that depends on the micro-batch.
  std::optional<int64_t> offset_in_root(BufferId id) const;
  // The inputs of an op that writes in place, where those that overlap a written one are copies.
  std::vector<BufferId> without_overlaps(const OpDef& op, std::vector<BufferId> inputs);
  // Whether a result with this meta may be written over the buffer.
  bool can_overwrite(BufferId id, MetaPtr result) const;
  // The ranks whose addends a redistribution adds up; empty if it cannot be part of a bucket.
  std::vector<int64_t> summed_ranks(const Step& step) const;
  // True if `step` reads what `other` writes, or writes what it reads or writes.
  bool must_follow(const Step& step, const Step& other) const;
  // Adds the sums that wait and that the step uses, together with others of their groups.
  void flush_used(const Step& step);
  // Adds the sums, or means, that wait and have the group, dtype and device of one among them, as
  // one bucket.
  void flush_like(size_t pending, bool in_background);
  void add_bucket(std::span<PendingSum> sums, bool in_background);
  // Lets addends that only a bucket reads last be made in the bucket's memory.
  void share_bucket_memory();
  // The buffer whose memory has exactly the elements of an addend; kNoBuffer if there is none that
  // could move.
  BufferId movable_addend(BufferId addend, BufferId bucket) const;
  // Adds the buffers of values of which this rank holds no part.
  std::vector<BufferId> add_absent(const std::vector<MetaPtr>& metas);

  const KernelTable& kernels_;
  Program program_;
  std::vector<PendingSum> pending_;
  std::vector<size_t> running_;  // the steps in the background that no step has waited for
  bool allows_background_ = true;
  std::vector<BlockIndex> made_in_;     // by buffer: the block that it was added in
  std::map<BufferId, BufferId> twins_;  // the strided forms of blocked buffers
  std::map<std::vector<int64_t>, TableId> tables_;
  bool is_per_micro_batch_ = false;
  BufferId guard_ = kNoBuffer;
  int64_t overwritten_ = -1;
  StepTurn turn_ = StepTurn::kEvery;
};

}  // namespace flow::graph
