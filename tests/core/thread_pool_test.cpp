#include "core/thread_pool.h"

#include <atomic>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace flow {
namespace {

TEST(ThreadPool, EachIndexRunsOnce) {
  for (const int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 50; ++round) {
      std::vector<std::atomic<int>> count(1000);
      pool.parallel_for(0, 1000, 7, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          ++count[static_cast<size_t>(i)];
      });
      for (const auto& c : count)
        ASSERT_EQ(c.load(), 1);
    }
  }
}

TEST(ThreadPool, EmptyLoopCallsNothing) {
  ThreadPool pool(2);
  pool.parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ThreadPool, ExceptionOfAChunkReachesTheCaller) {
  ThreadPool pool(3);
  const auto loop = [&](int64_t bad) {
    pool.parallel_for(0, 100, 1, [&](int64_t begin, int64_t end) {
      if (begin <= bad && bad < end) throw std::runtime_error("bad index");
    });
  };
  EXPECT_THROW(loop(37), std::runtime_error);
  EXPECT_NO_THROW(loop(-1)) << "the pool works afterwards";
}

TEST(ThreadPool, LoopsInsideLoopsRun) {
  ThreadPool pool(2);
  std::atomic<int> sum{0};
  pool.parallel_for(0, 8, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      pool.parallel_for(0, 10, 1, [&](int64_t b, int64_t e) { sum += static_cast<int>(e - b); });
    }
  });
  EXPECT_EQ(sum.load(), 80);
}

}  // namespace
}  // namespace flow
