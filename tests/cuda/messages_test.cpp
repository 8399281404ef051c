// Messages between thread ranks, edges of pipelines and replicas that are made of local tensors go
// from device to device: in order, without a wait of the host, and with the checks of host memory.
#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_error.h"
#include "core/error.h"
#include "nn/flow.h"
#include "tests/cuda/compiled_trainings.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

class CudaMessages : public CudaFixture {};

constexpr int64_t kSmall = 40;      // buffered
constexpr int64_t kLarge = 30'000;  // not buffered: 120 KB

int64_t me() {
  return env::rank();
}

// With device 0 for both ranks, and with a device each.
void run_pair(const std::function<void()>& body) {
  for (const bool share : {true, false}) {
    run_ranks(2, [&] {
      if (share) cuda::set_device(0);
      body();
    });
  }
}

Tensor filled(int64_t size, double value) {
  return full({size}, value, {.dtype = float32, .device = "cuda"});
}

std::vector<float> values(const Tensor& x) {
  return x.to("cpu").to_vector<float>();
}

std::vector<float> repeated(int64_t size, float value) {
  return std::vector<float>(static_cast<size_t>(size), value);
}

// Lets the rank's device do something, and tells whether it has done it.
class Pending {
 public:
  Pending() {
    FLOW_CUDA_CALL(cuda_emulator::enqueue(
        cuda::rank_device(*thread_state().context).compute_stream(), [this] { is_done_ = true; }));
  }

  ~Pending() { cuda::synchronize(); }

  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  bool is_done() const { return is_done_; }

 private:
  std::atomic<bool> is_done_ = false;
};

TEST_F(CudaMessages, WaitForNoWorkOfTheDevice) {
  if (!reuses_memory()) GTEST_SKIP() << "memory that is freed waits";
  run_pair([] {
    for (const int64_t size : {kSmall, kLarge}) {
      const Tensor x = filled(size, static_cast<double>(me()) + 1);
      const Tensor received = filled(size, 0);
      comm::barrier();
      const Pending pending;
      comm::Work receiving = comm::irecv(received, 1 - me());
      comm::send(x, 1 - me());
      receiving.wait();
      EXPECT_FALSE(pending.is_done()) << size;
      comm::barrier();
      EXPECT_EQ(values(received), repeated(size, static_cast<float>(2 - me())));
      comm::barrier();
    }
  });
}

// Whichever side comes second copies. The other one has queued work on its memory before, and
// queues more after its call.
TEST_F(CudaMessages, AreOrderedWithTheWorkOfBothRanks) {
  run_pair([] {
    for (const int64_t size : {kSmall, kLarge}) {
      for (const bool is_receiver_first : {false, true}) {
        const auto meet = [&](bool is_first) {
          if (is_first == is_receiver_first) comm::barrier();
        };
        if (me() == 0) {
          const Tensor x = filled(size, 3);
          meet(true);
          comm::Work sending = comm::isend(x, 1);
          meet(false);
          sending.wait();
          x.fill_(4);
          cuda::synchronize();
          comm::barrier();
          comm::barrier();
        } else {
          const Tensor received = filled(size, 5);
          meet(false);
          comm::Work receiving = comm::irecv(received, 0);
          meet(true);
          receiving.wait();
          const Tensor read = received + 0;
          received.fill_(6);
          comm::barrier();
          EXPECT_EQ(values(read), repeated(size, 3)) << size << ' ' << is_receiver_first;
          EXPECT_EQ(values(received), repeated(size, 6)) << size << ' ' << is_receiver_first;
          comm::barrier();
        }
      }
    }
  });
}

// The memory in which a small message waits returns to its rank when the message was received.
TEST_F(CudaMessages, AreReadBeforeTheirBufferIsUsedAgain) {
  run_pair([] {
    const Tensor received = filled(kSmall, 0);
    if (me() == 0) comm::send(filled(kSmall, 3), 1);
    comm::barrier();
    if (me() == 1) comm::recv(received, 0);
    comm::barrier();
    if (me() == 0) {
      std::vector<Tensor> others;
      for (int i = 0; i < 8; ++i)
        others.push_back(filled(kSmall, 7));
      cuda::synchronize();
    }
    comm::barrier();
    if (me() == 1) {
      EXPECT_EQ(values(received), repeated(kSmall, 3));
    }
    comm::barrier();
  });
}

TEST_F(CudaMessages, OfTwoRanksThatSendFirstDoNotBlock) {
  run_pair([] {
    const Tensor received = filled(kSmall, 0);
    comm::send(filled(kSmall, static_cast<double>(me())), 1 - me());
    comm::recv(received, 1 - me());
    EXPECT_EQ(values(received), repeated(kSmall, static_cast<float>(1 - me())));
  });
}

TEST_F(CudaMessages, MatchInOrderAndByTag) {
  run_pair([] {
    for (const int64_t size : {kSmall, kLarge}) {
      if (me() == 0) {
        std::vector<comm::Work> sending;
        std::vector<Tensor> sent;
        for (const auto& [tag, value] : {std::pair(1, 10), std::pair(1, 11), std::pair(2, 20)}) {
          sent.push_back(filled(size, value));
          sending.push_back(comm::isend(sent.back(), 1, {.tag = tag}));
        }
        for (comm::Work& work : sending)
          work.wait();
        continue;
      }
      const std::array<Tensor, 3> received = {filled(size, 0), filled(size, 0), filled(size, 0)};
      comm::recv(received[2], 0, {.tag = 2});
      comm::recv(received[0], 0, {.tag = 1});
      comm::recv(received[1], 0, {.tag = 1});
      EXPECT_EQ(values(received[0]), repeated(size, 10));
      EXPECT_EQ(values(received[1]), repeated(size, 11));
      EXPECT_EQ(values(received[2]), repeated(size, 20));
    }
  });
}

