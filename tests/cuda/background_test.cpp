// Work of the communication thread on devices: it runs on the communication stream, overlaps with
// what the rank queues meanwhile, and ends before what needs it.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/comm/background_work.h"
#include "boxing/comm/comm_thread.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

class CudaBackground : public CudaFixture {
 protected:
  void SetUp() override {
    CudaFixture::SetUp();
    if (!reuses_memory()) GTEST_SKIP() << "memory that is freed waits";
  }
};

cuda::RankDevice& device() {
  return cuda::rank_device(*thread_state().context);
}

void run_compute_stream() {
  FLOW_CUDA_CALL(cudaStreamSynchronize(device().compute_stream()));
}

// Work on a stream, by default the communication stream; what is queued there later runs after it.
class Marked {
 public:
  Marked() : Marked(device().communication_stream()) {}

  explicit Marked(cudaStream_t stream) {
    FLOW_CUDA_CALL(cuda_emulator::enqueue(stream, [this] { has_run_ = true; }));
  }

  ~Marked() { cuda::synchronize(); }

  Marked(const Marked&) = delete;
  Marked& operator=(const Marked&) = delete;

  bool has_run() const { return has_run_; }

 private:
  std::atomic<bool> has_run_ = false;
};

bool is_nccl_missing() {
  const char* const missing = std::getenv("CUDA_EMULATOR_MISSING");
  return missing != nullptr && std::string(missing).find("libnccl") != std::string::npos;
}

// With device 0 for both ranks, and with a device each; without NCCL, the host would wait.
void run_pair(const std::function<void()>& body) {
  for (const bool share : {true, false}) {
    if (!share && is_nccl_missing()) continue;
    run_ranks(2, [&] {
      if (share) cuda::set_device(0);
      body();
    });
  }
}

std::vector<float> values(const Tensor& x) {
  return x.to("cpu").flatten().to_vector<float>();
}

struct Net : nn::Module<Net> {
  nn::Linear first, last;

  Net()
      : first(register_module("first", nn::Linear(50, 200))),
        last(register_module("last", nn::Linear(200, 300))) {}

  Tensor forward(const Tensor& x) { return last(first(x)); }
};

// The bucket of the last layer is full long before backward ends: kernels that backward queues
// later run without it, and the gradients that backward leaves are sums.
TEST_F(CudaBackground, SumsOfDdpOverlapWithBackward) {
  run_pair([] {
    const auto gradients = [](const char* where) {
      manual_seed(6);
      Net net;
      net.to(where);
      nn::parallel::DistributedDataParallel<Net> ddp(net, {.bucket_mb = 0.1});
      const Tensor x = (randn({4, 50}) + static_cast<double>(env::rank())).to(where);
      const bool is_on_device = x.device() == DeviceType::kCuda;
      if (is_on_device) ddp(x).sum().backward();  // connects the ranks
      net.zero_grad();
      const Tensor loss = ddp(x).sum();
      if (!is_on_device) {
        loss.backward();
        return values(net.last.weight.grad());
      }
      cuda::synchronize();
      comm::barrier();
      const Marked before_sums;
      int64_t num_seen = 0;
      net.first.weight.register_hook([&](const Tensor& gradient) {
        boxing::drain_comm_thread(*thread_state().context);  // the sum of the last layer is queued
        run_compute_stream();
        EXPECT_FALSE(before_sums.has_run()) << "backward waits for the sum";
        ++num_seen;
        return gradient;
      });
      loss.backward();
      EXPECT_EQ(num_seen, 1);
      EXPECT_FALSE(before_sums.has_run()) << "the host has waited for the sum";
      comm::barrier();  // the sums of both ranks run together
      run_compute_stream();
      EXPECT_TRUE(before_sums.has_run()) << "later work does not wait for the sum";
      comm::barrier();
      return values(net.last.weight.grad());
    };
    const std::vector<float> actual = gradients("cuda");
    const std::vector<float> expected = gradients("cpu");
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-4 + 1e-4 * std::abs(expected[i]));
  });
}

