#include "boxing/comm/communicator.h"

#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/comm/process_communicator.h"
#include "boxing/comm/process_world.h"
#include "boxing/comm/thread_world.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

using boxing::ProcessWorld;
using boxing::ReduceOp;

// Distinct values per rank and element.
std::vector<float> sample(int64_t rank, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(rank + 1) * 0.1F + static_cast<float>(i);
  return values;
}

// What every sum must be bit for bit: addends in rank order.
std::vector<float> sum_of_samples(int64_t ranks, int64_t count) {
  std::vector<float> sum = sample(0, count);
  for (int64_t rank = 1; rank < ranks; ++rank) {
    const std::vector<float> next = sample(rank, count);
    for (size_t i = 0; i < sum.size(); ++i)
      sum[i] += next[i];
  }
  return sum;
}

// Below the size copied to the board, below and above that computed in two halves, uneven; of many
// pieces; past the caches.
constexpr int64_t kCounts[] = {0, 1, 7, 256, 1000, 4097, 100003, 2500001};

// Every test runs on ranks that are threads, and on ranks that speak the protocol of processes.
class Communicator : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, Communicator, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, Communicator, testing::Values(run_loopback_ranks));
INSTANTIATE_TEST_SUITE_P(SharedMemory, Communicator, testing::Values(run_shared_memory_ranks));

TEST_P(Communicator, AllReduceSumsInRankOrderAtEverySize) {
  for (const int64_t ranks : {1, 2, 3, 5}) {
    run_on_ranks(ranks, [&] {
      for (const int64_t count : kCounts) {
        const std::vector<float> source = sample(me(), count);
        std::vector<float> target(source.size(), -1);

        world().all_reduce(source.data(), target.data(), count, float32, ReduceOp::kSum, here());

        EXPECT_EQ(target, sum_of_samples(ranks, count)) << count;
      }
    });
  }
}

TEST_P(Communicator, AllReduceMayBeInPlaceOnSomeRanks) {
  run_on_ranks(3, [] {
    for (const int64_t count : kCounts) {
      std::vector<float> source = sample(me(), count);
      std::vector<float> other(source.size());
      std::vector<float>& target = me() == 1 ? other : source;

      world().all_reduce(source.data(), target.data(), count, float32, ReduceOp::kSum, here());

      EXPECT_EQ(target, sum_of_samples(3, count)) << count;
    }
  });
}

TEST_P(Communicator, MaxAndMinPropagateNan) {
  run_on_ranks(2, [] {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> source =
        me() == 0 ? std::vector<float>{1, nan, 3} : std::vector<float>{2, 5, nan};
    std::vector<float> highest(3);
    std::vector<float> lowest(3);

    world().all_reduce(source.data(), highest.data(), 3, float32, ReduceOp::kMax, here());
    world().all_reduce(source.data(), lowest.data(), 3, float32, ReduceOp::kMin, here());

    EXPECT_EQ(highest[0], 2);
    EXPECT_EQ(lowest[0], 1);
    for (const size_t i : {1U, 2U}) {
      EXPECT_TRUE(std::isnan(highest[i]));
      EXPECT_TRUE(std::isnan(lowest[i]));
    }
  });
}

TEST_P(Communicator, ReducesEveryDtype) {
  run_on_ranks(3, [] {
    for (int code = 0; code < kNumDTypes; ++code) {
      dispatch_all(static_cast<DType>(code), [&]<class T>() {
        std::array<T, 2> source;
        source[0] = T(static_cast<float>(me() % 2));
        source[1] = T(0.0F);
        std::array<T, 2> sum;
        std::array<T, 2> highest;
        std::array<T, 2> lowest;

        world().all_reduce(source.data(), sum.data(), 2, dtype_of<T>, ReduceOp::kSum, here());
        world().all_reduce(source.data(), highest.data(), 2, dtype_of<T>, ReduceOp::kMax, here());
        world().all_reduce(source.data(), lowest.data(), 2, dtype_of<T>, ReduceOp::kMin, here());

        EXPECT_EQ(static_cast<float>(sum[0]), 1) << dtype_of<T>;
        EXPECT_EQ(static_cast<float>(sum[1]), 0) << dtype_of<T>;
        EXPECT_EQ(static_cast<float>(highest[0]), 1) << dtype_of<T>;
        EXPECT_EQ(static_cast<float>(lowest[0]), 0) << dtype_of<T>;
      });
    }
  });
}

