// Offsets in the arena from lifetimes: greedy first fit (as in Pisarchyk and Lee 2020, "Efficient
// memory management for deep neural net inference", in order of first use).
#include <algorithm>
#include <vector>

#include "graph/lifetimes.h"

namespace flow::graph {

namespace {

constexpr int64_t kAlignment = 64;

BufferId root_of(const Program& program, BufferId id) {
  while (program.buffers[static_cast<size_t>(id)].base != kNoBuffer) {
    id = program.buffers[static_cast<size_t>(id)].base;
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
  }
  std::erase_if(all, [&](const Lifetime& life) {
    const Buffer& buffer = program.buffers[static_cast<size_t>(life.buffer)];
    return life.first == kNever || buffer.external >= 0 || buffer.base != kNoBuffer ||
           !buffer.meta->is_held;
  });
  std::sort(all.begin(), all.end(), [](const Lifetime& a, const Lifetime& b) {
    return a.first != b.first ? a.first < b.first : a.buffer < b.buffer;
  });
  return all;
}

void plan_memory(Program& program) {
  struct Placed {
    int64_t begin;
    int64_t end;
    size_t last;
  };

  std::vector<Placed> placed;  // alive at the current step, by begin
  program.arena_bytes = 0;
  for (const Lifetime& life : lifetimes_of(program)) {
    std::erase_if(placed, [&](const Placed& p) { return p.last < life.first; });
    const int64_t bytes =
        (std::max<int64_t>(life.bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    int64_t offset = 0;
    auto at = placed.begin();
    while (at != placed.end() && at->begin < offset + bytes) {
      offset = std::max(offset, at->end);
      ++at;
    }
    at = std::find_if(placed.begin(), placed.end(),
                      [&](const Placed& p) { return p.begin > offset; });
    placed.insert(at, {offset, offset + bytes, life.last});
    program.buffers[static_cast<size_t>(life.buffer)].arena_offset = offset;
    program.arena_bytes = std::max(program.arena_bytes, offset + bytes);
  }
}

}  // namespace flow::graph
