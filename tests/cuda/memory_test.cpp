// The allocator of device memory.
#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda_allocator.h"
#include "core/device/cuda_device.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

class CudaMemory : public CudaFixture {};

TEST_F(CudaMemory, CountsWhatIsInUseAndReusesWhatIsFreed) {
  if (!reuses_memory()) GTEST_SKIP() << "FLOW_CUDA_CACHE=0";
  const int64_t before = cuda::memory_stats().bytes_in_use;
  cuda::reset_peak_memory_stats();
  {
    const Tensor x = empty({1 << 20}, {.device = "cuda"});
    EXPECT_EQ(cuda::memory_stats().bytes_in_use - before, 4 << 20);
  }
  const AllocatorStats freed = cuda::memory_stats();
  EXPECT_EQ(freed.bytes_in_use, before);
  EXPECT_GE(freed.bytes_cached, 4 << 20);
  EXPECT_EQ(freed.peak_bytes_in_use - before, 4 << 20);

  const Tensor again = empty({1 << 20}, {.device = "cuda"});

  EXPECT_EQ(cuda::memory_stats().num_cache_hits, freed.num_cache_hits + 1);
}

// More small copies than the pinned memory holds, while kernels of earlier ones may still wait.
TEST_F(CudaMemory, SmallCopiesKeepTheirOrderAndTheirValues) {
  constexpr int64_t kCopies = 400;
  constexpr int64_t kFloats = 1000;
  std::vector<Tensor> sums;
  std::vector<float> values(kFloats);
  for (int64_t i = 0; i < kCopies; ++i) {
    std::fill(values.begin(), values.end(), static_cast<float>(i % 7));
    const Tensor x = tensor(values, {kFloats}).to("cuda");
    std::fill(values.begin(), values.end(), -1.0F);  // the source may change at once
    sums.push_back(sum(x));
  }
  for (int64_t i = 0; i < kCopies; ++i)
    EXPECT_EQ(sums[static_cast<size_t>(i)].item(), static_cast<double>(i % 7 * kFloats)) << i;
}

TEST_F(CudaMemory, EmptyCacheReturnsLargeBlocks) {
  if (!reuses_memory()) GTEST_SKIP() << "FLOW_CUDA_CACHE=0";
  { const Tensor x = empty({3 << 20}, {.device = "cuda"}); }
  const int64_t before = cuda::memory_stats().bytes_cached;

  cuda::empty_cache();

  EXPECT_LE(cuda::memory_stats().bytes_cached, before - (12 << 20));
}

TEST_F(CudaMemory, RunningOutNamesWhatIsUsedAndWhatToDo) {
  std::string message;
  try {
    empty({int64_t{1} << 44}, {.device = "cuda"});
  } catch (const OutOfMemory& error) {
    message = error.what();
  }

  EXPECT_NE(message.find("has no room for 70368744177664 bytes; this rank uses "),
            std::string::npos);
  EXPECT_NE(message.find("use a smaller batch"), std::string::npos);
  EXPECT_EQ(sum(ones({4}, {.device = "cuda"})).item(), 4);  // goes on
}

TEST_F(CudaMemory, TensorsOutliveTheRankThatMadeThem) {
  Tensor kept;

  run_ranks(2, [&] {
    const Tensor x = full({100}, 2 + env::rank(), {.device = "cuda"});
    if (env::rank() == 1) kept = x;
  });

  EXPECT_EQ(sum(kept.to("cuda")).item(), 300);
}

// An allocator of its own and the addresses of its blocks.
class CudaBlocks : public CudaMemory {
 protected:
  static constexpr size_t kMiB = size_t{1} << 20;

  void SetUp() override {
    CudaMemory::SetUp();
    if (IsSkipped()) return;
    if (!reuses_memory()) GTEST_SKIP() << "FLOW_CUDA_CACHE=0";
    cuda::synchronize();
    allocator_.emplace(cuda::current_device(),
                       cuda::rank_device(*thread_state().context).compute_stream());
  }

  void TearDown() override {
    if (!allocator_) return;
    for (const auto& [block, bytes] : blocks_)
      allocator_->deallocate(block, bytes);
    EXPECT_EQ(allocator_->stats().bytes_in_use, 0);
    allocator_->release_cached();
    EXPECT_EQ(allocator_->stats().bytes_cached, 0);
  }