TEST_P(Communicator, SixteenBitSumsRoundOnce) {
  run_on_ranks(3, [] {
    // 256 + 1 + 1 is 258 when rounded once; adding 1 to 256 in bfloat16 gives 256 again.
    const BFloat16 source(me() == 0 ? 256.0F : 1.0F);
    BFloat16 sum;

    world().all_reduce(&source, &sum, 1, bfloat16, ReduceOp::kSum, here());

    EXPECT_EQ(static_cast<float>(sum), 258);
  });
}

TEST_P(Communicator, ReduceWritesAtTheRootOnly) {
  run_on_ranks(3, [] {
    for (const int64_t count : {5, 700001}) {
      const std::vector<float> source = sample(me(), count);
      const std::vector<float> untouched(source.size(), -1);
      std::vector<float> target = untouched;

      world().reduce(source.data(), target.data(), count, float32, ReduceOp::kSum, 2, here());

      EXPECT_EQ(target, me() == 2 ? sum_of_samples(3, count) : untouched);
    }
  });
}

TEST_P(Communicator, ReduceScatterTakesUnevenAndEmptyParts) {
  for (const int64_t scale : {1, 4000, 400001}) {
    run_on_ranks(3, [scale] {
      const std::vector<int64_t> counts = {3 * scale, 0, 2 * scale};
      const std::vector<float> source = sample(me(), 5 * scale);
      const std::vector<float> whole = sum_of_samples(3, 5 * scale);
      const auto begin = static_cast<size_t>(me() == 0 ? 0 : 3 * scale);
      const auto size = static_cast<size_t>(counts[static_cast<size_t>(me())]);
      std::vector<float> target(size);

      world().reduce_scatter(source.data(), target.data(), counts, float32, ReduceOp::kSum, here());

      const std::vector<float> expected(whole.begin() + static_cast<int64_t>(begin),
                                        whole.begin() + static_cast<int64_t>(begin + size));
      EXPECT_EQ(target, expected);
    });
  }
}

TEST_P(Communicator, GatherAndScatterAreInverse) {
  for (const int64_t scale : {1, 5000, 3000001}) {
    run_on_ranks(3, [scale] {
      const std::vector<int64_t> bytes = {2 * scale, 0, scale};
      const std::string mine(static_cast<size_t>(bytes[static_cast<size_t>(me())]),
                             static_cast<char>('a' + me()));
      const std::string joined = std::string(static_cast<size_t>(2 * scale), 'a') +
                                 std::string(static_cast<size_t>(scale), 'c');
      std::string all(joined.size(), '-');
      std::string at_root(joined.size(), '-');
      std::string back(mine.size(), '-');

      world().all_gather(mine.data(), all.data(), bytes, here());
      world().gather(mine.data(), at_root.data(), bytes, 1, here());
      world().scatter(at_root.data(), back.data(), bytes, 1, here());

      EXPECT_EQ(all, joined);
      EXPECT_EQ(at_root, me() == 1 ? joined : std::string(joined.size(), '-'));
      EXPECT_EQ(back, mine);
    });
  }
}

TEST_P(Communicator, AllToAllDeliversInGroupOrder) {
  run_on_ranks(3, [] {
    // Rank r sends r + i bytes 'A' + 3 r + i to rank i.
    std::string source;
    std::string expected;
    std::vector<int64_t> send;
    std::vector<int64_t> recv;
    for (int64_t i = 0; i < 3; ++i) {
      send.push_back(me() + i);
      recv.push_back(i + me());
      source += std::string(static_cast<size_t>(me() + i), static_cast<char>('A' + 3 * me() + i));
      expected += std::string(static_cast<size_t>(i + me()), static_cast<char>('A' + 3 * i + me()));
    }
    std::string target(expected.size(), '-');

    world().all_to_all(source.data(), send, target.data(), recv, here());

    EXPECT_EQ(target, expected);
  });
}

