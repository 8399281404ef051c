#include "graph/program/memory_plan.h"

#include <random>

#include <gtest/gtest.h>

#include "graph/program/program.h"

namespace flow::graph {
namespace {

struct Life {
  size_t first = SIZE_MAX, last = 0;
};

// A program of random steps on random buffers, some of them views.
Program random_program(uint32_t seed) {
  std::mt19937 random(seed);
  Program program;
  const auto pick = [&](size_t count) { return static_cast<int64_t>(random() % count); };
  for (int i = 0; i < 40; ++i) {
    Buffer buffer{.meta = local_meta({1 + pick(2000)}, float32, DeviceType::kCpu)};
    if (i > 0 && pick(5) == 0) buffer.base = static_cast<BufferId>(pick(static_cast<size_t>(i)));
    program.buffers.push_back(buffer);
  }
  for (int i = 0; i < 60; ++i) {
    program.steps.push_back({.inputs = {static_cast<BufferId>(pick(40))},
                             .outputs = {static_cast<BufferId>(pick(40))}});
  }
  return program;
}

TEST(MemoryPlan, BuffersAliveTogetherDoNotOverlap) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    Program program = random_program(seed);
    plan_memory(program);
    std::vector<Life> lives(program.buffers.size());
    int64_t sum = 0;
    for (size_t i = 0; i < program.steps.size(); ++i) {
      for (BufferId id : {program.steps[i].inputs[0], program.steps[i].outputs[0]}) {
        while (program.buffers[static_cast<size_t>(id)].base != kNoBuffer) {
          id = program.buffers[static_cast<size_t>(id)].base;
        }
        lives[static_cast<size_t>(id)].first = std::min(lives[static_cast<size_t>(id)].first, i);
        lives[static_cast<size_t>(id)].last = i;
      }
    }
    for (size_t a = 0; a < lives.size(); ++a) {
      if (lives[a].first == SIZE_MAX) continue;
      const auto begin = program.buffers[a].arena_offset;
      const auto end = begin + static_cast<int64_t>(program.buffers[a].meta->local_bytes());
      ASSERT_GE(begin, 0);
      ASSERT_EQ(begin % 64, 0);
      ASSERT_LE(end, program.arena_bytes);
      sum += end - begin;
      for (size_t b = 0; b < a; ++b) {
        if (lives[b].first == SIZE_MAX || lives[a].first > lives[b].last ||
            lives[b].first > lives[a].last) {
          continue;
        }
        const auto other = program.buffers[b].arena_offset;
        const auto other_end = other + static_cast<int64_t>(program.buffers[b].meta->local_bytes());
        ASSERT_TRUE(end <= other || other_end <= begin) << "seed " << seed;
      }
    }
    EXPECT_LT(program.arena_bytes, sum) << "memory is reused";
  }
}

}  // namespace
}  // namespace flow::graph
