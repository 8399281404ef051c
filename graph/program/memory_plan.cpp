// Computes offsets in the arena from lifetimes by greedy first fit, by size or in order of first
// use, whichever takes less (Pisarchyk and Lee 2020, "Efficient memory management for deep neural
// net inference").
#include "graph/program/memory_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "core/error.h"
#include "graph/program/buffer_uses.h"

namespace flow::graph {

namespace {

int64_t aligned(int64_t bytes) {
  return (std::max<int64_t>(bytes, 1) + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// A part of what is placed at one offset, with its own time.
struct Piece {
  int64_t begin = 0;  // from the offset
  int64_t end = 0;
  size_t first = 0;
  size_t last = 0;
};

// Memory in which slices are placed, each for a time.
class Space {
 public:
  // The lowest offset at which all pieces are free for their times.
  int64_t lowest_free(std::span<const Piece> pieces) const {
    int64_t offset = 0;
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (const Piece& piece : pieces) {
        const int64_t free = lowest_free(piece, offset);
        has_moved = has_moved || (free != offset && pieces.size() > 1);
        offset = free;
      }
    }
    return offset;
  }

  int64_t lowest_free(int64_t bytes, size_t first, size_t last) const {
    return lowest_free({0, aligned(bytes), first, last}, 0);
  }

  void take(int64_t offset, const Piece& piece) {
    const int64_t begin = offset + piece.begin, end = offset + piece.end;
    const auto at = std::find_if(placed_.begin(), placed_.end(),
                                 [&](const Piece& p) { return p.begin > begin; });
    placed_.insert(at, {begin, end, piece.first, piece.last});
    bytes_ = std::max(bytes_, aligned(end));
  }

  void take(int64_t offset, int64_t bytes, size_t first, size_t last) {
    take(offset, {0, aligned(bytes), first, last});
  }

  // Forgets what is no longer in use at a position. Nothing may be placed before it any more.
  void pass(size_t position) {
    std::erase_if(placed_, [&](const Piece& p) { return p.last < position; });
  }

  int64_t bytes() const { return bytes_; }

 private:
  // The lowest offset from `offset` on at which one piece is free.
  int64_t lowest_free(const Piece& piece, int64_t offset) const {
    for (const Piece& other : placed_) {
      if (other.last < piece.first || piece.last < other.first) continue;
      if (other.begin >= offset + piece.end) break;
      if (other.end > offset + piece.begin) offset = aligned(other.end - piece.begin);
    }
    return offset;
  }

  std::vector<Piece> placed_;  // by begin
  int64_t bytes_ = 0;
};

// Lifetimes that have one place: one, or the parts of a buffer.
struct Placed {
  std::vector<size_t> lives = {};
  std::vector<Piece> pieces = {};
  int64_t bytes = 0;
  size_t first = 0;
};

// In order of first use.
std::vector<Placed> together(const std::vector<Lifetime>& lives) {
  std::vector<Placed> all;
  std::map<BufferId, size_t> of_parts;
  for (size_t i = 0; i < lives.size(); ++i) {
    const Lifetime& life = lives[i];
    size_t at = all.size();
    if (life.is_part) at = of_parts.try_emplace(life.buffer, at).first->second;
    if (at == all.size()) all.push_back({.first = life.first});
    Placed& placed = all[at];
    const int64_t bytes = life.is_part ? life.bytes : aligned(life.bytes);
    placed.lives.push_back(i);
    placed.pieces.push_back({life.part_begin, life.part_begin + bytes, life.first, life.last});
    placed.bytes += bytes;
  }
  return all;
}

struct Placing {
  int64_t arena_bytes = 0;
  std::vector<int64_t> offsets = {};  // by what was placed, in its order
};

// Gives each the lowest offset that the earlier ones in use at the same time leave free.
Placing place(const std::vector<Placed>& all, bool is_by_first_use) {
  Placing placing;
  Space arena;
  for (const Placed& placed : all) {
    if (is_by_first_use) arena.pass(placed.first);
    const int64_t offset = arena.lowest_free(placed.pieces);
    for (const Piece& piece : placed.pieces)
      arena.take(offset, piece);
    placing.offsets.push_back(offset);
  }
  placing.arena_bytes = arena.bytes();
  return placing;
}

// Places buffers in frames and in the memory that runs of blocks share.
class BlockMemory {
 public:
  BlockMemory(Program& program, const BufferUses& uses) : program_(program), uses_(uses) {}

  void plan() {
    for (const BufferId id : uses_.kept()) {
      const std::vector<BufferUse>& uses = uses_.of(id);
      std::vector<BlockIndex> blocks;
      for (const BufferUse& use : uses)
        blocks.push_back(use.block);
      add_to_frame(id, blocks);
    }
    std::map<BlockIndex, std::vector<BufferId>> by_block;
    for (const BufferId id : uses_.transient())
      by_block[uses_.of(id)[0].block].push_back(id);
    for (auto& [block, buffers] : by_block)
      place_in(block, buffers);
  }

 private:
  int64_t bytes_of(BufferId id) const {
    return static_cast<int64_t>(program_.buffer(id).meta->local_bytes());
  }

  // Buffers that the same blocks use are in one frame.
  void add_to_frame(BufferId id, const std::vector<BlockIndex>& blocks) {
    const auto [known, is_new] =
        frames_.try_emplace(blocks, static_cast<int32_t>(program_.frames.size()));
    if (is_new) {
      program_.frames.emplace_back();
      members_.emplace_back();
      for (const BlockIndex block : blocks)
        frames_of_[block].push_back(known->second);
    }
    Frame& frame = program_.frames[static_cast<size_t>(known->second)];
    program_.buffer(id).frame = known->second;
    program_.buffer(id).arena_offset = frame.bytes;
    frame.bytes += aligned(bytes_of(id));
    members_[static_cast<size_t>(known->second)].push_back(id);
  }

  // The parts of a frame that are in use while a block runs.
  Space frame_in(int32_t frame, BlockIndex block) const {
    Space space;
    for (const BufferId id : members_[static_cast<size_t>(frame)]) {
      const auto [first, last] = uses_.steps_in(id, block);
      space.take(program_.buffer(id).arena_offset, bytes_of(id), first, last);
    }
    return space;
  }

  void place_in(BlockIndex block, std::vector<BufferId>& buffers) {
    std::stable_sort(buffers.begin(), buffers.end(),
                     [&](BufferId a, BufferId b) { return bytes_of(a) > bytes_of(b); });
    std::vector<std::pair<int32_t, Space>> frames;
    for (const int32_t frame : frames_of_[block])
      frames.emplace_back(frame, frame_in(frame, block));
    Space shared;
    for (const BufferId id : buffers) {
      const int64_t bytes = bytes_of(id);
      const std::pair<size_t, size_t> steps = uses_.steps_in(id, block);
      Buffer& buffer = program_.buffer(id);
      const auto free = std::find_if(frames.begin(), frames.end(), [&](const auto& it) {
        const int64_t offset = it.second.lowest_free(bytes, steps.first, steps.second);
        return offset + aligned(bytes) <= program_.frames[static_cast<size_t>(it.first)].bytes;
      });
      Space& space = free == frames.end() ? shared : free->second;
      buffer.frame = free == frames.end() ? -1 : free->first;
      buffer.arena_offset = space.lowest_free(bytes, steps.first, steps.second);
      space.take(buffer.arena_offset, bytes, steps.first, steps.second);
    }
  }

  Program& program_;
  const BufferUses& uses_;
  std::map<std::vector<BlockIndex>, int32_t> frames_;
  std::vector<std::vector<BufferId>> members_;  // by frame
  std::map<BlockIndex, std::vector<int32_t>> frames_of_;
};

}  // namespace

void plan_memory(Program& program) {
  // The placement by size compares each with each, for every rank.
  constexpr size_t kMostBySize = 2000;
  const BufferUses uses(program);
  BlockMemory(program, uses).plan();
  const std::vector<Lifetime> lives = uses.lifetimes();
  std::vector<Placed> all = together(lives);
  Placing best = place(all, true);
  if (all.size() <= kMostBySize) {
    std::vector<Placed> by_size = all;
    std::stable_sort(by_size.begin(), by_size.end(),
                     [](const Placed& a, const Placed& b) { return a.bytes > b.bytes; });
    Placing other = place(by_size, false);
    if (other.arena_bytes < best.arena_bytes) {
      all = std::move(by_size);
      best = std::move(other);
    }
  }
  for (Frame& frame : program.frames)
    frame.arena_offsets.assign(static_cast<size_t>(uses.times().num_micro_batches()), -1);
  for (size_t i = 0; i < all.size(); ++i) {
    const Lifetime& life = lives[all[i].lives[0]];
    if (life.buffer != kNoBuffer) {
      program.buffer(life.buffer).arena_offset = best.offsets[i];
    } else if (life.frame >= 0) {
      program.frames[static_cast<size_t>(life.frame)]
          .arena_offsets[static_cast<size_t>(life.micro_batch)] = best.offsets[i];
    } else {
      for (const BufferId id : uses.group(life.group)) {
        Buffer& buffer = program.buffer(id);
        if (buffer.frame < 0) buffer.arena_offset += best.offsets[i];
      }
    }
  }
  program.arena_bytes = best.arena_bytes;
}

}  // namespace flow::graph