TEST_F(CudaBackground, CollectivesOverlapWithLaterWork) {
  run_pair([] {
    Tensor x =
        full({40'000}, static_cast<double>(env::rank()), {.dtype = float32, .device = "cuda"});
    comm::all_reduce_async_(x).wait();  // connects the ranks
    cuda::synchronize();
    comm::barrier();
    const Marked before_sum;
    comm::Work sum = comm::all_reduce_async_(x);
    boxing::drain_comm_thread(*thread_state().context);
    run_compute_stream();
    EXPECT_FALSE(before_sum.has_run());

    sum.wait();

    EXPECT_FALSE(before_sum.has_run());
    comm::barrier();  // the sums of both ranks run together
    EXPECT_EQ(values(x), std::vector<float>(40'000, 2));
    comm::barrier();
  });
}

// What only the task holds is not handed out again before the task has read it.
TEST_F(CudaBackground, KeepsTheMemoryOfItsInputs) {
  run_pair([] {
    const Tensor x = ones({5000}, {.device = "cuda"});
    static_cast<void>(comm::all_reduce_async(x).wait());  // connects the ranks
    comm::TensorWork sum = comm::all_reduce_async(x + 1);
    boxing::drain_comm_thread(*thread_state().context);
    std::vector<Tensor> others;
    for (int i = 0; i < 4; ++i)
      others.push_back(full({5000}, 7.0, {.dtype = float32, .device = "cuda"}));
    run_compute_stream();
    EXPECT_EQ(values(sum.wait()), std::vector<float>(5000, 4));
    comm::barrier();
  });
}

TEST_F(CudaBackground, FailsWhereItIsAwaited) {
  boxing::BackgroundWork work(*thread_state().context, DeviceType::kCuda,
                              [] { throw InvalidArgument("of the task"); });
  EXPECT_THROW(work.wait(), InvalidArgument);
  work.wait();
}

// Ops on a result wait for no later transfer, and later transfers do not write its memory too
// early.
TEST_F(CudaBackground, ResultsBecomeMemoryOfTheRank) {
  run_pair([] {
    const Tensor x = ones({300}, {.device = "cuda"});
    Tensor sum = comm::all_reduce_async(x).wait();
    cuda::synchronize();
    comm::barrier();
    EXPECT_FALSE(is_of_other_rank(*thread_state().context, sum.impl()));

    const Marked later_transfer;
    const Tensor twice = sum * 2;
    run_compute_stream();
    EXPECT_FALSE(later_transfer.has_run()) << "an op waits for a later transfer";

    const Marked last_use(device().compute_stream());
    sum = {};
    FLOW_CUDA_CALL(cudaStreamSynchronize(device().communication_stream()));
    EXPECT_TRUE(last_use.has_run()) << "its memory may be written before its last use";
    EXPECT_EQ(values(twice), std::vector<float>(300, 4));
  });
}

// The tensors of a task are ordered before it, once.
TEST_F(CudaBackground, TasksDoNotHoldUpTheRank) {
  run_pair([] {
    const Tensor x = ones({4, 3}, {.device = "cuda"}).t();  // the task makes it contiguous
    comm::broadcast_async(x, 0).wait();
    cuda::synchronize();
    comm::barrier();
    const Marked earlier_transfer;
    comm::TensorWork work = comm::broadcast_async(x, 0);
    boxing::drain_comm_thread(*thread_state().context);
    run_compute_stream();
    EXPECT_FALSE(earlier_transfer.has_run()) << "the rank waits for a transfer that nobody needs";
    comm::barrier();  // the other rank's result needs this rank's communication stream
    EXPECT_EQ(values(work.wait()), std::vector<float>(12, 1));
  });
}

TEST_F(CudaBackground, TakesMemoryOfItsStream) {
  RankContext& rank = *thread_state().context;
  Tensor made;
  boxing::BackgroundWork work(rank, DeviceType::kCuda,
                              [&] { made = ones({300}, {.device = "cuda"}); });
  work.wait();
  const int64_t in_use = cuda::memory_stats().bytes_in_use;
  const void* const there = made.impl().data();
  EXPECT_EQ(values(made * 2), std::vector<float>(300, 2));
  made = {};
  EXPECT_LT(cuda::memory_stats().bytes_in_use, in_use);
  // The compute stream gets other memory, as nothing orders it with the communication stream.
  EXPECT_NE(ones({300}, {.device = "cuda"}).impl().data(), there);
}

}  // namespace

}  // namespace flow
