// Captured work on a device, real or emulated: it repeats, keeps its memory, and leaves nothing
// behind when it fails.
#include "core/device/device_graph.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "tests/cuda/cuda_fixture.h"

namespace flow {

namespace {

using Floats = std::vector<float>;

RankContext& rank() {
  return *thread_state().context;
}

class CapturedWork : public CudaFixture {
 protected:
  DeviceGraph capture(const std::function<void()>& queue) {
    const NoGradGuard no_grad;
    return DeviceGraph::capture(rank(), memory_, queue);
  }

  std::shared_ptr<CaptureMemory> memory_ = std::make_shared<CaptureMemory>();
};

TEST_F(CapturedWork, RunsAtEachLaunchWithTheValuesOfThatTime) {
  const Tensor x = ones({5}, {.device = "cuda"}), y = zeros({5}, {.device = "cuda"});
  const DeviceGraph graph = capture([&] {
    y.add_(x);
    y.mul_(2);
  });
  EXPECT_EQ(graph.num_nodes(), 2);
  EXPECT_EQ(y.to_vector<float>(), Floats(5, 0));

  graph.launch(rank());
  EXPECT_EQ(y.to_vector<float>(), Floats(5, 2));
  x.fill_(10);
  graph.launch(rank());
  EXPECT_EQ(y.to_vector<float>(), Floats(5, 24));
}

// A tensor that exists only in the capture has memory that nobody else gets afterwards.
TEST_F(CapturedWork, KeepsTheMemoryThatItTook) {
  const Tensor x = full({1000}, 3.0, {.device = "cuda"}), y = zeros({1000}, {.device = "cuda"});
  const DeviceGraph graph = capture([&] { y.copy_(relu(x * 2) + x); });
  EXPECT_GE(memory_->bytes(), 2 * 4000);
  EXPECT_LE(memory_->bytes(), 4 * 4000);

  std::vector<Tensor> others;
  for (int i = 0; i < 20; ++i)
    others.push_back(full({1000}, -1.0, {.device = "cuda"}));
  graph.launch(rank());
  for (const Tensor& other : others)
    ASSERT_EQ(other.to_vector<float>(), Floats(1000, -1));
  EXPECT_EQ(y.to_vector<float>(), Floats(1000, 9));
}

TEST_F(CapturedWork, SharesTheMemoryOfEarlierCaptures) {
  const Tensor x = full({1000}, 3.0, {.device = "cuda"}), y = zeros({1000}, {.device = "cuda"});
  const DeviceGraph first = capture([&] { y.copy_(relu(x * 2) + x); });
  const int64_t bytes = memory_->bytes();
  const DeviceGraph second = capture([&] { y.copy_(relu(y * 2) + x); });
  EXPECT_EQ(memory_->bytes(), bytes);
  first.launch(rank());
  second.launch(rank());
  EXPECT_EQ(y.to_vector<float>(), Floats(1000, 21));
}

TEST_F(CapturedWork, MemoryIsFreedWithTheLastGraph) {
  const Tensor x = ones({1 << 20}, {.device = "cuda"});
  const int64_t before = cuda::memory_stats().bytes_in_use;
  DeviceGraph graph = capture([&] { x.copy_(x * 2 + x); });
  memory_ = nullptr;
  EXPECT_GT(cuda::memory_stats().bytes_in_use, before);
  graph.launch(rank());
  graph = DeviceGraph();
  EXPECT_EQ(cuda::memory_stats().bytes_in_use, before);
  EXPECT_EQ(x.to_vector<float>(), Floats(1 << 20, 3));
}

// What the host reads, writes or waits for cannot be captured; the device works on.
TEST_F(CapturedWork, RefusesWhatTheHostTakesPartIn) {
  const Tensor x = ones({5}, {.device = "cuda"});
  const Tensor host = zeros({5});
  const std::vector<std::function<void()>> calls = {
      [&] { static_cast<void>(x.sum().item()); },
      [&] { static_cast<void>(x.to("cpu")); },
      [&] { x.copy_(host); },
      [&] { cuda::synchronize(); },
      [&] { static_cast<void>(randperm(5, {.device = "cuda"})); },
      [&] { static_cast<void>(check_finite(x)); },
  };
  for (const auto& call : calls) {
    EXPECT_THROW(capture([&] {
                   x.add_(1);
                   call();
                 }),
                 Error);
    EXPECT_EQ(x.to_vector<float>(), Floats(5, 1));
  }
  const DeviceGraph graph = capture([&] { x.add_(1); });
  graph.launch(rank());
  EXPECT_EQ(x.to_vector<float>(), Floats(5, 2));
}

TEST_F(CapturedWork, AnErrorOfTheCallerLeavesNothing) {
  const Tensor x = ones({5}, {.device = "cuda"});
  EXPECT_THROW(capture([&] {
                 x.add_(1);
                 throw InvalidArgument("of the caller");
               }),
               InvalidArgument);
  x.add_(1);
  EXPECT_EQ(x.to_vector<float>(), Floats(5, 2));
}

// Each launch reads its random stream in device memory.
TEST_F(CapturedWork, DrawsOtherNumbersAtEachLaunch) {
  const Tensor y = zeros({64}, {.device = "cuda"});
  const Ref<Storage> place = allocate_storage(rank(), DeviceType::kCuda, sizeof(RandomStream));
  const DeviceGraph graph = capture([&] {
    const CapturedDraw draw(reinterpret_cast<const RandomStream*>(place->data()));
    y.uniform_();
    EXPECT_TRUE(draw.was_used());
  });
  for (const uint64_t seed : {5, 6}) {
    const RandomStream stream{.seed = seed, .stream = 0};
    copy_bytes(rank(), place->data(), DeviceType::kCuda, &stream, DeviceType::kCpu, sizeof stream);
    graph.launch(rank());
    manual_seed(seed);
    EXPECT_EQ(y.to_vector<float>(), rand({64}).to_vector<float>());
  }
}

// Other ranks of the device allocate and compute while this one captures.
TEST_F(CapturedWork, RanksWorkOnWhileAnotherCaptures) {
  std::atomic<int> turn = 0;
  const auto wait_for = [&](int wanted) {
    while (turn.load() < wanted)
      std::this_thread::yield();
  };
  Tensor shared;
  run_ranks(2, [&] {
    const NoGradGuard no_grad;
    cuda::set_device(0);
    if (env::rank() == 0) {
      shared = ones({5}, {.device = "cuda"});
      const Tensor y = zeros({5}, {.device = "cuda"});
      const auto memory = std::make_shared<CaptureMemory>();
      const DeviceGraph graph = DeviceGraph::capture(rank(), memory, [&] {
        y.add_(shared);
        turn = 1;
        wait_for(2);
        y.mul_(2);
      });
      graph.launch(rank());
      EXPECT_EQ(y.to_vector<float>(), Floats(5, 4));
    } else {
      wait_for(1);
      const Tensor twice = shared * 2;  // orders the streams of both ranks
      shared.copy_(twice);
      EXPECT_EQ(shared.to_vector<float>(), Floats(5, 2));
      cuda::empty_cache();
      turn = 2;
    }
  });
  shared = Tensor();
}

TEST_F(CapturedWork, WorksWithoutACache) {
  const WithoutCache without;
  run_ranks(1, [] {
    const NoGradGuard no_grad;
    cuda::set_device(1 % cuda::device_count());
    const Tensor x = full({1000}, 3.0, {.device = "cuda"}), y = zeros({1000}, {.device = "cuda"});
    const auto memory = std::make_shared<CaptureMemory>();
    const DeviceGraph graph =
        DeviceGraph::capture(rank(), memory, [&] { y.copy_(relu(x * 2) + x); });
    graph.launch(rank());
    EXPECT_EQ(y.to_vector<float>(), Floats(1000, 9));
  });
}

}  // namespace

}  // namespace flow