  std::byte* allocate(size_t bytes) {
    auto* block = static_cast<std::byte*>(allocator_->allocate(bytes));
    blocks_[block] = bytes;
    return block;
  }

  void free(std::byte* block) {
    allocator_->deallocate(block, blocks_.at(block));
    blocks_.erase(block);
  }

  void release() { allocator_->release_cached(); }

  AllocatorStats stats() const { return allocator_->stats(); }

 private:
  std::optional<cuda::DeviceAllocator> allocator_;
  std::map<std::byte*, size_t> blocks_;
};

TEST_F(CudaBlocks, SmallOnesShareASegment) {
  const std::byte* const a = allocate(1000);
  const std::byte* const b = allocate(1);
  const std::byte* const c = allocate(kMiB);

  EXPECT_EQ(b - a, 1024);
  EXPECT_EQ(c - b, 512);
  EXPECT_EQ(stats().bytes_in_use, int64_t{1024 + 512 + kMiB});
  EXPECT_EQ(stats().bytes_cached, int64_t{2 * kMiB} - stats().bytes_in_use);
  EXPECT_EQ(stats().num_cache_hits, 2);
}

TEST_F(CudaBlocks, LargeOnesAreSplitAndJoined) {
  std::byte* const a = allocate(4 * kMiB);
  std::byte* const b = allocate(5 * kMiB);
  std::byte* const c = allocate(6 * kMiB);
  EXPECT_EQ(b - a, 4 * kMiB);
  EXPECT_EQ(c - b, 5 * kMiB);
  EXPECT_EQ(stats().bytes_cached, int64_t{5 * kMiB});

  free(a);
  free(c);
  free(b);  // joined with both neighbours, and with the rest
  EXPECT_EQ(stats().bytes_cached, int64_t{20 * kMiB});

  EXPECT_EQ(allocate(18 * kMiB), a);
  EXPECT_EQ(allocate(2 * kMiB), a + 18 * kMiB);
  EXPECT_EQ(stats().bytes_cached, 0);
}

TEST_F(CudaBlocks, TheSmallestThatFitsIsTaken) {
  std::byte* const a = allocate(6 * kMiB);
  allocate(2 * kMiB);
  std::byte* const b = allocate(4 * kMiB);
  allocate(8 * kMiB);
  free(a);
  free(b);

  EXPECT_EQ(allocate(3 * kMiB), b);
  EXPECT_EQ(allocate(3 * kMiB), a);
}

TEST_F(CudaBlocks, ARestOfAMiBStaysWithALargeOne) {
  std::byte* const a = allocate(12 * kMiB);
  free(a);

  EXPECT_EQ(allocate(11 * kMiB), a);

  EXPECT_EQ(stats().bytes_in_use, int64_t{12 * kMiB});
  EXPECT_EQ(stats().bytes_cached, 0);
}

TEST_F(CudaBlocks, SegmentsInUseAreNotReleased) {
  std::byte* const small = allocate(100);
  std::byte* const large = allocate(3 * kMiB);
  free(allocate(30 * kMiB));
  EXPECT_EQ(stats().bytes_cached, int64_t{(2 + 20 + 30 - 3) * kMiB} - 512);

  cuda::synchronize();
  release();

  EXPECT_EQ(stats().bytes_cached, int64_t{(2 + 20 - 3) * kMiB} - 512);
  free(small);
  free(large);
  release();
  EXPECT_EQ(stats().bytes_cached, 0);
}

TEST_F(CudaMemory, WithoutACacheEveryBlockIsItsOwn) {
  const WithoutCache without_cache;
  cuda::DeviceAllocator allocator(cuda::current_device(),
                                  cuda::rank_device(*thread_state().context).compute_stream());

  for (int i = 0; i < 2; ++i)
    allocator.deallocate(allocator.allocate(100), 100);

  const AllocatorStats stats = allocator.stats();
  EXPECT_EQ(stats.num_allocations, 2);
  EXPECT_EQ(stats.num_cache_hits, 0);
  EXPECT_EQ(stats.bytes_in_use, 0);
  EXPECT_EQ(stats.bytes_cached, 0);
}

}  // namespace

}  // namespace flow
