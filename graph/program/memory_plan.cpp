// Computes offsets in the arena from lifetimes by greedy first fit, by size or in order of first
// use, whichever takes less (Pisarchyk and Lee 2020, "Efficient memory management for deep neural
// net inference").
#include "graph/program/memory_plan.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "ops/creation/copy_op.h"

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

namespace {

std::string describe(const Program& program, size_t index) {
  const Step& step = program.steps[index];
  std::string text = str("step ", index, " (", step.name(), ")");
  if (step.line != 0) text += str(" at ", step.file, ":", step.line);
  return text;
}

[[noreturn]] void fail(const Program& program, const std::string& why) {
  throw InternalError(str("[certificate] memory of rank ", program.rank, ": ", why));
}

void check_places(const Program& program, const std::vector<Lifetime>& lives) {
  struct InUse {
    int64_t end;
    const Lifetime* life;
  };

  std::map<int64_t, InUse> in_use;      // by begin
  for (const Lifetime& life : lives) {  // by first use
    std::erase_if(in_use, [&](const auto& other) { return other.second.life->last < life.first; });
    const int64_t begin = program.buffer(life.buffer).arena_offset;
    const int64_t end = begin + std::max<int64_t>(life.bytes, 1);
    if (begin < 0 || begin % kAlignment != 0 || end > program.arena_bytes) {
      fail(program, str("buffer ", life.buffer, " of ", describe(program, life.first), " is at ",
                        begin, " to ", end, " of ", program.arena_bytes, " bytes"));
    }
    const auto after = in_use.lower_bound(begin);
    const auto check_apart = [&](int64_t other_begin, const InUse& other) {
      if (other_begin >= end || begin >= other.end) return;
      fail(program, str("buffer ", life.buffer, ", used from ", describe(program, life.first),
                        " on, overlaps buffer ", other.life->buffer, ", used until ",
                        describe(program, other.life->last)));
    };
    if (after != in_use.end()) check_apart(after->first, after->second);
    if (after != in_use.begin()) check_apart(std::prev(after)->first, std::prev(after)->second);
    in_use.emplace(begin, InUse{end, &life});
  }
}

void check_uses(const Program& program, const std::vector<Lifetime>& lives) {
  std::vector<bool> is_unwritten(program.buffers.size(), false);
  for (const Lifetime& life : lives)
    is_unwritten[static_cast<size_t>(life.buffer)] = life.bytes > 0;
  std::vector<bool> is_waited(program.steps.size(), false);
  for (size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    const auto check_written = [&](BufferId id) {
      if (id == kNoBuffer || !is_unwritten[static_cast<size_t>(root_of(program, id))]) return;
      fail(program,
           str(describe(program, i), " reads buffer ", id, ", which no step has written before"));
    };
    const bool only_writes_first = step.op_call() != nullptr && step.op_call()->op == &ops::kCopy;
    for (size_t k = only_writes_first ? 1 : 0; k < step.inputs.size(); ++k)
      check_written(step.inputs[k]);
    check_written(step.guard);
    for (const BufferId id : step.outputs) {
      if (id != kNoBuffer) is_unwritten[static_cast<size_t>(root_of(program, id))] = false;
    }
    if (const auto* wait = step.as<WaitStep>()) is_waited[wait->send] = true;
  }
  for (size_t i = 0; i < program.steps.size(); ++i) {
    if (program.steps[i].as<SendStep>() != nullptr && !is_waited[i])
      fail(program, str("no step waits for the end of ", describe(program, i)));
  }
}

}  // namespace

void check_memory(const Program& program) {
  const std::vector<Lifetime> lives = lifetimes_of(program);
  const bool is_planned = std::any_of(lives.begin(), lives.end(), [&](const Lifetime& life) {
    return program.buffer(life.buffer).arena_offset >= 0;
  });
  if (!is_planned) return;
  check_places(program, lives);
  check_uses(program, lives);
}

}  // namespace flow::graph
