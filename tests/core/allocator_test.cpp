#include "core/allocator.h"

#include <cstddef>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "core/device/sanitizer.h"
#include "core/error.h"
#include "core/storage.h"

namespace flow {
namespace {

TEST(Allocator, BlocksAreAlignedAndWritable) {
  Allocator allocator;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{1024},
                             size_t{1025}, size_t{1281}, size_t{100'000}, size_t{9 << 20}}) {
    void* block = allocator.allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0U) << bytes;
    std::memset(block, 7, bytes);
    allocator.deallocate(block, bytes);
  }
  allocator.release_cached();
  EXPECT_EQ(allocator.stats().bytes_cached, 0);
}

TEST(Allocator, FreedBlocksComeBack) {
  Allocator allocator;
  void* first = allocator.allocate(5000);
  allocator.deallocate(first, 5000);
  EXPECT_EQ(allocator.allocate(5100), first);  // the same size class
  EXPECT_EQ(allocator.stats().num_cache_hits, 1);
  allocator.deallocate(first, 5100);
  allocator.release_cached();
}

TEST(Allocator, RoundsSmallBlocksByAQuarterAtMostAndLargeOnesByASixteenth) {
  Allocator allocator;
  for (size_t bytes = 1030; bytes < size_t{3} << 30; bytes += bytes / 7 + 1) {
    void* block = allocator.allocate(bytes);
    const auto given = static_cast<size_t>(allocator.stats().bytes_in_use);
    EXPECT_GE(given, bytes);
    EXPECT_LE(given, bytes + bytes / (bytes > (size_t{8} << 20) + 64 ? 16 : 4) + 64) << bytes;
    allocator.deallocate(block, bytes);
    allocator.release_cached();
  }
}

TEST(Allocator, StatisticsFollowUse) {
  Allocator allocator;
  void* a = allocator.allocate(64);
  void* b = allocator.allocate(128);
  EXPECT_EQ(allocator.stats().bytes_in_use, 192);
  allocator.deallocate(a, 64);
  EXPECT_EQ(allocator.stats().bytes_in_use, 128);
  EXPECT_EQ(allocator.stats().peak_bytes_in_use, 192);
  allocator.reset_peak();
  EXPECT_EQ(allocator.stats().peak_bytes_in_use, 128);
  allocator.deallocate(b, 128);
  EXPECT_EQ(allocator.stats().bytes_cached, 192);
  allocator.release_cached();
}

TEST(Allocator, ReturnsBlocksOfSizesThatAProgramHasLeft) {
  Allocator allocator;
  constexpr size_t kMiB = 1 << 20;
  const auto use = [&](size_t bytes, int times) {
    for (int i = 0; i < times; ++i)
      allocator.deallocate(allocator.allocate(bytes), bytes);
  };
  for (size_t size = 1; size <= 40; ++size) {
    use(size * kMiB, 2);
    use(64, 2000);
  }
  AllocatorStats stats = allocator.stats();
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_LE(stats.bytes_cached, 2 * stats.peak_bytes_in_use + static_cast<int64_t>(64 * kMiB));
  EXPECT_GT(stats.bytes_cached, stats.peak_bytes_in_use);

  // What a program goes on using is kept, however much it is.
  for (int round = 0; round < 2; ++round) {
    for (size_t size = 20; size < 32; ++size)
      use(size * kMiB, 1);
  }
  stats = allocator.stats();
  for (size_t size = 20; size < 32; ++size)
    use(size * kMiB, 1);
  EXPECT_EQ(allocator.stats().num_cache_hits, stats.num_cache_hits + 12);
  EXPECT_GT(stats.bytes_cached, static_cast<int64_t>(12 * 20 * kMiB));
  allocator.release_cached();
  EXPECT_EQ(allocator.stats().bytes_cached, 0);
}

TEST(Allocator, LimitRaisesOutOfMemoryAndTheNextCallWorks) {
  Allocator allocator;
  allocator.set_limit(1000);
  EXPECT_THROW(allocator.allocate(2000), OutOfMemory);
  void* block = allocator.allocate(500);
  EXPECT_NE(block, nullptr);
  allocator.deallocate(block, 500);
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
  allocator.release_cached();
}

TEST(Allocator, ThreadsShareIt) {
  Allocator allocator;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&allocator, t] {
      for (int i = 0; i < 2000; ++i) {
        const size_t bytes = static_cast<size_t>(i % 50) * 40;
        void* block = allocator.allocate(bytes);
        std::memset(block, t, bytes);
        allocator.deallocate(block, bytes);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
  allocator.release_cached();
}

TEST(Storage, OfARoundSizeTakesLittleMoreThanThat) {
  for (const size_t bytes : {size_t{2048}, size_t{1} << 20, size_t{5} << 20, size_t{16} << 20}) {
    Allocator allocator;
    {
      const Ref<Storage> storage = Storage::allocate(allocator, bytes);
      EXPECT_EQ(allocator.stats().bytes_in_use, static_cast<int64_t>(bytes) + 64);
    }
    allocator.release_cached();
  }
}

TEST(Allocator, BlocksThatShareHugePagesAreApartAndComeBack) {
  Allocator allocator;
  const std::vector<size_t> sizes = {70'000, 1 << 20, 3 << 20, 100'000, 8 << 20, 2 << 20, 1 << 20};
  for (int round = 0; round < 2; ++round) {
    std::vector<unsigned char*> blocks;
    for (size_t i = 0; i < sizes.size(); ++i) {
      blocks.push_back(static_cast<unsigned char*>(allocator.allocate(sizes[i])));
      std::memset(blocks[i], static_cast<int>(i), sizes[i]);
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_EQ(blocks[i][0], i);
      EXPECT_EQ(blocks[i][sizes[i] - 1], i);
      allocator.deallocate(blocks[i], sizes[i]);
    }
    allocator.release_cached();
    EXPECT_EQ(allocator.stats().bytes_cached, 0);
  }
}

TEST(Allocator, TheAddressSanitizerKnowsWhatIsHandedOut) {
  Allocator allocator;
  auto* block = static_cast<std::byte*>(allocator.allocate(100));
  EXPECT_FALSE(is_forbidden(block));
  EXPECT_FALSE(is_forbidden(block + 99));
  EXPECT_EQ(is_forbidden(block + 100), kChecksAddresses);
  allocator.deallocate(block, 100);
  EXPECT_EQ(is_forbidden(block + 64), kChecksAddresses) << "kept for reuse";

  EXPECT_EQ(allocator.allocate(120), block);
  EXPECT_FALSE(is_forbidden(block + 119));
  if (kChecksAddresses) {
    EXPECT_EQ(block[119], std::byte{0xFF}) << "not yet written";
  }
  allocator.deallocate(block, 120);

  {
    const Ref<Storage> storage = Storage::allocate(allocator, 100);
    EXPECT_EQ(is_forbidden(storage->data() - 1), kChecksAddresses);
    EXPECT_EQ(is_forbidden(storage->data() + 100), kChecksAddresses);
  }
  allocator.release_cached();
}

TEST(Allocator, RefusesSizesBeyondItsClasses) {
  Allocator allocator;

  for (int exponent = 50; exponent <= 62; ++exponent) {
    EXPECT_THROW(allocator.allocate(size_t{1} << exponent), OutOfMemory) << exponent;
  }
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
}

TEST(Storage, ReturnsItsBytesWhenTheLastOwnerGoes) {
  Allocator allocator;
  {
    const Ref<Storage> storage = Storage::allocate(allocator, 1000);
    const Ref<Storage> second = storage;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(storage->data()) % 64, 0U);
    EXPECT_GT(allocator.stats().bytes_in_use, 1000);
  }
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
  allocator.release_cached();
}

TEST(Storage, WrappedMemoryCallsItsDeleterOnce) {
  int deleted = 0;
  float data[4] = {};
  {
    const Ref<Storage> storage =
        Storage::wrap(data, sizeof(data), [&](void* pointer) { deleted += pointer == data; });
    EXPECT_EQ(storage->data(), reinterpret_cast<std::byte*>(data));
  }
  EXPECT_EQ(deleted, 1);
}

TEST(Storage, AnExceptionOfADeleterIsLogged) {
  float number = 0;
  testing::internal::CaptureStderr();

  Storage::wrap(&number, sizeof(number), [](void*) { throw Error("the pool is gone"); });
  Storage::wrap(&number, sizeof(number), [](void*) { throw 7; });

  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("[storage] a deleter of memory failed: the pool is gone"), std::string::npos)
      << log;
}

}  // namespace
}  // namespace flow
