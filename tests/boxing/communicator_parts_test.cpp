// Collectives whose data lies in parts, and messages that wait for room.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/comm/communicator.h"
#include "boxing/planner.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/run_route.h"
#include "core/context.h"
#include "core/error.h"
#include "core/tensor_meta.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

using boxing::ReduceOp;
using SourcePart = boxing::Communicator::SourcePart;

// Whole numbers, so that sums are exact.
std::vector<float> numbers(int64_t rank, int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<int64_t>(i % 1000) * (rank + 1));
  return values;
}

class CommunicatorParts : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, CommunicatorParts, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, CommunicatorParts, testing::Values(run_loopback_ranks));
INSTANTIATE_TEST_SUITE_P(SharedMemory, CommunicatorParts, testing::Values(run_shared_memory_ranks));

TEST_P(CommunicatorParts, MeansAreSumsDividedByTheNumberOfRanks) {
  for (const int64_t ranks : {1, 2, 3}) {
    run_on_ranks(ranks, [ranks] {
      for (const int64_t count : {5, 300000}) {
        const std::vector<float> mine = numbers(me(), count);
        std::vector<float> mean(mine.size(), -1);

        world().all_reduce(mine.data(), mean.data(), count, float32, ReduceOp::kMean, here());

        const auto n = static_cast<float>(ranks);
        std::vector<float> expected = numbers(0, count);
        for (float& value : expected)
          value = value * (n * (n + 1) / 2) / n;
        EXPECT_EQ(mean, expected) << ranks << ' ' << count;
      }
    });
  }
}

TEST(Reduction, WholeNumbersHaveNoMean) {
  const int32_t value = 1;
  const auto* source = reinterpret_cast<const std::byte*>(&value);
  int32_t mean = 0;
  EXPECT_THROW(boxing::reduce_in_order(int32, ReduceOp::kMean, std::vector{source, source},
                                       reinterpret_cast<std::byte*>(&mean), 1),
               InternalError);
}

TEST_P(CommunicatorParts, SourcesOfAReductionMayLieApartAndInTheTarget) {
  run_on_ranks(3, [] {
    for (const int64_t scale : {1, 100, 30000}) {
      const int64_t count = 17 * scale;
      const std::vector<float> mine = numbers(me(), count);
      const std::vector<float> first(mine.begin(), mine.begin() + 3 * scale);
      const std::vector<float> third(mine.begin() + 8 * scale, mine.begin() + 15 * scale);
      std::vector<float> target = mine;  // with the second and the last part
      std::fill(target.begin(), target.begin() + 3 * scale, -1.F);
      std::fill(target.begin() + 8 * scale, target.begin() + 15 * scale, -1.F);
      const std::vector<SourcePart> parts = {{first.data(), 3 * scale},
                                             {target.data() + 3 * scale, 5 * scale},
                                             {third.data(), 7 * scale},
                                             {nullptr, 0},
                                             {target.data() + 15 * scale, 2 * scale}};

      world().all_reduce_parts(parts, target.data(), float32, ReduceOp::kSum, here());

      std::vector<float> expected = numbers(0, count);
      for (float& value : expected)
        value *= 6;
      EXPECT_EQ(target, expected) << scale;
    }
  });
}

// Byte i of what `from` sends to `to`.
std::byte byte_of(int64_t from, int64_t to, int64_t i) {
  return static_cast<std::byte>((31 * from + 7 * to + i + i / 251) % 256);
}

int64_t bytes_between(int64_t from, int64_t to, int64_t scale) {
  return from == to ? 0 : (2 * from + to) * scale;
}

