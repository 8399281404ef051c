// What only an emulated device can show of its memory: shortage, failing calls, and devices that
// read each other's memory at the worst moment.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/cuda_launch.h"
#include "core/device/device_memory.h"
#include "core/device/device_time.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/reduce/reduce.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

constexpr size_t kMiB = size_t{1} << 20;
const TensorOptions kOnDevice{.device = "cuda"};

RankContext& rank() {
  return *thread_state().context;
}

cudaStream_t stream() {
  return cuda::rank_device(rank()).compute_stream();
}

__global__ void write_one(int* y) {
  *y = 1;
}

// A stream and memory of one device; the calling thread's device is as before.
struct OnDevice {
  explicit OnDevice(int device) {
    int outer = 0;
    FLOW_CUDA_CALL(cudaGetDevice(&outer));
    FLOW_CUDA_CALL(cudaSetDevice(device));
    FLOW_CUDA_CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    FLOW_CUDA_CALL(cudaMalloc(&memory, sizeof(int)));
    FLOW_CUDA_CALL(cudaSetDevice(outer));
  }

  ~OnDevice() {
    cuda::warn_if_failed(cudaStreamDestroy(stream), "cudaStreamDestroy");
    cuda::warn_if_failed(cudaFree(memory), "cudaFree");
  }

  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  int* number() const { return static_cast<int*>(memory); }

  cudaStream_t stream = nullptr;
  void* memory = nullptr;
};

// Sets the memory of each device until the end of the scope.
struct MemoryLimit {
  explicit MemoryLimit(size_t bytes) { cuda_emulator::set_device_memory(bytes); }

  ~MemoryLimit() { cuda_emulator::set_device_memory(size_t{4} << 30); }

  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
};

// Makes all calls fail until the end of the scope, and keeps what is logged.
class FailingCalls {
 public:
  explicit FailingCalls(cudaError_t error) {
    testing::internal::CaptureStderr();
    cuda_emulator::fail_calls(error);
  }

  ~FailingCalls() {
    if (!has_ended_) end();
  }

  FailingCalls(const FailingCalls&) = delete;
  FailingCalls& operator=(const FailingCalls&) = delete;

  std::string end() {
    has_ended_ = true;
    cuda_emulator::fail_calls(cudaSuccess);
    return testing::internal::GetCapturedStderr();
  }

 private:
  bool has_ended_ = false;
};

TEST(CudaDevicesDeathTest, AKernelThatTouchesTheMemoryOfAnotherDeviceFaults) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  cuda::synchronize();
  const OnDevice own(cuda::current_device());
  const OnDevice other(1 - cuda::current_device());

  cuda::launch(write_one, 1, 1, 0, own.stream, own.number());
  EXPECT_EQ(cudaStreamSynchronize(own.stream), cudaSuccess);
  EXPECT_DEATH(
      {
        cuda::launch(write_one, 1, 1, 0, own.stream, other.number());
        static_cast<void>(cudaStreamSynchronize(own.stream));
      },
      "");
}

// A stream whose work waits for that of another device does not open that device's memory to it.
TEST(CudaDevicesDeathTest, AWaitForAnotherDeviceOpensNoMemory) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  cuda::synchronize();
  const OnDevice own(cuda::current_device());
  const OnDevice other(1 - cuda::current_device());
  cudaEvent_t reached = nullptr;
  ASSERT_EQ(cudaSetDevice(1 - cuda::current_device()), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&reached, cudaEventDisableTiming), cudaSuccess);
  cuda::launch(write_one, 1, 1, 0, other.stream, other.number());
  ASSERT_EQ(cudaEventRecord(reached, other.stream), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(cuda::current_device()), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(own.stream, reached, 0), cudaSuccess);

  EXPECT_DEATH(
      {
        cuda::launch(write_one, 1, 1, 0, own.stream, other.number());
        static_cast<void>(cudaStreamSynchronize(own.stream));
      },
      "");

  cuda::launch(write_one, 1, 1, 0, own.stream, own.number());
  EXPECT_EQ(cudaStreamSynchronize(own.stream), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(reached), cudaSuccess);
}

