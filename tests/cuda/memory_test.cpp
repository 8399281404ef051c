// The allocator of device memory.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda_allocator.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

class CudaMemory : public CudaFixture {};

// False if every tensor has an allocation of its own.
bool reuses_memory() {
  const char* const cache = std::getenv("FLOW_CUDA_CACHE");
  return cache == nullptr || std::string_view(cache) != "0";
}

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

  EXPECT_EQ(sum(kept).item(), 300);
}

TEST_F(CudaMemory, WithoutACacheEveryBlockIsItsOwn) {
  setenv("FLOW_CUDA_CACHE", "0", 1);
  cuda::DeviceAllocator allocator(cuda::current_device(), nullptr);
  unsetenv("FLOW_CUDA_CACHE");

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