TEST_P(Communicator, BroadcastReachesAll) {
  for (const size_t bytes : {3U, 9000U, 9000001U}) {
    run_on_ranks(4, [bytes] {
      std::string data(bytes, static_cast<char>('a' + me()));

      world().broadcast(data.data(), static_cast<int64_t>(bytes), 2, here());

      EXPECT_EQ(data, std::string(bytes, 'c'));
    });
  }
}

TEST_P(Communicator, GroupsAreMadeByTheirMembersInTheirOrder) {
  run_on_ranks(4, [] {
    RankContext& context = *thread_state().context;
    const std::vector<int64_t> pair =
        me() < 2 ? std::vector<int64_t>{1, 0} : std::vector<int64_t>{2, 3};
    boxing::Communicator& group = boxing::communicator_for(context, pair);
    const std::string mine(1, static_cast<char>('0' + me()));
    std::string all = "--";

    group.all_gather(mine.data(), all.data(), std::vector<int64_t>{1, 1}, here());

    EXPECT_EQ(all, me() < 2 ? "10" : "23");
    EXPECT_EQ(&group, &boxing::communicator_for(context, pair));
    const std::vector<int64_t> others = {(me() + 1) % 4, (me() + 2) % 4};
    EXPECT_THROW(boxing::communicator_for(context, others), InvalidArgument);
  });
}

class ProcessCommunicator : public testing::TestWithParam<RunRanks> {};

INSTANTIATE_TEST_SUITE_P(Messages, ProcessCommunicator, testing::Values(run_loopback_ranks));
INSTANTIATE_TEST_SUITE_P(SharedMemory, ProcessCommunicator,
                         testing::Values(run_shared_memory_ranks));

TEST_P(ProcessCommunicator, MayBeMadeAgainWhileOthersAreAhead) {
  GetParam()(2, [] {
    const std::vector<int64_t> pair = {0, 1};
    ProcessWorld& shared = *thread_state().context->slot_ptr<ProcessWorld>();
    for (int64_t round = 0; round < 50; ++round) {
      const auto group = boxing::make_process_communicator(shared, pair, me());
      const int64_t mine = me() + round;
      int64_t sum = 0;
      group->all_reduce(&mine, &sum, 1, int64, ReduceOp::kSum, here());
      ASSERT_EQ(sum, 1 + 2 * round);
    }
  });
}

// As when an exception destroys the sender's handle.
TEST_P(ProcessCommunicator, DeliversALargeMessageForWhichItsSenderDoesNotWait) {
  GetParam()(2, [] {
    constexpr int64_t kCount = 50000;
    if (me() == 0) {
      auto source = std::make_shared<const std::vector<float>>(sample(0, kCount));
      const std::weak_ptr<const std::vector<float>> seen = source;
      boxing::Transfer pending = world().isend(source->data(), 4 * kCount, 1, 5, here());
      pending->memory = std::move(source);
      pending.reset();
      world().barrier(here());
      world().barrier(here());  // the other rank has received
      EXPECT_TRUE(seen.expired());
    } else {
      world().barrier(here());
      std::vector<float> target(kCount);
      world().recv(target.data(), 4 * kCount, 0, 5, here());
      world().barrier(here());
      EXPECT_EQ(target, sample(0, kCount));
    }
  });
}

TEST_P(Communicator, OneRankGroupsCopy) {
  const std::vector<float> source = {1, 2};
  std::vector<float> target(2);
  boxing::Communicator& alone = world();

  alone.all_reduce(source.data(), target.data(), 2, float32, ReduceOp::kSum, here());
  alone.barrier(here());

  EXPECT_EQ(target, source);
  EXPECT_THROW(alone.send(source.data(), 8, 0, 0, here()), InvalidArgument);
}

