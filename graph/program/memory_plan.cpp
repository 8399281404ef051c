// Computes offsets in the arena from lifetimes by greedy first fit, by size or in order of first
// use, whichever takes less (Pisarchyk and Lee 2020, "Efficient memory management for deep neural
// net inference").
#include "graph/program/memory_plan.h"

#include <algorithm>
#include <vector>

namespace flow::graph {

namespace {

constexpr int64_t kAlignment = 64;

BufferId root_of(const Program& program, BufferId id) {
  while (program.buffer(id).base != kNoBuffer) {
    id = program.buffer(id).base;
  }
  return id;
}

}  // namespace

std::vector<Lifetime> lifetimes_of(const Program& program) {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<Lifetime> all;
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const auto bytes = static_cast<int64_t>(program.buffers[i].meta->local_bytes());
    all.push_back({static_cast<BufferId>(i), bytes, kNever, 0});
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const auto touch = [&](BufferId id) {
      if (id == kNoBuffer) return;
      Lifetime& life = all[static_cast<size_t>(root_of(program, id))];
      life.first = std::min(life.first, i);
      life.last = i;
    };
    for (const BufferId id : program.steps[i].inputs)
      touch(id);
    for (const BufferId id : program.steps[i].outputs)
      touch(id);
    touch(program.steps[i].guard);
  }
  std::erase_if(all, [&](const Lifetime& life) {
    const Buffer& buffer = program.buffer(life.buffer);
    return life.first == kNever || buffer.external >= 0 || buffer.base != kNoBuffer ||
           !buffer.meta->is_held;
  });
  std::sort(all.begin(), all.end(), [](const Lifetime& a, const Lifetime& b) {
    return a.first != b.first ? a.first < b.first : a.buffer < b.buffer;
  });
  return all;
}

namespace {

struct Placing {
  int64_t arena_bytes = 0;
  std::vector<int64_t> offsets = {};  // by lifetime, in their order
};

// Gives each lifetime the lowest offset that the earlier ones in use at the same time leave free.
Placing place(const std::vector<Lifetime>& lives, bool is_by_first_use) {
  struct Placed {
    int64_t begin;
    int64_t end;
    size_t first;
    size_t last;
  };

  Placing placing;
  std::vector<Placed> placed;  // by begin; those that may still overlap others
  for (const Lifetime& life : lives) {
    if (is_by_first_use)
      std::erase_if(placed, [&](const Placed& p) { return p.last < life.first; });
    const int64_t bytes =
        (std::max<int64_t>(life.bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    int64_t offset = 0;
    for (const Placed& other : placed) {
      if (other.last < life.first || life.last < other.first) continue;
      if (other.begin >= offset + bytes) break;
      offset = std::max(offset, other.end);
    }
    const auto at = std::find_if(placed.begin(), placed.end(),
                                 [&](const Placed& p) { return p.begin > offset; });
    placed.insert(at, {offset, offset + bytes, life.first, life.last});
    placing.offsets.push_back(offset);
    placing.arena_bytes = std::max(placing.arena_bytes, offset + bytes);
  }
  return placing;
}

}  // namespace

void plan_memory(Program& program) {
  // The placement by size compares each with each, for every rank.
  constexpr size_t kMostBySize = 2000;
  std::vector<Lifetime> lives = lifetimes_of(program);
  Placing best = place(lives, true);
  if (lives.size() <= kMostBySize) {
    std::vector<Lifetime> by_size = lives;
    std::stable_sort(by_size.begin(), by_size.end(),
                     [](const Lifetime& a, const Lifetime& b) { return a.bytes > b.bytes; });
    Placing other = place(by_size, false);
    if (other.arena_bytes < best.arena_bytes) {
      lives = std::move(by_size);
      best = std::move(other);
    }
  }
  for (size_t i = 0; i < lives.size(); ++i)
    program.buffer(lives[i].buffer).arena_offset = best.offsets[i];
  program.arena_bytes = best.arena_bytes;
}

}  // namespace flow::graph