TEST_P(CommunicatorParts, PackedDataReachesEveryMemberInOrder) {
  run_on_ranks(3, [] {
    for (const int64_t scale : {1, 1000, 300001}) {
      std::vector<int64_t> send;
      std::vector<int64_t> recv;
      for (int64_t peer = 0; peer < 3; ++peer) {
        send.push_back(bytes_between(me(), peer, scale));
        recv.push_back(bytes_between(peer, me(), scale));
      }
      std::vector<int64_t> packed(3, 0);
      std::vector<int64_t> unpacked(3, 0);
      int64_t wrong = 0;
      const auto pack = [&](int64_t to, int64_t offset, int64_t bytes, std::byte* out) {
        wrong += packed[static_cast<size_t>(to)] != offset ? 1 : 0;
        packed[static_cast<size_t>(to)] += bytes;
        for (int64_t i = 0; i < bytes; ++i)
          out[i] = byte_of(me(), to, offset + i);
      };
      const auto unpack = [&](int64_t from, int64_t offset, int64_t bytes, const std::byte* in) {
        wrong += unpacked[static_cast<size_t>(from)] != offset ? 1 : 0;
        unpacked[static_cast<size_t>(from)] += bytes;
        for (int64_t i = 0; i < bytes; ++i)
          wrong += in[i] != byte_of(from, me(), offset + i) ? 1 : 0;
      };

      world().all_to_all_packed(send, pack, recv, unpack, here());

      EXPECT_EQ(wrong, 0);
      EXPECT_EQ(packed, send);
      EXPECT_EQ(unpacked, recv);
    }
  });
}

TEST_P(CommunicatorParts, PackedDataOfAnUnexpectedLengthIsAnErrorOnAllMembers) {
  std::atomic<int> told = 0;
  const auto body = [&] {
    const std::vector<int64_t> send = {me() == 0 ? 0 : 5000, me() == 0 ? 300000 : 0};
    const std::vector<int64_t> recv = {me() == 0 ? 0 : 200000, me() == 0 ? 5000 : 0};
    try {
      world().all_to_all_packed(
          send,
          [](int64_t, int64_t, int64_t bytes, std::byte* out) {
            std::memset(out, 1, static_cast<size_t>(bytes));
          },
          recv, [](int64_t, int64_t, int64_t, const std::byte*) {}, here());
      world().barrier(here());
    } catch (const DistributedError& error) {
      EXPECT_NE(std::string(error.what()).find("300000"), std::string::npos) << error.what();
      ++told;
      throw;
    }
  };

  EXPECT_THROW(run_on_ranks(2, body), DistributedError);

  EXPECT_EQ(told, 2);
}

// Beyond what rings between ranks hold.
TEST_P(CommunicatorParts, BothSidesMayBufferManyMessagesFirst) {
  run_on_ranks(2, [] {
    constexpr int64_t kMessages = 12;
    constexpr int64_t kBytes = boxing::Communicator::kBufferedBytes;
    const int64_t peer = 1 - me();
    const auto message = [](int64_t from, int64_t number) {
      return std::string(static_cast<size_t>(kBytes - number),
                         static_cast<char>('a' + 2 * number + from));
    };
    for (int64_t number = 0; number < kMessages; ++number)
      world().send(message(me(), number).data(), kBytes - number, peer, 0, here());
    for (int64_t number = 0; number < kMessages; ++number) {
      std::string received(static_cast<size_t>(kBytes - number), '-');
      world().recv(received.data(), kBytes - number, peer, 0, here());
      EXPECT_EQ(received, message(peer, number));
    }
  });
}