TEST_P(Communicator, BothMaySendSmallMessagesFirst) {
  run_on_ranks(2, [] {
    const int64_t peer = 1 - me();
    const std::vector<float> mine = sample(me(), 10);
    std::vector<float> theirs(10);

    world().send(mine.data(), 40, peer, 7, here());
    world().recv(theirs.data(), 40, peer, 7, here());

    EXPECT_EQ(theirs, sample(peer, 10));
  });
}

TEST_P(Communicator, MessagesMatchByTagThenOrder) {
  run_on_ranks(2, [] {
    constexpr int64_t kLarge = 50000;
    if (me() == 0) {
      const std::vector<float> large = sample(0, kLarge);
      const int64_t first = 1;
      const int64_t second = 2;
      auto pending = world().isend(large.data(), 4 * kLarge, 1, 5, here());
      world().send(&first, 8, 1, 6, here());
      world().send(&second, 8, 1, 6, here());
      world().wait(std::move(pending));
    } else {
      std::vector<float> large(kLarge);
      int64_t first = 0;
      int64_t second = 0;
      world().recv(&first, 8, 0, 6, here());
      world().recv(&second, 8, 0, 6, here());
      world().recv(large.data(), 4 * kLarge, 0, 5, here());
      EXPECT_EQ(first, 1);
      EXPECT_EQ(second, 2);
      EXPECT_EQ(large, sample(0, kLarge));
    }
  });
}

TEST_P(Communicator, ReceivesMayBePostedBeforeAnythingIsSent) {
  run_on_ranks(2, [] {
    const int64_t peer = 1 - me();
    const std::vector<float> mine = sample(me(), 50000);
    std::vector<float> theirs(50000);

    auto pending = world().irecv(theirs.data(), 200000, peer, 1, here());
    world().send(mine.data(), 200000, peer, 1, here());
    world().wait(std::move(pending));

    EXPECT_EQ(theirs, sample(peer, 50000));
  });
}

TEST_P(Communicator, LargeMessagesOvertakeEachOtherAndCollectives) {
  run_on_ranks(3, [] {
    constexpr int64_t kCount = 700001;
    const auto tagged = [](int64_t from, int64_t tag) { return sample(10 * from + tag, kCount); };
    std::vector<std::vector<float>> kept;
    std::vector<boxing::Transfer> sending;
    for (int64_t peer = 0; peer < 3; ++peer) {
      for (int64_t tag = 0; tag < 3 && peer != me(); ++tag) {
        kept.push_back(tagged(me(), tag));
        sending.push_back(world().isend(kept.back().data(), 4 * kCount, peer, tag, here()));
      }
    }
    std::vector<float> own = sample(me(), kCount);
    world().all_reduce(own.data(), own.data(), kCount, float32, ReduceOp::kSum, here());
    for (int64_t tag = 2; tag >= 0; --tag) {
      for (int64_t peer = 0; peer < 3; ++peer) {
        if (peer == me()) continue;
        std::vector<float> theirs(kCount);
        world().recv(theirs.data(), 4 * kCount, peer, tag, here());
        EXPECT_EQ(theirs, tagged(peer, tag));
      }
    }
    world().barrier(here());
    for (boxing::Transfer& one : sending)
      world().wait(std::move(one));
    EXPECT_EQ(own, sum_of_samples(3, kCount));
  });
}

TEST_P(Communicator, DifferentCallsNameBothSites) {
  std::atomic<int> told = 0;
  const auto body = [&] {
    float value = 1;
    try {
      if (me() == 0) {
        world().all_reduce(&value, &value, 1, float32, ReduceOp::kSum, here());
      } else {
        world().barrier(here());
      }
    } catch (const DistributedError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("all_reduce"), std::string::npos) << text;
      EXPECT_NE(text.find("barrier"), std::string::npos) << text;
      EXPECT_NE(text.find("communicator_test.cpp"), text.rfind("communicator_test.cpp")) << text;
      ++told;
      throw;
    }
  };

  EXPECT_THROW(run_on_ranks(2, body), DistributedError);

  EXPECT_EQ(told, 2);
}

