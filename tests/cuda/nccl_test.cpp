// Data between ranks that have a device each goes through NCCL, emulated.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute_op.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/dispatch.h"
#include "core/env.h"
#include "core/error.h"
#include "nn/flow.h"
#include "tests/support/cuda_emulator/library_hooks.h"

namespace flow {

namespace {

class CudaNccl : public testing::Test {
 protected:
  void SetUp() override {
    const char* const missing = std::getenv("CUDA_EMULATOR_MISSING");
    if (missing != nullptr && std::string(missing).find("libnccl") != std::string::npos)
      GTEST_SKIP() << "NCCL is missing";
  }
};

std::vector<double> values(const Tensor& x) {
  return cast(x.to("cpu"), float64).flatten().to_vector<double>();
}

std::vector<double> part_of(const Tensor& x) {
  if (!x.placement().contains(env::rank())) return {};
  return values(x.to_local());
}

TEST_F(CudaNccl, RedistributesWithTheBitsOfHostMemory) {
  const int64_t before = cuda_emulator::library_calls().nccl;
  run_ranks(2, [] {
    const Placement host("cpu", {0, 1}), devices("cuda", {0, 1});
    const auto expect_same = [&](const Tensor& x, const Sbp& to) {
      EXPECT_EQ(part_of(x.to("cuda").to_global({.placement = devices, .sbp = to})),
                part_of(x.to_global({.placement = host, .sbp = to})))
          << x.meta() << " to " << to << ", rank " << env::rank();
    };
    for (const DType dtype : {float32, bfloat16, int32}) {
      for (const Shape& shape : {Shape{5, 7}, Shape{211, 307}}) {
        for (const Sbp from : {sbp::split(0), sbp::split(1), sbp::partial_sum, sbp::partial_max}) {
          const Tensor x =
              from.is_partial()
                  ? cast(randn(shape) * 100, dtype).to_global({.placement = host, .sbp = from})
                  : cast(randn(shape, {.placement = host, .sbp = from}) * 100, dtype);
          for (const Sbp to : {sbp::split(0), sbp::split(1), sbp::broadcast})
            expect_same(x, to);
        }
      }
    }
    const Tensor x = randn({5, 3}).to_global({.placement = host, .sbp = sbp::partial_sum});
    const Tensor there = x.to("cuda");
    EXPECT_EQ(part_of(dispatch(boxing::kAllReduceMean, {&there}, Site::here())),
              part_of(dispatch(boxing::kAllReduceMean, {&x}, Site::here())));
  });
  EXPECT_GT(cuda_emulator::library_calls().nccl, before);
}

TEST_F(CudaNccl, CollectivesOfLocalTensorsHaveTheBitsOfHostMemory) {
  run_ranks(2, [] {
    const Tensor x = randn({70, 301}) * 10;
    const Tensor there = x.to("cuda");
    const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> calls = {
        {"all_reduce", [](const Tensor& t) { return comm::all_reduce(t); }},
        {"max", [](const Tensor& t) { return comm::all_reduce(t, {.op = comm::Reduction::kMax}); }},
        {"reduce", [](const Tensor& t) { return comm::reduce(t, 1); }},
        {"reduce_scatter", [](const Tensor& t) { return comm::reduce_scatter(t); }},
        {"all_gather",
         [](const Tensor& t) { return comm::all_gather(t.narrow(0, 0, 1 + env::rank())); }},
        {"gather", [](const Tensor& t) { return comm::gather(t.narrow(0, 0, 3), 1); }},
        {"scatter", [](const Tensor& t) { return comm::scatter(t, 1); }},
        {"broadcast", [](const Tensor& t) { return comm::broadcast(t, 1); }},
        {"all_to_all",
         [](const Tensor& t) {
           return comm::all_to_all(t, {.rows = {1 + env::rank(), t.size(0) - 1 - env::rank()}});
         }},
    };
    const int64_t before = cuda_emulator::library_calls().nccl;
    for (const auto& [name, call] : calls)
      EXPECT_EQ(values(call(there)), values(call(x))) << name;
    comm::barrier();
    EXPECT_GT(cuda_emulator::library_calls().nccl, before);
    Tensor in_place = there.clone();
    comm::all_reduce_async_(in_place).wait();
    EXPECT_EQ(values(in_place), values(comm::all_reduce(x)));
  });
}

TEST_F(CudaNccl, WaitsForNoWorkOfTheDevice) {
  if (env_int("FLOW_CUDA_CACHE", 1) == 0) GTEST_SKIP() << "memory that is freed waits";
  run_ranks(2, [] {
    const Tensor x = ones({600, 50}, {.device = "cuda"});
    static_cast<void>(comm::all_reduce(x));  // connects the ranks
    cuda::synchronize();
    comm::barrier();
    std::atomic<bool> has_run = false;
    FLOW_CUDA_CALL(cuda_emulator::enqueue(
        cuda::rank_device(*thread_state().context).compute_stream(), [&] { has_run = true; }));

    const Tensor sum = comm::all_reduce(x);

    EXPECT_FALSE(has_run);
    comm::barrier();
    EXPECT_EQ(values(sum), std::vector<double>(30000, 2));
    comm::barrier();
  });
}

TEST_F(CudaNccl, AddsByItselfIfAllowed) {
  setenv("FLOW_FAST_REDUCE", "1", 1);
  run_ranks(2, [] {
    const Tensor x = full({600, 50}, static_cast<double>(env::rank() + 1), {.dtype = float32});
    const Tensor there = x.to("cuda");
    comm::barrier();
    const int64_t before = cuda_emulator::library_calls().nccl;
    comm::barrier();
    EXPECT_EQ(values(comm::all_reduce(there)), std::vector<double>(30000, 3));
    EXPECT_EQ(values(comm::all_reduce(there + there)), std::vector<double>(30000, 6));
    comm::barrier();
    EXPECT_EQ(cuda_emulator::library_calls().nccl - before, 4);  // one for a rank and a call
    EXPECT_EQ(values(comm::all_reduce(cast(there, int8))), std::vector<double>(30000, 3));
  });
  unsetenv("FLOW_FAST_REDUCE");
}

// NCCL takes the number of a NaN and a number.
TEST_F(CudaNccl, LeavesNanTheLargestAndTheSmallest) {
  setenv("FLOW_FAST_REDUCE", "1", 1);
  run_ranks(2, [] {
    const double own = env::rank() == 0 ? std::numeric_limits<double>::quiet_NaN() : 1;
    const Tensor x = full({300}, own, {.dtype = float32, .device = "cuda"});
    for (const auto op : {comm::Reduction::kMax, comm::Reduction::kMin}) {
      const std::vector<double> all = values(comm::all_reduce(x, {.op = op}));
      EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](double one) { return std::isnan(one); }));
    }
  });
  unsetenv("FLOW_FAST_REDUCE");
}

