// How long a process rank waits.
#include "boxing/comm/process_world.h"

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/comm/shared_segment.h"
#include "core/error.h"

namespace flow::boxing {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// One of two ranks of a host. Messages that do not go through the segment are lost.
class PairTransport final : public Transport {
 public:
  PairTransport(int64_t rank, std::unique_ptr<SharedSegment> segment)
      : identity_{.rank = rank, .world_size = 2, .local_rank = rank, .node_rank = 0},
        segment_(std::move(segment)) {}

  const RankIdentity& identity() const override { return identity_; }

  int64_t ranks_on_host() const override { return 2; }

  void post(int64_t /*rank*/, std::span<const std::byte> /*message*/) override {}

  bool take(int64_t& /*from*/, std::vector<std::byte>& /*message*/) override { return false; }

  int32_t max_tag() const override { return 1000; }

  std::unique_ptr<Bulk> send(int64_t /*rank*/, int32_t /*tag*/, const void* /*source*/,
                             int64_t /*bytes*/) override {
    return nullptr;
  }

  std::unique_ptr<Bulk> receive(int64_t /*rank*/, int32_t /*tag*/, void* /*target*/,
                                int64_t /*bytes*/) override {
    return nullptr;
  }

  bool has_moved() override { return moves && moves(); }

  SharedSegment* segment() const override { return segment_.get(); }

  bool shares_with(int64_t /*rank*/) const override { return segment_ != nullptr; }

  bool is_own() const override { return true; }

  bool is_open() const override { return true; }

  void close() override {}

  std::function<bool()> moves;

 private:
  RankIdentity identity_;
  std::unique_ptr<SharedSegment> segment_;
};

// Returns true if rank 0 is done before its limit of a second without data.
bool waits_for(ProcessWorld& world, const std::function<bool()>& is_done) {
  try {
    world.wait(
        is_done, [] { return std::vector<int64_t>{1}; }, {.op = "test"}, 1);
    return true;
  } catch (const DistributedError& error) {
    EXPECT_NE(std::string(error.what()).find("received nothing for 1 s"), std::string::npos)
        << error.what();
    return false;
  }
}

class ProcessWorldLimit : public testing::Test {
 protected:
  void SetUp() override { setenv("FLOW_TIMEOUT_S", "1", 1); }

  void TearDown() override { unsetenv("FLOW_TIMEOUT_S"); }
};

TEST_F(ProcessWorldLimit, BeginsAgainWhenAMessageHasMoved) {
  const auto start = Clock::now();
  auto transport = std::make_unique<PairTransport>(0, nullptr);
  transport->moves = [&, next = start]() mutable {
    if (Clock::now() < next || next > start + milliseconds(1600)) return false;
    next += milliseconds(300);
    return true;
  };
  ProcessWorld world(std::move(transport));

  EXPECT_TRUE(waits_for(world, [&] { return Clock::now() > start + milliseconds(1600); }));
  EXPECT_FALSE(waits_for(world, [] { return false; }));
}

TEST_F(ProcessWorldLimit, BeginsAgainWhenSharedMemoryHasMovedData) {
  std::string reason;
  auto first = SharedSegment::create(reason);
  ASSERT_NE(first, nullptr) << reason;
  auto second = SharedSegment::open(first->address(), reason);
  ProcessWorld sender(std::make_unique<PairTransport>(0, std::move(first)));
  ProcessWorld receiver(std::make_unique<PairTransport>(1, std::move(second)));
  constexpr int32_t kParts = 6;
  const std::vector<std::byte> sent(100000, std::byte{7});
  const auto bytes = static_cast<int64_t>(sent.size());
  std::vector<std::vector<std::byte>> received(kParts, std::vector<std::byte>(sent.size()));
  std::vector<std::unique_ptr<Bulk>> sends, receives;
  for (int32_t tag = 1; tag <= kParts; ++tag)
    sends.push_back(sender.send(1, tag, sent.data(), bytes));
  std::thread slow([&] {
    for (int32_t tag = 1; tag <= kParts; ++tag) {
      std::this_thread::sleep_for(milliseconds(300));
      void* const target = received[static_cast<size_t>(tag - 1)].data();
      receives.push_back(receiver.receive(0, tag, target, bytes));
      while (!receives.back()->is_done() && !sender.has_failed())
        receiver.advance();
    }
  });

  const bool is_sent = waits_for(sender, [&] { return sends.back()->is_done(); });
  slow.join();

  EXPECT_TRUE(is_sent);
  EXPECT_EQ(received, std::vector(kParts, sent));
}

}  // namespace
}  // namespace flow::boxing