TEST_P(Communicator, DifferentCountsAreToldBeforeTheThirdRankArrives) {
  std::atomic<bool> is_told = false;
  const auto body = [&] {
    if (me() == 2) {
      while (!is_told)
        std::this_thread::yield();
      return;
    }
    std::vector<float> values(3);
    try {
      world().all_reduce(values.data(), values.data(), 1 + me(), float32, ReduceOp::kSum, here());
    } catch (const DistributedError&) {
      is_told = true;
      throw;
    }
  };

  EXPECT_THROW(run_on_ranks(3, body), DistributedError);
}

TEST_P(Communicator, MessagesOfDifferentSizesAreRefusedOnBothSides) {
  std::atomic<int> told = 0;
  const auto body = [&] {
    std::vector<std::byte> data(200000);
    try {
      if (me() == 0) world().send(data.data(), 100000, 1, 0, here());
      if (me() == 1) world().recv(data.data(), 200000, 0, 0, here());
    } catch (const DistributedError& error) {
      EXPECT_NE(std::string(error.what()).find("100000 bytes"), std::string::npos) << error.what();
      ++told;
      throw;
    }
  };

  EXPECT_THROW(run_on_ranks(2, body), DistributedError);

  EXPECT_EQ(told, 2);
}

// FLOW_TIMEOUT_S of a scope.
class TimeLimit {
 public:
  explicit TimeLimit(const char* seconds) {
    if (const char* outer = std::getenv(kName)) outer_ = outer;
    setenv(kName, seconds, 1);
  }