// Rank 0 would wait forever for the data of rank 1.
TEST_F(CudaNccl, IsAbortedWhenARankFails) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_ranks(2,
                         [] {
                           const Tensor x = ones({3}, {.device = "cuda"});
                           static_cast<void>(comm::all_reduce(x));
                           comm::barrier();
                           cuda_emulator::fail_nccl_of(1);
                           comm::barrier();
                           static_cast<void>(comm::all_reduce(x));
                         }),
               DistributedError);
  cuda_emulator::fail_nccl_of(-1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

// The device of rank 0 would wait forever, and the host for the device.
TEST_F(CudaNccl, IsAbortedWhenItFailsInQueuedWork) {
  const auto start = std::chrono::steady_clock::now();
  EXPECT_THROW(run_ranks(2,
                         [] {
                           const Tensor x = ones({3}, {.device = "cuda"});
                           static_cast<void>(comm::all_gather(x));
                           comm::barrier();
                           cuda_emulator::fail_queued_nccl_of(0);
                           comm::barrier();
                           const Tensor all = comm::all_gather(x);
                           // What is read is not what was gathered.
                           if (env::rank() == 0) {
                             EXPECT_THROW(values(all), DistributedError);
                             // A rank that knows may save what it has.
                             EXPECT_EQ(values(x), std::vector<double>(3, 1));
                           }
                           comm::barrier();
                         }),
               DistributedError);
  cuda_emulator::fail_queued_nccl_of(-1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
}

// Ranks 0 and 2 have device 0, so the three of them cannot use it; ranks 1 and 2 can.
TEST_F(CudaNccl, ConnectsOnlyRanksWithDistinctDevices) {
  run_ranks(3, [] {
    const Tensor x = ones({4}, {.device = "cuda"});
    comm::barrier();
    const int64_t before = cuda_emulator::library_calls().nccl;
    comm::barrier();
    EXPECT_EQ(values(comm::all_reduce(x)), std::vector<double>(4, 3));
    comm::barrier();
    EXPECT_EQ(cuda_emulator::library_calls().nccl, before);
    comm::barrier();  // the others would already be counted
    if (env::rank() != 0) {
      EXPECT_EQ(values(comm::all_reduce(x, {.ranks = {1, 2}})), std::vector<double>(4, 2));
    }
    comm::barrier();
    EXPECT_GT(cuda_emulator::library_calls().nccl, before);
  });
}

TEST_F(CudaNccl, TellsDevicesApartByTheirUuids) {
  const auto calls_of_a_sum = [] {
    const int64_t before = cuda_emulator::library_calls().nccl;
    run_ranks(2, [] {
      EXPECT_EQ(values(comm::all_reduce(ones({4}, {.device = "cuda"}))), std::vector<double>(4, 2));
    });
    return cuda_emulator::library_calls().nccl - before;
  };
  EXPECT_GT(calls_of_a_sum(), 0);
  cuda_emulator::share_uuid(true);
  EXPECT_EQ(calls_of_a_sum(), 0);
  cuda_emulator::share_uuid(false);
}

TEST_F(CudaNccl, AsksForTheUuidOfADeviceOnce) {
  const int64_t before = cuda_emulator::num_property_queries();
  run_ranks(3, [] {
    const Tensor x = ones({4}, {.device = "cuda"});
    static_cast<void>(comm::all_reduce(x));
    if (env::rank() != 0) static_cast<void>(comm::all_reduce(x, {.ranks = {1, 2}}));
  });
  EXPECT_EQ(cuda_emulator::num_property_queries() - before, 3);
}

TEST_F(CudaNccl, LeavesNoCommunicatorsBehind) {
  const int64_t before = cuda_emulator::live_library_objects();
  run_ranks(2, [] { static_cast<void>(comm::all_reduce(ones({3}, {.device = "cuda"}))); });
  EXPECT_EQ(cuda_emulator::live_library_objects(), before);
}

}  // namespace

}  // namespace flow
