// What only an emulated device can show of its memory: shortage, and what a rank leaves.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/reduce/reduce.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

constexpr size_t kMiB = size_t{1} << 20;
const TensorOptions kOnDevice{.device = "cuda"};

// Sets the memory of devices until the end of the scope.
struct MemoryLimit {
  explicit MemoryLimit(size_t bytes) { cuda_emulator::set_device_memory(bytes); }

  ~MemoryLimit() { cuda_emulator::set_device_memory(size_t{4} << 30); }

  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

TEST(CudaRing, IsFreedWhenItsRankEnds) {
  const auto upload = [] {
    run_ranks(1, [] {
      const size_t before = cuda_emulator::pinned_bytes();
      EXPECT_EQ(sum(tensor(Floats(5000, 1), {5000}).to("cuda")).item(), 5000);
      EXPECT_GE(cuda_emulator::pinned_bytes(), before + cuda::PinnedRing::kSlotBytes);
    });
  };
  upload();  // makes what the next rank of the device uses again
  const size_t before = cuda_emulator::pinned_bytes();

  upload();

  EXPECT_EQ(cuda_emulator::pinned_bytes(), before);
}

// ---- shortage

class CudaShortage : public testing::Test {
 protected:
  void SetUp() override {
    if (!reuses_memory()) GTEST_SKIP() << "FLOW_CUDA_CACHE=0";
    // What ended ranks have cached.
    EXPECT_THROW(empty({int64_t{1} << 44}, kOnDevice), OutOfMemory);
  }

  // What all ranks have taken of the device.
  static size_t taken() {
    size_t free = 0, total = 0;
    FLOW_CUDA_CALL(cudaMemGetInfo(&free, &total));
    return total - free;
  }
};

TEST_F(CudaShortage, EmptiesTheOwnCacheFirst) {
  const MemoryLimit limit(taken() + 100 * kMiB);
  { const Tensor x = empty({60 << 18}, kOnDevice); }  // 60 MiB
  EXPECT_GE(cuda::memory_stats().bytes_cached, int64_t{60 * kMiB});

  const Tensor y = empty({80 << 18}, kOnDevice);

  EXPECT_LT(cuda::memory_stats().bytes_cached, int64_t{60 * kMiB});
}

TEST_F(CudaShortage, EmptiesTheCachesOfOtherRanksThen) {
  const int64_t before = cuda::memory_stats().bytes_cached;
  const MemoryLimit limit(taken() + 100 * kMiB);
  run_ranks(1, [] { empty({60 << 18}, kOnDevice); });  // on the same device
  EXPECT_GE(taken(), 60 * kMiB);

  const Tensor y = empty({80 << 18}, kOnDevice);

  EXPECT_EQ(cuda::memory_stats().bytes_cached, before);
}

TEST_F(CudaShortage, EmptiesTheCachesOfRunningRanksAfterTheirWork) {
  const MemoryLimit limit(taken() + 150 * kMiB);
  run_ranks(3, [] {  // 0 and 2 share a device
    if (env::rank() == 2) {
      const Tensor x = ones({60 << 10}, kOnDevice);
      const Tensor cached = empty({60 << 18}, kOnDevice);
    }
    env::barrier();
    if (env::rank() == 0) {
      const Tensor y = empty({120 << 18}, kOnDevice);
      EXPECT_EQ(y.numel(), 120 << 18);
    }
    env::barrier();
  });
}

TEST_F(CudaShortage, TakesABlockWhereThereIsNoRoomForASegment) {
  const MemoryLimit limit(taken() + 8 * kMiB);

  const Tensor x = empty({4 << 18}, kOnDevice);  // 4 of the 20 MiB that are taken otherwise

  EXPECT_EQ(x.numel(), 4 << 18);
}

TEST_F(CudaShortage, SaysWhatIsAskedForUsedCachedAndFree) {
  const MemoryLimit limit(taken() + 40 * kMiB);
  const Tensor x = empty({15 << 18}, kOnDevice);
  const AllocatorStats stats = cuda::memory_stats();
  std::string message;

  try {
    empty({30 << 18}, kOnDevice);
  } catch (const OutOfMemory& error) {
    message = error.what();
  }

  EXPECT_NE(message.find(str("has no room for ", 30 * kMiB, " bytes; this rank uses ",
                             stats.bytes_in_use, " bytes")),
            std::string::npos)
      << message;
  EXPECT_NE(message.find(str("and caches ", cuda::memory_stats().bytes_cached)), std::string::npos)
      << message;
  EXPECT_NE(message.find("bytes free; use a smaller batch"), std::string::npos) << message;
}

}  // namespace

}  // namespace flow
