// Data of any length between two ranks of one host.
#include "boxing/comm/shared_pipes.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boxing/comm/shared_segment.h"

namespace flow::boxing {
namespace {

constexpr int32_t kTag = 7;
// So long that the data is offered, and no multiple of any part.
constexpr int64_t kLong = (9 << 20) + 13;

using Bytes = std::vector<unsigned char>;

Bytes numbered(int64_t size, unsigned first) {
  Bytes bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<unsigned char>(first + i * 2654435761U / 65536);
  return bytes;
}

// Two ranks' ends of their pipes, in one process.
class SharedPipesPair : public testing::Test {
 protected:
  std::unique_ptr<Bulk> send(const Bytes& data, int32_t tag = kTag) {
    return sender.send(1, tag, data.data(), static_cast<int64_t>(data.size()));
  }

  std::unique_ptr<Bulk> receive(Bytes& data, int32_t tag = kTag) {
    return receiver.receive(0, tag, data.data(), static_cast<int64_t>(data.size()));
  }

  void advance_until_done(Bulk& bulk) {
    for (int i = 0; i < 100000 && !bulk.is_done(); ++i) {
      sender.advance();
      receiver.advance();
    }
    ASSERT_TRUE(bulk.is_done());
  }

  std::string reason;
  std::unique_ptr<SharedSegment> first = SharedSegment::create(reason);
  std::unique_ptr<SharedSegment> second = SharedSegment::open(first->address(), reason);
  SharedPipes sender{*first, 0};
  SharedPipes receiver{*second, 1};
};

TEST_F(SharedPipesPair, DataOfAnyLengthArrivesInTheRequestedOrder) {
  const std::vector<int64_t> sizes = {1, 100000, kLong, 3, kLong + 1, 2 << 20, 5};
  std::vector<Bytes> sent, received;
  std::vector<std::unique_ptr<Bulk>> sends, receives;
  for (size_t i = 0; i < sizes.size(); ++i) {
    sent.push_back(numbered(sizes[i], static_cast<unsigned>(i)));
    received.emplace_back(static_cast<size_t>(sizes[i]));
  }
  for (size_t i = sizes.size(); i-- > 0;)
    sends.push_back(send(sent[i], static_cast<int32_t>(i + 1)));
  for (size_t i = 0; i < sizes.size(); ++i)
    receives.push_back(receive(received[i], static_cast<int32_t>(i + 1)));

  for (const auto& bulk : receives)
    advance_until_done(*bulk);
  for (const auto& bulk : sends)
    advance_until_done(*bulk);

  EXPECT_EQ(sent, received);
}

TEST_F(SharedPipesPair, AnAbandonedSendStillArrivesWhole) {
  const Bytes next = numbered(1000, 3);
  for (const int num_steps : {0, 1, 2, 3}) {
    SCOPED_TRACE(num_steps);
    const Bytes expected = numbered(kLong, 1);
    auto data = std::make_unique<Bytes>(expected);
    Bytes received(expected.size()), received_next(next.size());
    std::unique_ptr<Bulk> sending = send(*data);
    const std::unique_ptr<Bulk> receiving = receive(received);
    sender.advance();  // offers
    for (int i = 0; i < num_steps; ++i)
      receiver.advance();
    sending.reset();
    data->assign(data->size(), 0xee);  // the memory may be used again
    const std::unique_ptr<Bulk> sending_next = send(next);
    const std::unique_ptr<Bulk> receiving_next = receive(received_next);

    advance_until_done(*receiving);
    advance_until_done(*receiving_next);
    advance_until_done(*sending_next);

    EXPECT_EQ(received, expected);
    EXPECT_EQ(received_next, next);
  }
}

// The receiver was told of the first one before it was abandoned, and asks for it.
TEST_F(SharedPipesPair, ASendThatIsAbandonedBeforeItStartsArrives) {
  for (const size_t size : {size_t{1000}, static_cast<size_t>(kLong)}) {
    const Bytes expected = numbered(static_cast<int64_t>(size), 1), next = numbered(1000, 3);
    auto data = std::make_unique<Bytes>(expected);
    Bytes received(expected.size()), received_next(next.size());
    std::unique_ptr<Bulk> sending = send(*data);
    sending.reset();
    data->assign(data->size(), 0xee);
    const std::unique_ptr<Bulk> sending_next = send(next);
    const std::unique_ptr<Bulk> receiving = receive(received);
    const std::unique_ptr<Bulk> receiving_next = receive(received_next);

    advance_until_done(*receiving);
    advance_until_done(*receiving_next);
    advance_until_done(*sending_next);

    EXPECT_EQ(received, expected);
    EXPECT_EQ(received_next, next);
  }
}

TEST_F(SharedPipesPair, AnAbandonedReceiveLeavesTheNextOneWhole) {
  const Bytes sent = numbered(kLong, 1), next = numbered(kLong, 2);
  auto unused = std::make_unique<Bytes>(sent.size());
  Bytes received(next.size());
  const std::unique_ptr<Bulk> sending = send(sent), sending_next = send(next);
  std::unique_ptr<Bulk> abandoned = receive(*unused);
  sender.advance();
  abandoned.reset();
  unused.reset();
  const std::unique_ptr<Bulk> receiving = receive(received);

  advance_until_done(*receiving);
  advance_until_done(*sending);
  advance_until_done(*sending_next);

  EXPECT_EQ(received, next);
}

// A process that may not read this process's memory receives the data all the same.
TEST_F(SharedPipesPair, DataArrivesWithoutTheRightToReadMemory) {
  constexpr uid_t kNobody = 65534;
  constexpr std::chrono::seconds kLimit(60);
  const std::vector<Bytes> sent = {numbered(kLong, 1), numbered(kLong, 2)};
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const SharedSegment::Address address = first->address();  // a child has no view of the segment
  const pid_t child = fork();
  if (child == 0) {
    const auto segment = SharedSegment::open(address, reason);
    if (segment == nullptr || (geteuid() == 0 && setuid(kNobody) != 0)) _exit(2);
    if (write(ends[1], "", 1) != 1) _exit(3);
    SharedPipes own(*segment, 1);
    for (const Bytes& expected : sent) {
      Bytes received(expected.size());
      const auto bulk = own.receive(0, kTag, received.data(), kLong);
      while (!bulk->is_done())
        own.advance();
      if (received != expected) _exit(1);
    }
    _exit(0);
  }
  close(ends[1]);
  char is_ready = 0;
  ASSERT_EQ(read(ends[0], &is_ready, 1), 1);
  close(ends[0]);
  prctl(PR_SET_DUMPABLE, 0);
  const std::unique_ptr<Bulk> bulks[] = {send(sent[0]), send(sent[1])};
  const auto until = std::chrono::steady_clock::now() + kLimit;
  while (!bulks[1]->is_done() && std::chrono::steady_clock::now() < until)
    sender.advance();
  if (!bulks[1]->is_done()) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  prctl(PR_SET_DUMPABLE, 1);

  EXPECT_TRUE(bulks[1]->is_done());
  EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0);
}

}  // namespace
}  // namespace flow::boxing