TEST_F(CudaMessages, PassBetweenHostMemoryAndDevices) {
  run_pair([] {
    for (const int64_t size : {kSmall, kLarge}) {
      for (const int64_t on_device : {0, 1}) {
        const char* const device = me() == on_device ? "cuda" : "cpu";
        const Tensor x = full({size}, 3, {.dtype = float32, .device = device});
        if (me() == 0) {
          comm::send(x + 1, 1);
        } else {
          comm::recv(x, 0);
          EXPECT_EQ(values(x), repeated(size, 4)) << size << ", from rank " << on_device;
        }
      }
    }
  });
}

// Both ranks learn of a message of the wrong size.
TEST_F(CudaMessages, OfTheWrongSizeFailBothRanks) {
  std::array<std::string, 2> errors;
  const auto exchange = [&] {
    cuda::set_device(0);
    try {
      if (me() == 0) {
        comm::send(filled(kLarge, 1), 1);
      } else {
        comm::recv(filled(kLarge + 1, 1), 0);
      }
    } catch (const DistributedError& error) {
      errors[static_cast<size_t>(me())] = error.what();
      throw;
    }
  };

  EXPECT_THROW(run_ranks(2, exchange), DistributedError);

  for (const std::string& error : errors) {
    EXPECT_NE(error.find("120004 bytes"), std::string::npos) << error;
    EXPECT_NE(error.find("120000 bytes"), std::string::npos) << error;
  }
}

struct Net : nn::Module<Net> {
  nn::Linear used, small, unused;

  Net()
      : used(register_module("used", nn::Linear(200, 300))),
        small(register_module("small", nn::Linear(300, 2))),
        unused(register_module("unused", nn::Linear(3, 3))) {}

  Tensor forward(const Tensor& x) { return small(used(x)); }
};

// Small and large buckets, and parameters that no rank uses.
TEST_F(CudaMessages, AreNotNeededToAverageGradients) {
  run_ranks(2, [] {
    cuda::set_device(0);
    const auto gradients = [](const char* device) {
      manual_seed(6);
      Net net;
      net.to(device);
      nn::parallel::DistributedDataParallel<Net> ddp(net, {.bucket_mb = 0.1});
      const Tensor x = (randn({4, 200}) + static_cast<double>(me())).to(device);
      for (int step = 0; step < 2; ++step) {
        const Tensor loss = ddp(x).sum();
        comm::barrier();
        std::optional<Pending> pending;
        if (x.device() == DeviceType::kCuda) pending.emplace();
        loss.backward();
        if (pending && step == 1 && reuses_memory()) {
          EXPECT_FALSE(pending->is_done());
        }
        comm::barrier();
      }
      EXPECT_FALSE(net.unused.weight.grad().defined());
      EXPECT_EQ(net.used.weight.grad().device(), x.device());
      return values(net.used.weight.grad().flatten());
    };
    const std::vector<float> expected = gradients("cpu");
    const std::vector<float> actual = gradients("cuda");
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(actual[i], expected[i], 1e-4 + 1e-4 * std::abs(expected[i]));
  });
}

// On a device, the host waits for no work in a step that has run before.
std::vector<double> train_observed(const char* device) {
  const bool is_on_device = Placement(device, {0}).device_type() == DeviceType::kCuda;
  return train_in_stages(device, [&](int step, const std::function<Tensor()>& run) {
    const bool is_observed = step == 2 && is_on_device;
    std::optional<Pending> pending;
    if (is_observed) {
      comm::barrier();
      pending.emplace();
    }
    const Tensor loss = run();
    if (is_observed && reuses_memory()) {
      EXPECT_FALSE(pending->is_done());
    }
    comm::barrier();
    return loss;
  });
}

TEST_F(CudaMessages, AreTheEdgesOfPipelines) {
  run_pair([] {
    const std::vector<double> expected = train_observed("cpu");
    const std::vector<double> actual = train_observed("cuda");
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(actual[i], expected[i], 1e-4 + 1e-4 * std::abs(expected[i]));
  });
}

TEST_F(CudaMessages, AreNotNeededToMakeReplicas) {
  run_ranks(2, [] {
    cuda::set_device(0);
    const Tensor x = filled(kSmall, static_cast<double>(me()) + 1);
    const auto replicate = [&] {
      return x.to_global({.placement = Placement("cuda", {0, 1}), .sbp = sbp::broadcast});
    };
    static_cast<void>(replicate());  // connects the ranks
    cuda::synchronize();
    comm::barrier();
    const Pending pending;
    const Tensor global = replicate();
    if (reuses_memory()) {
      EXPECT_FALSE(pending.is_done());
    }
    comm::barrier();
    EXPECT_EQ(values(global.to_local()), repeated(kSmall, 1));
    comm::barrier();
  });
}

// FLOW_CHECK=1 compares what replicas are made of.
TEST_F(CudaMessages, FindReplicasThatDiffer) {
  setenv("FLOW_CHECK", "1", 1);
  const auto replicate = [] {
    run_ranks(2, [] {
      const Tensor x = filled(kSmall, static_cast<double>(me()));
      static_cast<void>(
          x.to_global({.placement = Placement("cuda", {0, 1}), .sbp = sbp::broadcast}));
    });
  };
  EXPECT_THROW(replicate(), InvalidArgument);
  unsetenv("FLOW_CHECK");
}

}  // namespace

}  // namespace flow
