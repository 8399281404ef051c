#include "boxing/comm/shared_segment.h"

#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace flow::boxing {
namespace {

// Two ranks' views of one segment.
class SharedSegmentPair : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(first, nullptr) << reason;
    second = SharedSegment::open(first->address(), reason);
    ASSERT_NE(second, nullptr) << reason;
  }

  std::string reason;
  std::unique_ptr<SharedSegment> first = SharedSegment::create(reason);
  std::unique_ptr<SharedSegment> second;
};

TEST_F(SharedSegmentPair, PlacesOfOneNameAreOne) {
  std::byte* mine = first->find(7, 100);
  std::byte* theirs = second->find(7, 100);
  ASSERT_NE(mine, nullptr);
  ASSERT_NE(theirs, nullptr);
  EXPECT_EQ(std::to_integer<int>(theirs[99]), 0);

  mine[99] = std::byte{42};

  EXPECT_NE(mine, theirs);
  EXPECT_EQ(std::to_integer<int>(theirs[99]), 42);
  EXPECT_EQ(first->find(7, 100), mine);
  std::byte* other = second->find(8, 1);
  EXPECT_EQ(other - theirs, 128);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(other) % 64, 0U);
}

TEST_F(SharedSegmentPair, NoRoomIsToldToAllAlike) {
  constexpr int64_t kTooMuch = int64_t{1} << 40;

  EXPECT_EQ(first->find(1, kTooMuch), nullptr);
  EXPECT_EQ(second->find(1, 64), nullptr);
  EXPECT_NE(second->find(2, 64), nullptr);
}

TEST_F(SharedSegmentPair, NamesMayShareABucket) {
  std::byte* last = first->find(0, 64);
  for (uint64_t i = 0; i < 20; ++i) {
    std::byte* next = first->find(i << 32 | 5, 64);
    ASSERT_NE(next, nullptr);
    EXPECT_EQ(next - last, 64);
    last = next;
  }
}

TEST_F(SharedSegmentPair, AnAlarmReachesTheOthers) {
  EXPECT_FALSE(first->is_alarmed());

  second->raise_alarm();

  EXPECT_TRUE(first->is_alarmed());
}

TEST_F(SharedSegmentPair, NothingElseIsTakenForIt) {
  SharedSegment::Address address = first->address();
  ++address.token;
  EXPECT_EQ(SharedSegment::open(address, reason), nullptr);
  EXPECT_NE(reason.find("another job"), std::string::npos) << reason;

  address.file = 0;
  EXPECT_EQ(SharedSegment::open(address, reason), nullptr);
  EXPECT_NE(reason.find("/fd/0 is not the memory"), std::string::npos) << reason;
}

TEST_F(SharedSegmentPair, WhatIsClosedCannotBeOpenedButStays) {
  const SharedSegment::Address address = first->address();
  std::byte* theirs = second->find(3, 64);

  first->close();

  EXPECT_EQ(SharedSegment::open(address, reason), nullptr);
  *first->find(3, 64) = std::byte{9};
  EXPECT_EQ(std::to_integer<int>(*theirs), 9);
}

TEST(SharedSegment, IsRefusedWhereFilesMayNotBeAsLong) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 1 << 20;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  std::string reason;

  EXPECT_EQ(SharedSegment::create(reason), nullptr);

  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_NE(reason.find("RLIMIT_FSIZE"), std::string::npos) << reason;
}

}  // namespace
}  // namespace flow::boxing