// A rank that sends much faster than the other one receives waits, whatever the sizes and tags.
TEST_P(CommunicatorParts, MessagesThatNobodyReceivesHaveABound) {
  std::atomic<bool> is_full{false};
  run_on_ranks(2, [&] {
    constexpr int64_t kMost = boxing::Communicator::kMostBufferedBytes;
    constexpr int64_t kMessages = 3000;
    const auto bytes_of = [](int64_t number) { return number % 7 == 0 ? 0 : 8000 - number % 100; };
    const auto byte_of = [](int64_t number, int64_t i) {
      return static_cast<char>(31 * number + i);
    };
    if (me() == 0) {
      std::vector<std::string> messages;
      std::vector<boxing::Transfer> transfers;
      int64_t buffered = 0;
      for (int64_t number = 0; number < kMessages; ++number) {
        std::string& message = messages.emplace_back(static_cast<size_t>(bytes_of(number)), '-');
        for (size_t i = 0; i < message.size(); ++i)
          message[i] = byte_of(number, static_cast<int64_t>(i));
        transfers.push_back(world().isend(message.data(), bytes_of(number), 1, number % 3, here()));
        if (transfers.back() == nullptr) buffered += bytes_of(number);
      }
      EXPECT_LE(buffered, kMost);
      EXPECT_GE(buffered, kMost / 2);
      is_full = true;
      for (boxing::Transfer& transfer : transfers)
        world().wait(std::move(transfer));
      return;
    }
    while (!is_full)
      std::this_thread::yield();
    for (int64_t number = 0; number < kMessages; ++number) {
      std::string received(static_cast<size_t>(bytes_of(number)), '-');
      world().recv(received.data(), bytes_of(number), 0, number % 3, here());
      for (size_t i = 0; i < received.size(); ++i)
        ASSERT_EQ(received[i], byte_of(number, static_cast<int64_t>(i))) << number;
    }
  });
}

// A rank that ends has delivered what waited for room.
TEST_P(CommunicatorParts, MessagesOfARankThatEndsArrive) {
  run_on_ranks(2, [] {
    constexpr int64_t kMessages = 12;
    std::string data(static_cast<size_t>(boxing::Communicator::kBufferedBytes), 'x');
    const auto bytes = static_cast<int64_t>(data.size());
    if (me() == 0) {
      for (int64_t number = 0; number < kMessages; ++number)
        world().send(data.data(), bytes, 1, 0, here());
      return;
    }
    for (int64_t number = 0; number < kMessages; ++number) {
      data.assign(data.size(), '-');
      world().recv(data.data(), bytes, 0, 0, here());
      EXPECT_EQ(data, std::string(data.size(), 'x'));
    }
  });
}

// The part of a row-major (rows, columns) whose element (i, j) is 1000 i + j, cut along `dim`.
std::vector<float> part_of(int64_t rows, int64_t columns, int64_t dim, int64_t ranks,
                           int64_t rank) {
  const Range cut = balanced_part(dim == 0 ? rows : columns, ranks, rank);
  std::vector<float> part;
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      const int64_t at = dim == 0 ? i : j;
      if (at >= cut.begin && at < cut.begin + cut.size) {
        part.push_back(static_cast<float>(1000 * i + j));
      }
    }
  }
  return part;
}

// Large enough to go piece by piece, the last two past the caches; rows are shorter and longer than
// what is worth streaming.
TEST_P(CommunicatorParts, LargeSplitsChangeTheirDim) {
  for (const auto& [rows, columns] :
       {std::pair{301, 257}, {4099, 5}, {3, 70001}, {1501, 1603}, {163001, 31}, {4999, 1009}}) {
    run_on_ranks(3, [rows = int64_t{rows}, columns = int64_t{columns}] {
      const Placement all("cpu", {0, 1, 2});
      for (const int64_t dim : {0, 1}) {
        const boxing::Route route = boxing::find_route(
            {rows, columns}, float32, {all, sbp::split(dim)}, {all, sbp::split(1 - dim)});
        boxing::BoundRoute bound(*thread_state().context, boxing::make_rank_route(route, me()));
        const std::vector<float> source = part_of(rows, columns, dim, 3, me());
        const std::vector<float> expected = part_of(rows, columns, 1 - dim, 3, me());
        for (const bool is_packed : {false, true}) {
          bound.set_packed(is_packed);
          std::vector<float> target(expected.size(), -1);

          bound.run(reinterpret_cast<const std::byte*>(source.data()),
                    reinterpret_cast<std::byte*>(target.data()), Site::here());

          EXPECT_EQ(target, expected) << rows << " x " << columns << " from dim " << dim;
        }
      }
    });
  }
}

}  // namespace
}  // namespace flow
