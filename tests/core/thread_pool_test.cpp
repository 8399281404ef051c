#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>

#include "core/error.h"

namespace flow {
namespace {

// Each index of [begin, end) runs once, in chunks of at least `grain` but the last.
void expect_chunks_cover(ThreadPool& pool, int64_t begin, int64_t end, int64_t grain) {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> chunks;
  pool.parallel_for(begin, end, grain, [&](int64_t b, int64_t e) {
    const std::lock_guard lock(mutex);
    chunks.emplace(b, e);
  });
  int64_t at = begin;
  for (const auto& [b, e] : chunks) {
    ASSERT_EQ(b, at);
    ASSERT_TRUE(e - b >= grain || e == end) << b << " to " << e << " with grain " << grain;
    at = e;
  }
  ASSERT_EQ(at, end);
}

TEST(ThreadPool, NumberOfThreadsMayChangeBetweenLoops) {
  ThreadPool pool(1);
  for (const int threads : {4, 1, 2, 3, 2}) {
    pool.set_num_threads(threads);
    EXPECT_EQ(pool.num_threads(), threads);
    for (int i = 0; i < 50; ++i)
      expect_chunks_cover(pool, 3, 1003, 7);
  }
  std::atomic<int> refusals{0};
  pool.parallel_for(0, 64, 1, [&](int64_t, int64_t) {
    try {
      pool.set_num_threads(4);
    } catch (const InvalidArgument&) {
      ++refusals;
    }
  });
  EXPECT_GT(refusals, 0);
  EXPECT_EQ(pool.num_threads(), 2);
}

TEST(ThreadPool, NumberOfThreadsMayChangeWhileOthersStartLoops) {
  ThreadPool pool(2);
  std::atomic<bool> ends{false};
  std::atomic<int64_t> sum{0};
  int64_t loops = 0;
  std::thread other([&] {
    while (!ends) {
      pool.parallel_for(0, 1000, 10, [&](int64_t b, int64_t e) { sum += e - b; });
      ++loops;
    }
  });
  for (int i = 0; i < 100; ++i)
    pool.set_num_threads(1 + i % 3);
  ends = true;
  other.join();
  EXPECT_EQ(sum, loops * 1000);
}

TEST(ThreadPool, ChunksCoverTheRangeOnce) {
  for (const int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    for (const int64_t size : {1, 2, 3, 7, 8, 9, 10, 17, 1000, 16385, 33000, 100003}) {
      for (const int64_t grain : {1, 7, 64, 1000, 16384}) {
        SCOPED_TRACE(testing::Message() << threads << " threads, " << size << " by " << grain);
        expect_chunks_cover(pool, 0, size, grain);
        expect_chunks_cover(pool, -5, size - 5, grain);
      }
    }
  }
}

TEST(ThreadPool, LoopsInQuickSuccessionSeeTheirOwnData) {
  ThreadPool pool(3);
  for (int64_t round = 0; round < 20000; ++round) {
    std::vector<int64_t> value(12, -1);
    pool.parallel_for(0, 12, 1, [&](int64_t begin, int64_t end) {
      std::fill(value.begin() + begin, value.begin() + end, round);
    });
    ASSERT_EQ(std::count(value.begin(), value.end(), round), 12);
  }
}

TEST(ThreadPool, WorksAfterItsThreadsFellAsleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    expect_chunks_cover(pool, 0, 24, 1);
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(1)) {
    }
  }
}

TEST(ThreadPool, WaitsForAChunkThatTakesLong) {
  ThreadPool pool(2);
  std::atomic<bool> is_done{false};
  pool.parallel_for(0, 2, 1, [&](int64_t begin, int64_t) {
    if (begin == 0) return;
    const auto start = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(3)) {
    }
    is_done = true;
  });
  EXPECT_TRUE(is_done);
}

TEST(ThreadPool, EmptyLoopCallsNothing) {
  ThreadPool pool(2);
  pool.parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ThreadPool, APoolThatNeverRanEnds) {
  const ThreadPool pool(4);
  EXPECT_EQ(pool.num_threads(), 4);
}

TEST(ThreadPool, ExceptionOfAChunkReachesTheCaller) {
  ThreadPool pool(3);
  const auto loop = [&](int64_t bad) {
    pool.parallel_for(0, 100, 1, [&](int64_t begin, int64_t end) {
      if (begin <= bad && bad < end) throw std::runtime_error("bad index");
    });
  };
  for (int64_t bad = 0; bad < 100; ++bad)
    EXPECT_THROW(loop(bad), std::runtime_error);
  EXPECT_NO_THROW(loop(-1)) << "the pool works afterwards";
}

TEST(ThreadPool, OtherChunksRunDespiteAnException) {
  ThreadPool pool(2);
  std::atomic<int> calls{0};
  EXPECT_THROW(pool.parallel_for(0, 8, 1,
                                 [&](int64_t, int64_t) {
                                   ++calls;
                                   throw std::runtime_error("each fails");
                                 }),
               std::runtime_error);
  EXPECT_EQ(calls.load(), 8);
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

TEST(ThreadPool, ExceptionOfALoopInsideALoopReachesTheCaller) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.parallel_for(0, 8, 1,
                                 [&](int64_t, int64_t) {
                                   pool.parallel_for(0, 8, 1, [](int64_t begin, int64_t) {
                                     if (begin == 0) throw std::runtime_error("inner");
                                   });
                                 }),
               std::runtime_error);
  expect_chunks_cover(pool, 0, 100, 1);
}

TEST(ThreadPool, ManyPoolsOnFewCores) {
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 8; ++rank) {
    ranks.emplace_back([&sum] {
      ThreadPool pool(3);
      for (int round = 0; round < 200; ++round)
        pool.parallel_for(0, 12, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  }
  for (std::thread& rank : ranks)
    rank.join();
  EXPECT_EQ(sum.load(), 8 * 200 * 12);
}

TEST(ThreadPool, ThreadsOfARankTakeTurns) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round)
        pool.parallel_for(0, 10, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    });
  }
  for (std::thread& caller : callers)
    caller.join();
  EXPECT_EQ(sum.load(), 3 * 300 * 10);
}

TEST(ThreadPool, ThreadsThatTheSystemRefusesAreAnErrorThatSaysWhatToDo) {
  pthread_attr_t usual;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  pthread_attr_t vast;
  pthread_attr_init(&vast);
  ASSERT_EQ(pthread_attr_setstacksize(&vast, size_t{1} << 46), 0);  // no address space for them
  ThreadPool pool(3);
  const auto run = [&] { pool.parallel_for(0, 100, 1, [](int64_t, int64_t) {}); };

  ASSERT_EQ(pthread_setattr_default_np(&vast), 0);
  std::string message = "no error";
  try {
    run();
  } catch (const OutOfMemory& error) {
    message = error.what();
  }
  pthread_setattr_default_np(&usual);

  EXPECT_NE(message.find("refused to start compute thread 2 of 3"), std::string::npos) << message;
  EXPECT_NE(message.find("FLOW_NUM_THREADS"), std::string::npos) << message;
  run();
  pthread_attr_destroy(&vast);
  pthread_attr_destroy(&usual);
}

}  // namespace
}  // namespace flow