  ~TimeLimit() {
    if (outer_) {
      setenv(kName, outer_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }

  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;

 private:
  static constexpr const char* kName = "FLOW_TIMEOUT_S";
  std::optional<std::string> outer_;
};

TEST(RunRanks, ATimeLimitThatIsNoneIsRefused) {
  for (const char* seconds : {"0", "-1", "99999999999", "soon"}) {
    const TimeLimit limit(seconds);
    EXPECT_THROW(run_ranks(2, [] {}), InvalidArgument) << seconds;
  }
}

TEST_P(Communicator, RankThatNeverComesIsNamedAfterTheTimeOut) {
  const TimeLimit limit("1");
  std::atomic<bool> is_over = false;
  const auto body = [&] {
    if (me() == 1) {
      while (!is_over)
        std::this_thread::yield();
      return;
    }
    try {
      world().barrier(here());
    } catch (const DistributedError& error) {
      EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
      is_over = true;
      throw;
    }
  };

  EXPECT_THROW(run_on_ranks(2, body), DistributedError);
}

TEST(RunRanks, EveryRankHasItsContextAndNumber) {
  std::atomic<int64_t> sum = 0;

  run_ranks(4, [&] {
    EXPECT_EQ(env::world_size(), 4);
    EXPECT_EQ(env::local_rank(), env::rank());
    sum += env::rank();
  });

  EXPECT_EQ(sum, 6);
  EXPECT_EQ(env::world_size(), 1);
}

TEST(RunRanks, FirstErrorWinsAndEndsThoseWhoWait) {
  std::atomic<int> told = 0;
  const auto body = [&] {
    if (me() == 2) throw InvalidArgument("[test] wrong input");
    try {
      env::barrier();
    } catch (const DistributedError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("rank 2 failed"), std::string::npos) << text;
      EXPECT_NE(text.find("wrong input"), std::string::npos) << text;
      ++told;
      throw;
    }
  };

  EXPECT_THROW(run_ranks(4, body), InvalidArgument);

  EXPECT_EQ(told, 3);
}

// Rank 2 fails while rank 1 reads the memory of rank 0, which waits for it.
TEST(RunRanks, MemoryStaysUntilOthersHaveReadItWhenTheWorldFails) {
  std::atomic<bool> is_reading{false};
  std::atomic<bool> is_freed{false};
  int64_t sum = 0;
  EXPECT_THROW(
      run_ranks(3,
                [&] {
                  if (me() == 2) {
                    while (!is_reading)
                      std::this_thread::yield();
                    throw InvalidArgument("planted");
                  }
                  const std::vector<int64_t> both = {0, 1};
                  auto& pair = boxing::communicator_for(*thread_state().context, both);
                  constexpr size_t kCount = 1 << 16;
                  auto memory = std::make_unique<std::vector<int64_t>>(kCount, 1);
                  try {
                    const auto parts = pair.open(memory->data(), kCount * sizeof(int64_t), here());
                    if (me() == 1) {
                      is_reading = true;
                      const auto& world = *thread_state().context->slot_ptr<boxing::ThreadWorld>();
                      while (!world.has_failed())
                        std::this_thread::yield();
                      // Far less than the timeout of the world, which ends the wait of rank 0.
                      std::this_thread::sleep_for(std::chrono::milliseconds(50));
                      EXPECT_FALSE(is_freed);
                      const auto* theirs = reinterpret_cast<const int64_t*>(parts[0]);
                      sum = std::accumulate(theirs, theirs + kCount, int64_t{0});
                    }
                    pair.close();
                  } catch (const DistributedError&) {
                    memory.reset();
                    if (me() == 0) is_freed = true;
                    throw;
                  }
                }),
      InvalidArgument);
  EXPECT_EQ(sum, 1 << 16);
}

// Any of them may be inside a collective when one fails.
TEST(RunRanks, FailuresAtAnyMomentEndCollectivesOfLargeData) {
  for (int round = 0; round < 15; ++round) {
    EXPECT_THROW(run_ranks(4,
                           [&] {
                             if (me() == 3) {
                               for (int i = 0; i < 50 * round; ++i)
                                 std::this_thread::yield();
                               throw InvalidArgument("planted");
                             }
                             const std::vector<int64_t> others = {0, 1, 2};
                             auto& group =
                                 boxing::communicator_for(*thread_state().context, others);
                             for (;;) {
                               std::vector<float> data(20000, 1);
                               group.all_reduce(data.data(), data.data(), 20000, float32,
                                                ReduceOp::kSum, here());
                               EXPECT_EQ(data[19999], 3);
                             }
                           }),
                 InvalidArgument);
  }
}

TEST(RunRanks, WaitingForARankThatEndedIsAnErrorAtOnce) {
  try {
    run_ranks(2, [] {
      if (me() == 0) env::barrier();
    });
    FAIL() << "no error";
  } catch (const DistributedError& error) {
    EXPECT_NE(std::string(error.what()).find("rank 1"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("ended"), std::string::npos) << error.what();
  }
}

TEST(RunRanks, WorldsDoNotNest) {
  EXPECT_THROW(run_ranks(2, [] { run_ranks(2, [] {}); }), InvalidArgument);
  EXPECT_THROW(run_ranks(0, [] {}), InvalidArgument);
}

TEST(RunRanks, RanksHaveEightMebibytesOfStack) {
  run_ranks(2, [] {
    volatile char block[7 << 20];
    for (size_t i = 0; i < sizeof(block); i += 4096)
      block[i] = 1;
    EXPECT_EQ(block[4096], 1);
  });
}

TEST(RunRanks, ManyRanksOnFewCoresMeetOften) {
  run_ranks(8, [] {
    int64_t sum = 0;
    for (int64_t i = 0; i < 200; ++i) {
      const int64_t mine = me() + i;
      world().all_reduce(&mine, &sum, 1, int64, ReduceOp::kSum, here());
      ASSERT_EQ(sum, 28 + 8 * i);
    }
  });
}

}  // namespace
}  // namespace flow
