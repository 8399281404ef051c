// Plans of random programs whose lifetimes are drawn first, so that the test need not compute them.
#include "graph/program/memory_plan.h"

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "graph/program/memory_check.h"
#include "graph/program/program.h"

namespace flow::graph {
namespace {

constexpr size_t kSteps = 60;
constexpr int kBuffers = 40;

struct Drawn {
  Program program;
  std::vector<Lifetime> lives;  // in the order of BufferUses::lifetimes()
};

// A buffer is written in its first step and read in its last one: as an input, through a view of a
// view of it, or as a guard.
Drawn random_program(uint32_t seed) {
  std::mt19937 random(seed);
  const auto pick = [&](size_t count) { return static_cast<size_t>(random() % count); };
  Drawn drawn;
  Program& program = drawn.program;
  program.steps.assign(kSteps, {.body = ConvertStep{}});
  const auto add = [&](const Buffer& buffer) {
    program.buffers.push_back(buffer);
    return static_cast<BufferId>(program.buffers.size() - 1);
  };
  for (int i = 0; i < kBuffers; ++i) {
    const auto count = static_cast<int64_t>(1 + pick(2000));
    const MetaPtr meta = local_meta({count}, float32, DeviceType::kCpu);
    const BufferId id = add({.meta = meta});
    const size_t first = pick(kSteps), last = first + pick(kSteps - first);
    drawn.lives.push_back({id, 4 * count, first, last});
    program.steps[first].outputs.push_back(id);
    if (last == first) continue;
    Step& reader = program.steps[last];
    const size_t way = pick(3);
    if (way == 0 && reader.guard == kNoBuffer) {
      reader.guard = id;
    } else if (way == 1) {
      const BufferId view = add({.meta = meta, .base = id});
      reader.inputs.push_back(add({.meta = meta, .base = view}));
    } else {
      reader.inputs.push_back(id);
    }
  }
  std::stable_sort(drawn.lives.begin(), drawn.lives.end(),
                   [](const Lifetime& a, const Lifetime& b) { return a.first < b.first; });
  return drawn;
}

TEST(MemoryPlan, LifetimesReachFromTheFirstToTheLastUse) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const Drawn drawn = random_program(seed);
    const std::vector<Lifetime> found = BufferUses(drawn.program).lifetimes();
    ASSERT_EQ(found.size(), drawn.lives.size()) << "seed " << seed;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].buffer, drawn.lives[i].buffer) << "seed " << seed;
      EXPECT_EQ(found[i].bytes, drawn.lives[i].bytes) << "seed " << seed;
      EXPECT_EQ(found[i].first, drawn.lives[i].first) << "seed " << seed;
      EXPECT_EQ(found[i].last, drawn.lives[i].last) << "seed " << seed;
    }
  }
}

TEST(MemoryPlan, BuffersAliveTogetherDoNotOverlap) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Drawn drawn = random_program(seed);
    plan_memory(drawn.program);
    int64_t sum = 0;
    for (const Lifetime& life : drawn.lives) {
      EXPECT_GE(drawn.program.buffer(life.buffer).arena_offset, 0) << "seed " << seed;
      sum += life.bytes;
    }
    EXPECT_NO_THROW(check_memory(BufferUses(drawn.program))) << "seed " << seed;
    EXPECT_LT(drawn.program.arena_bytes, sum) << "memory is reused";
  }
}

// The check on which the other test relies.
TEST(MemoryPlan, TheCheckFindsEveryOverlap) {
  int num_moved = 0;
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Drawn drawn = random_program(seed);
    plan_memory(drawn.program);
    for (const Lifetime& a : drawn.lives) {
      for (const Lifetime& b : drawn.lives) {
        if (a.buffer == b.buffer || a.first > b.last || b.first > a.last) continue;
        Program moved = drawn.program;
        // Over the last line of 64 bytes that belongs to the other buffer.
        const int64_t end = moved.buffer(b.buffer).arena_offset + (b.bytes - 1) / 64 * 64;
        if (end + a.bytes > moved.arena_bytes) continue;
        moved.buffer(a.buffer).arena_offset = end;
        ++num_moved;
        std::string error;
        try {
          check_memory(BufferUses(moved));
        } catch (const InternalError& found) {
          error = found.what();
        }
        EXPECT_NE(error.find("overlaps buffer"), std::string::npos)
            << "seed " << seed << ", buffer " << a.buffer << " over " << b.buffer;
      }
    }
  }
  EXPECT_GT(num_moved, 1000);
}

}  // namespace
}  // namespace flow::graph