TEST(CudaDevices, StreamsTakeKernelsAndEventsOfTheirDeviceOnly) {
  cuda::synchronize();
  const OnDevice other(1 - cuda::current_device());
  cudaEvent_t event = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);

  EXPECT_THROW(cuda::launch(write_one, 1, 1, 0, other.stream, other.number()), Error);
  EXPECT_EQ(cudaEventRecord(event, other.stream), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventRecord(event, stream()), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

TEST(CudaDevices, PeerCopiesNameTheDevicesOfTheirMemory) {
  cuda::synchronize();
  const int here = cuda::current_device();
  const OnDevice own(here);
  const OnDevice other(1 - here);
  ASSERT_EQ(cudaMemsetAsync(other.memory, 0, sizeof(int), other.stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(other.stream), cudaSuccess);

  EXPECT_EQ(cudaMemcpyPeerAsync(own.memory, here, other.memory, here, sizeof(int), own.stream),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpyPeerAsync(own.memory, here, other.memory, 1 - here, sizeof(int), own.stream),
            cudaSuccess);
  int number = 1;
  EXPECT_EQ(cudaMemcpyAsync(&number, own.memory, sizeof(int), cudaMemcpyDeviceToHost, own.stream),
            cudaSuccess);
  EXPECT_EQ(cudaStreamSynchronize(own.stream), cudaSuccess);
  EXPECT_EQ(number, 0);
}

TEST(CudaDevices, EachHasMemoryOfItsOwn) {
  cuda::synchronize();
  const int here = cuda::current_device();
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cudaMemGetInfo(&before, &total), cudaSuccess);
  {
    const OnDevice other(1 - here);
    ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
    EXPECT_EQ(after, before);
  }
  const OnDevice own(here);
  ASSERT_EQ(cudaMemGetInfo(&after, &total), cudaSuccess);
  EXPECT_LT(after, before);
}

// ---- the end of what a program holds

// Deleters run where an exception would end the process.
TEST(CudaDeleters, LogTheErrorsOfTheDevice) {
  const WithoutCache without_cache;
  cuda::DeviceAllocator allocator(cuda::current_device(), stream());
  void* block = allocator.allocate(100);
  cuda::PinnedRing ring(stream());
  ring.upload(block, "number", 6);
  Tensor x = ones({4}, kOnDevice);
  DeviceMark mark = DeviceMark::now(rank());
  cuda::synchronize();
  FailingCalls failing(cudaErrorIllegalAddress);

  x = {};
  mark = {};
  allocator.deallocate(block, 100);
  ring.release();

  const std::string log = failing.end();
  for (const char* call : {"cudaEventDestroy", "cudaFree", "cudaFreeHost", "cudaStreamSynchronize"})
    EXPECT_NE(log.find(std::string(call) + " failed"), std::string::npos) << call << '\n' << log;
}

TEST(CudaDeleters, SayNothingAfterTheEndOfCuda) {
  Tensor x = ones({4}, kOnDevice);
  DeviceMark mark = DeviceMark::now(rank());
  cuda::synchronize();
  FailingCalls failing(cudaErrorCudartUnloading);

  x = {};
  mark = {};

  EXPECT_EQ(failing.end(), "");
}

// The thread that drops the last reference computes on another device, and goes on to do so.
TEST(CudaDeleters, LeaveTheDeviceOfTheirThreadAsItIs) {
  Tensor kept;
  run_ranks(2, [&] {
    const Tensor x = full({100}, env::rank(), kOnDevice);
    if (env::rank() == 1) kept = x;
  });
  sum(ones({4}, kOnDevice));
  int before = -1, after = -1;
  ASSERT_EQ(cudaGetDevice(&before), cudaSuccess);

  kept = {};

  ASSERT_EQ(cudaGetDevice(&after), cudaSuccess);
  EXPECT_EQ(after, before);
}

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

// A kernel has failed, and nothing is cached that could be given back before the error shows.
TEST(CudaAllocator, TellsAnErrorOfEarlierWorkFromAShortage) {
  cuda::synchronize();
  cuda::DeviceAllocator allocator(cuda::current_device(), stream());
  FailingCalls failing(cudaErrorIllegalAddress);
  std::string message;

  try {
    allocator.allocate(100);
  } catch (const OutOfMemory& error) {
    ADD_FAILURE() << error.what();
  } catch (const Error& error) {
    message = error.what();
  }

  EXPECT_NE(message.find("cudaMalloc failed: cudaErrorIllegalAddress"), std::string::npos)
      << message;
}

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

// ---- memory of other ranks

// Rank 1 queues a copy of a tensor of rank 0, which then frees it and writes to the memory again.
// Both ranks run their work only when they wait for it.
TEST(CudaOthersMemory, IsNotUsedAgainBeforeItsReadersHaveRead) {
  for (const int64_t reader : {1, 2}) {  // on another device, and on the same
    Tensor shared;
    run_ranks(3, [&] {
      if (env::rank() == 0) shared = full({1000}, 1, kOnDevice);
      env::barrier();
      Tensor copy;
      if (env::rank() == reader) copy = shared.to("cuda").clone();
      env::barrier();
      if (env::rank() == 0) {
        shared = {};
        const Tensor next = full({1000}, 2, kOnDevice);
        EXPECT_EQ(sum(next).item(), 2000);  // runs the work of rank 0
      }
      env::barrier();
      if (env::rank() == reader) {
        EXPECT_EQ(sum(copy).item(), 1000);
      }
    });
  }
}

// Without an order ranks 1 and 2 would read memory that has not been written, and rank 0 would read
// it before rank 2 has written it again.
TEST(CudaOthersMemory, IsOrderedBetweenRanks) {
  Tensor shared;
  run_ranks(3, [&] {
    if (env::rank() == 0) shared = full({1000}, 1, kOnDevice);
    env::barrier();
    if (env::rank() == 1) {  // on another device
      EXPECT_EQ(sum(shared.to("cuda")).item(), 1000);
    }
    if (env::rank() == 2) {
      EXPECT_EQ(sum(shared).item(), 1000);
    }
    env::barrier();
    if (env::rank() == 2) shared.add_(1);
    env::barrier();
    if (env::rank() == 0) {
      EXPECT_EQ(sum(shared).item(), 2000);
    }
    env::barrier();
  });
}

}  // namespace

}  // namespace flow
