// When the buffers of a program are in use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "graph/ir/id_map.h"
#include "graph/program/program.h"

namespace flow::graph {

// Slices of the arena are in use from a position to another one. Positions number what happens in a
// run of the program: the steps of blocks that run once, and the runs of other blocks as wholes.
struct Lifetime {
  BufferId buffer;
  int64_t bytes;
  size_t first;  // the position of the first use
  size_t last;
  // Instead of a buffer: a frame's slice for a micro-batch, or the memory of what does not outlive
  // a run of its block, for a group of blocks.
  int32_t frame = -1;
  int32_t micro_batch = kNoMicroBatch;
  int32_t group = -1;
  int64_t begin = -1;  // in the arena; -1: not planned
  // Of a part of a buffer that the addends and sums of a bucket share: its first byte. All parts of
  // the buffer are listed, each with its own time.
  int64_t part_begin = 0;
  bool is_part = false;
};

// The blocks of a program in time.
class BlockTimes {
 public:
  explicit BlockTimes(const Program& program);

  size_t num_runs(BlockIndex block) const { return of(block).num_runs; }

  // Positions of the first step of the first and last run of a block.
  size_t first(BlockIndex block) const { return of(block).first; }

  size_t last(BlockIndex block) const { return of(block).last; }

  // The position of a micro-batch's run; kNever if it does not run the block.
  size_t at(BlockIndex block, int32_t micro_batch) const;

  // The number of micro-batches.
  int32_t num_micro_batches() const { return num_micro_batches_; }

  static constexpr size_t kNever = SIZE_MAX;

 private:
  struct Times {
    size_t num_runs = 0;
    size_t first = kNever;
    size_t last = 0;
    std::vector<std::pair<int32_t, size_t>> by_micro_batch = {};  // sorted
  };

  const Times& of(BlockIndex block) const { return times_[static_cast<size_t>(block)]; }

  std::vector<Times> times_;
  int32_t num_micro_batches_ = 0;
};

// The steps of one block that use a buffer, directly or through a view.
struct BufferUse {
  BlockIndex block = 0;
  size_t first_step = 0;  // of the program
  size_t last_step = 0;
};

// The program must outlive it. Buffers here are those that have memory of their own in the arena
// and are used. Buffers of which micro-batches have their own, and which a block that runs several
// times uses, are kept if several blocks use them, and transient otherwise.
class BufferUses {
 public:
  explicit BufferUses(const Program& program);

  const Program& program() const { return program_; }

  const BlockTimes& times() const { return times_; }

  std::span<const BufferId> kept() const { return kept_; }

  std::span<const BufferId> transient() const { return transient_; }

  bool is_moving(BufferId id) const { return is_kept_[id] || is_transient_[id]; }

  bool is_kept(BufferId id) const { return is_kept_[id]; }

  // In order of the blocks.
  const std::vector<BufferUse>& of(BufferId id) const { return uses_[id]; }

  // The steps of a block during which a buffer that it uses must keep its data: all from the
  // beginning on if another block of the micro-batch may have written it before, and all to the end
  // if another may read it later.
  std::pair<size_t, size_t> steps_in(BufferId id, BlockIndex block) const;

  // The lifetimes of slices of the arena, by first use, with the frames that the program has. Using
  // a view counts as using the buffer that it shows.
  std::vector<Lifetime> lifetimes() const;

  // The transient buffers of blocks whose runs alternate.
  std::span<const BufferId> group(int32_t index) const {
    return groups_[static_cast<size_t>(index)];
  }

  // The most bytes of a block's transient buffers outside of frames, and the step at which they
  // are in use; the block's first step if there are none.
  std::pair<int64_t, size_t> transient_peak(BlockIndex block) const;

 private:
  void find_parts();
  void find_uses();
  void use(BufferId id, BlockIndex block, size_t step);
  void classify();
  void find_groups();
  // True if each micro-batch runs `a` before `b`, or they are the same.
  bool precedes(BlockIndex a, BlockIndex b) const;
  Lifetime lifetime_of(BufferId id, const std::vector<BufferUse>& uses) const;
  void add_part_lifetimes(BufferId id, std::vector<Lifetime>& lives) const;
  void add_frame_lifetimes(std::vector<Lifetime>& lives) const;
  void add_group_lifetimes(std::vector<Lifetime>& lives) const;

  int64_t bytes_of(BufferId id) const {
    return static_cast<int64_t>(program_.buffer(id).meta->local_bytes());
  }

  const Program& program_;
  ProgramRuns runs_;
  BlockTimes times_;
  IdMap<BufferId, std::vector<BufferUse>> uses_;
  // Of the memory of buckets: the uses of each part, by its first byte.
  std::map<BufferId, std::map<int64_t, std::vector<BufferUse>>> parts_;
  std::vector<BufferId> fixed_, kept_, transient_;
  IdMap<BufferId, bool> is_kept_, is_transient_;
  std::vector<std::vector<BufferId>> groups_;
  std::vector<std::pair<size_t, size_t>> group_times_;                  // first and last position
  mutable std::map<std::pair<BlockIndex, BlockIndex>, bool> precedes_;  // known answers
};

// The most bytes in use at once, and the step at which they are.
struct MemoryPeak {
  int64_t bytes = 0;
  const Step* step = nullptr;
};

MemoryPeak memory_peak(const BufferUses& uses);

}  // namespace flow::graph
