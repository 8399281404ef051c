// What the emulated CUDA promises tests: it finds mistakes that a real device would.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_launch.h"
#include "core/device/device_memory.h"
#include "core/device/joined_launch.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "nn/flow.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/kernel/mma_cuda.cuh"
#include "ops/kernel/pack_cuda.cuh"
#include "ops/linear/matmul.h"
#include "ops/optimizer/update.h"
#include "ops/random/random.h"
#include "tests/support/cuda_emulator/library_hooks.h"

namespace flow {

namespace {

RankContext& rank() {
  return *thread_state().context;
}

cudaStream_t stream() {
  return cuda::rank_device(rank()).compute_stream();
}

// y[b] = sum of the numbers of the threads of block b, by shuffles and shared memory.
__global__ void add_up(int* y) {
  __shared__ int sums[32];
  auto value = static_cast<int>(threadIdx.x);
  for (int lanes = 16; lanes > 0; lanes /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, lanes);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x != 0) return;
  int sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / 32; ++warp)
    sum += sums[warp];
  y[blockIdx.x] = sum;
}

// Each thread takes its neighbour's number from dynamic shared memory.
__global__ void rotate(int* y) {
  FLOW_CUDA_DYNAMIC_SHARED(int, numbers);
  numbers[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  y[threadIdx.x] = numbers[(threadIdx.x + 1) % blockDim.x];
}

__global__ void wait_in_one_branch(int* y) {
  if (threadIdx.x % 2 == 0) {
    __syncthreads();
  } else {
    __syncwarp();
    __syncthreads();
    __syncthreads();
  }
  *y = 1;
}

// The first half of a warp ends, and the second one names it in the mask of its exchange.
__global__ void exchange_with_ended_lanes(int* y, unsigned mask) {
  if (threadIdx.x < 16) return;
  y[threadIdx.x] = __shfl_xor_sync(mask, static_cast<int>(threadIdx.x), 1);
}

// Each thread brings four numbers to shared memory, in two groups of copies, and takes those of the
// first one.
template <int kLater>
__global__ void copy_through_shared(int* y, const int* x, int shift) {
  FLOW_CUDA_DYNAMIC_SHARED(int, shared);
  int* const own = shared + 8 * threadIdx.x;
  const int* const from = x + 4 * threadIdx.x + shift;
  ops::begin_copy(reinterpret_cast<uint16_t*>(own), from, true);
  ops::end_copy_group();
  ops::begin_copy(reinterpret_cast<uint16_t*>(own + 4), from, false);
  ops::end_copy_group();
  ops::wait_for_copies<kLater>();
  for (int i = 0; i < 4; ++i)
    y[4 * threadIdx.x + i] = own[i] + own[4 + i];
}

// The first two numbers from `shift` on, by one load and one store.
__global__ void copy_pack(int* y, const int* x, int shift) {
  ops::store_pack(y, 0, ops::load_pack<2>(x + shift, 0));
}

bool is_forward() {
  const char* const order = std::getenv("CUDA_EMULATOR_ORDER");
  return order == nullptr || std::string_view(order) == "forward";
}

std::vector<int> read(const Ref<Storage>& device, size_t count) {
  std::vector<int> values(count);
  copy_bytes(rank(), values.data(), DeviceType::kCpu, device->data(), DeviceType::kCuda,
             count * sizeof(int));
  return values;
}

TEST(CudaEmulator, ThreadsOfABlockWaitForEachOther) {
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, 3 * sizeof(int));

  cuda::launch(add_up, 3, 128, 0, stream(), reinterpret_cast<int*>(y->data()));

  EXPECT_EQ(read(y, 3), (std::vector<int>{8128, 8128, 8128}));
}

TEST(CudaEmulator, BlocksHaveDynamicSharedMemory) {
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, 64 * sizeof(int));

  cuda::launch(rotate, 1, 64, 64 * sizeof(int), stream(), reinterpret_cast<int*>(y->data()));

  std::vector<int> expected(64);
  std::iota(expected.begin(), expected.end(), 1);
  expected.back() = 0;
  EXPECT_EQ(read(y, 64), expected);
}

// Thread i reads what thread i - 1 wrote, without a barrier.
__global__ void read_neighbour(int* y) {
  y[threadIdx.x] = threadIdx.x == 0 ? 1 : y[threadIdx.x - 1];
}

TEST(CudaEmulator, OtherOrdersShowWhatThreadsDoNotWaitFor) {
  constexpr size_t kCount = 64;
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, kCount * sizeof(int));
  FLOW_CUDA_CALL(cudaMemsetAsync(y->data(), 0, kCount * sizeof(int), stream()));
  cuda::launch(read_neighbour, 1, kCount, 0, stream(), reinterpret_cast<int*>(y->data()));

  EXPECT_EQ(read(y, kCount) == std::vector<int>(kCount, 1), is_forward());
}

TEST(CudaEmulator, NewMemoryIsNotZero) {
  void* block = nullptr;
  ASSERT_EQ(cudaMalloc(&block, 64), cudaSuccess);
  std::vector<unsigned char> bytes(64);
  ASSERT_EQ(cudaMemcpyAsync(bytes.data(), block, 64, cudaMemcpyDeviceToHost, stream()),
            cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
  EXPECT_EQ(bytes, std::vector<unsigned char>(64, 0xff));
  EXPECT_EQ(cudaFree(block), cudaSuccess);
}

__global__ void write_at(char* y, int index) {
  y[index] = 1;
}

TEST(CudaEmulator, WritesBehindABlockAreFound) {
  for (const int index : {99, 100, 163}) {
    void* block = nullptr;
    ASSERT_EQ(cudaMalloc(&block, 100), cudaSuccess);
    cuda::launch(write_at, 1, 1, 0, stream(), static_cast<char*>(block), index);
    EXPECT_EQ(cudaFree(block), index < 100 ? cudaSuccess : cudaErrorIllegalAddress) << index;
  }
}

TEST(CudaEmulator, FindsBarriersThatNotAllThreadsReach) {
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, sizeof(int));

  cuda::launch(wait_in_one_branch, 1, 32, 0, stream(), reinterpret_cast<int*>(y->data()));

  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaErrorLaunchFailure);
}

TEST(CudaEmulator, LanesThatHaveEndedAreNotInAMask) {
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, 32 * sizeof(int));
  auto* const values = reinterpret_cast<int*>(y->data());

  cuda::launch(exchange_with_ended_lanes, 1, 32, 0, stream(), values, 0xffff0000U);
  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
  cuda::launch(exchange_with_ended_lanes, 1, 32, 0, stream(), values, 0xffffffffU);
  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaErrorLaunchFailure);
}

TEST(CudaEmulator, CopiesToSharedMemoryRunWhenTheThreadWaits) {
  constexpr size_t kThreads = 4, kCount = 4 * kThreads;
  constexpr size_t kShared = 2 * kCount * sizeof(int);
  const Ref<Storage> x = allocate_storage(rank(), DeviceType::kCuda, kCount * sizeof(int));
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, kCount * sizeof(int));
  auto* const from = reinterpret_cast<int*>(x->data());
  auto* const to = reinterpret_cast<int*>(y->data());
  FLOW_CUDA_CALL(cudaMemsetAsync(from, 0, kCount * sizeof(int), stream()));

  cuda::launch(copy_through_shared<0>, 1, kThreads, kShared, stream(), to, from, 0);
  EXPECT_EQ(read(y, kCount), std::vector<int>(kCount, 0));
  if (is_forward()) {  // what no thread waited for is what the memory was filled with, -1
    cuda::launch(copy_through_shared<1>, 1, kThreads, kShared, stream(), to, from, 0);
    EXPECT_EQ(read(y, kCount), std::vector<int>(kCount, -1));
    cuda::launch(copy_through_shared<2>, 1, kThreads, kShared, stream(), to, from, 0);
    EXPECT_EQ(read(y, kCount), std::vector<int>(kCount, -2));
  }

  cuda::launch(copy_through_shared<2>, 1, 2, kShared, stream(), to, from, 1);
  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaErrorMisalignedAddress);
}

TEST(CudaEmulator, PacksHaveToBeAligned) {
  const Ref<Storage> memory = allocate_storage(rank(), DeviceType::kCuda, 4 * sizeof(int));
  auto* const numbers = reinterpret_cast<int*>(memory->data());

  cuda::launch(copy_pack, 1, 1, 0, stream(), numbers, numbers, 2);
  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
  cuda::launch(copy_pack, 1, 1, 0, stream(), numbers, numbers, 1);
  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaErrorMisalignedAddress);
  cuda::launch(copy_pack, 1, 1, 0, stream(), numbers + 1, numbers, 0);
  EXPECT_EQ(cudaStreamSynchronize(stream()), cudaErrorMisalignedAddress);
}

TEST(CudaEmulator, LaunchesThatADeviceWouldRefuse) {
  const auto error_of = [](dim3 grid, dim3 block, size_t shared_bytes) {
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream();
    return cudaLaunchKernelEx(&config, wait_in_one_branch, static_cast<int*>(nullptr));
  };
  EXPECT_EQ(error_of(0, 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of({1, 1U << 16}, 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(1U << 31, 32, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(1, 0, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(1, {32, 33}, 0), cudaErrorInvalidConfiguration);
  EXPECT_EQ(error_of(1, {1, 1, 65}, 0), cudaErrorInvalidConfiguration);

  // More than 48 KiB have to be allowed first.
  constexpr size_t kShared = 49 << 10;
  const auto* const kernel = reinterpret_cast<const void*>(&wait_in_one_branch);
  EXPECT_EQ(error_of(1, 32, kShared), cudaErrorInvalidValue);
  const auto allow = [&](int bytes) {
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
  };
  EXPECT_EQ(allow(228 << 10), cudaErrorInvalidValue);
  EXPECT_EQ(allow(kShared), cudaSuccess);
  EXPECT_EQ(error_of(1, 32, kShared + 1), cudaErrorInvalidValue);
}

TEST(CudaEmulatorDeathTest, HostCodeThatTouchesDeviceMemoryFaults) {
  testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const Tensor x = ones({4}, {.device = "cuda"});

  EXPECT_DEATH(
      {
        volatile float first = *reinterpret_cast<float*>(x.impl().data());
        static_cast<void>(first);
      },
      "");
}

// A copy from pinned memory that nobody waits for takes what is there when it runs, at the latest
// moment.
TEST(CudaEmulator, WorkRunsWhenItIsWaitedFor) {
  const Ref<Storage> pinned = allocate_staging(rank(), sizeof(int));
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, sizeof(int));
  auto* number = reinterpret_cast<int*>(pinned->data());

  *number = 1;
  FLOW_CUDA_CALL(cudaMemcpyAsync(y->data(), number, sizeof(int), cudaMemcpyHostToDevice, stream()));
  *number = 2;

  EXPECT_EQ(read(y, 1), std::vector<int>{2});
}

TEST(CudaEmulator, SmallCopiesToTheDeviceAreNotWaitedFor) {
  const Ref<Storage> y = allocate_storage(rank(), DeviceType::kCuda, sizeof(int));
  cuda::synchronize();
  bool has_run = false;
  FLOW_CUDA_CALL(cuda_emulator::enqueue(stream(), [&] { has_run = true; }));
  int number = 7;

  copy_bytes(rank(), y->data(), DeviceType::kCuda, &number, DeviceType::kCpu, sizeof(int));

  EXPECT_FALSE(has_run);
  number = 8;
  EXPECT_EQ(read(y, 1), std::vector<int>{7});
  EXPECT_TRUE(has_run);
}

// As long as the pinned memory has room.
TEST(CudaEmulator, CopiesOfSeveralPiecesAreNotWaitedFor) {
  const Tensor host = arange(600).reshape({20, 30});  // 4,800 bytes
  static_assert(600 * sizeof(int64_t) > cuda::PinnedRing::kSlotBytes);
  for (const Tensor& x : {host, host.t()}) {
    cuda::synchronize();
    bool has_run = false;
    FLOW_CUDA_CALL(cuda_emulator::enqueue(stream(), [&] { has_run = true; }));
    const std::vector<int64_t> expected = x.contiguous().to_vector<int64_t>();

    const Tensor there = x.to("cuda");

    EXPECT_FALSE(has_run);
    EXPECT_EQ(there.to_vector<int64_t>(), expected);
    EXPECT_TRUE(has_run);
  }
}

// Together they have several times the bytes of the memory that they pass through.
TEST(CudaEmulator, ManySmallCopiesKeepTheirValues) {
  constexpr size_t kCount = 10000;
  std::vector<Ref<Storage>> blocks;
  for (int i = 0; i < 40; ++i) {
    const std::vector<int> numbers(kCount, i);
    blocks.push_back(allocate_storage(rank(), DeviceType::kCuda, kCount * sizeof(int)));
    copy_bytes(rank(), blocks.back()->data(), DeviceType::kCuda, numbers.data(), DeviceType::kCpu,
               kCount * sizeof(int));
  }
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(read(blocks[static_cast<size_t>(i)], kCount), std::vector<int>(kCount, i));
}

TEST(CudaEmulator, ProductsThatTheLibraryRefusesAreComputed) {
  const Tensor a = randn({3, 7, 5}, {.device = "cuda"}), b = randn({5, 4}, {.device = "cuda"});
  const Tensor bias = randn({4}, {.device = "cuda"});
  const auto products = [&] {
    std::vector<std::vector<float>> values;
    for (const Tensor& y : {matmul(a, b), linear(a, b.t(), bias), linear(a, b.t().contiguous())})
      values.push_back(y.to("cpu").flatten().to_vector<float>());
    return values;
  };
  const auto expected = products();

  cuda_emulator::refuse_products(true);
  const auto actual = products();
  cuda_emulator::refuse_products(false);

  for (size_t i = 0; i < expected.size(); ++i) {
    for (size_t j = 0; j < expected[i].size(); ++j)
      EXPECT_NEAR(actual[i][j], expected[i][j], 1e-5) << "product " << i;
  }
}

// What one rank queues, another one may wait for; the host waits for nothing.
TEST(CudaEmulator, RanksOfOneDeviceRedistributeWithoutWaiting) {
  run_ranks(3, [] {
    cuda::set_device(0);
    const Placement three("cuda", {0, 1, 2});
    const Tensor x = (ones({600, 50}, {.device = "cuda"}) * static_cast<double>(env::rank() + 1))
                         .to_global({.placement = three, .sbp = sbp::partial_sum});
    static_cast<void>(x.to_global({.sbp = sbp::broadcast}));  // makes what later calls need
    cuda::synchronize();
    env::barrier();
    std::atomic<bool> has_run = false;
    FLOW_CUDA_CALL(cuda_emulator::enqueue(stream(), [&] { has_run = true; }));

    const Tensor whole = x.to_global({.sbp = sbp::broadcast});
    const Tensor rows = x.to_global({.sbp = sbp::split(0)});
    const Tensor columns = rows.to_global({.sbp = sbp::split(1)});
    const Tensor again = columns.to_global({.sbp = sbp::broadcast});

    EXPECT_FALSE(has_run);
    env::barrier();
    EXPECT_EQ(whole.to_local().to_vector<float>(), std::vector<float>(600 * 50, 6));
    EXPECT_EQ(again.to_local().to_vector<float>(), std::vector<float>(600 * 50, 6));
    EXPECT_TRUE(has_run);
    env::barrier();
  });
}

struct TrainStep : nn::Graph<TrainStep> {
  nn::Sequential net;

  TrainStep(nn::Sequential n, optim::Optimizer& optimizer) : net(n) {
    add_optimizer(optimizer);
    config().set_passes(nn::exact);
  }

  Tensor build(const Tensor& x) {
    const Tensor loss = sum(net(x));
    loss.backward();
    return loss;
  }
};

int64_t launches_of(const std::function<void()>& work) {
  const int64_t before = cuda_emulator::num_launches();
  work();
  return cuda_emulator::num_launches() - before;
}

// A launch takes 21 parameters of AdamW.
constexpr int64_t kParameters = 60, kUpdates = 3;

nn::Sequential net_of_many() {
  nn::Sequential net;
  for (int64_t i = 0; i < kParameters / 2; ++i)
    net.push_back(nn::Linear(3, 3));
  net.to("cuda");
  return net;
}

TEST(CudaEmulator, OneLaunchIsForManyParameters) {
  nn::Sequential net = net_of_many();
  optim::AdamW adamw(net.parameters());
  for (const Tensor& parameter : net.parameters())
    parameter.set_grad(ones(parameter.shape(), {.device = "cuda"}));
  adamw.step();  // makes the state

  EXPECT_EQ(launches_of([&] { adamw.step(); }), kUpdates);
  // Norms and their sums, their norm, the factor, and the gradients.
  EXPECT_LE(launches_of([&] { nn::utils::clip_grad_norm_(net.parameters(), 0.5); }), 12);
}

// A launch takes 19 parameters of AdamW with their masters.
TEST(CudaEmulator, OneLaunchIsForManyMasters) {
  nn::Sequential net = net_of_many();
  net.to(bfloat16);
  optim::AdamW adamw(net.parameters(), {.master_weights = true});
  for (const Tensor& parameter : net.parameters())
    parameter.set_grad(ones_like(parameter));
  adamw.step();  // makes the state

  EXPECT_EQ(launches_of([&] { adamw.step(); }), (kParameters + 18) / 19);
}

// A compiled step has the kernels of the eager one, and its updates come after backward.
TEST(CudaEmulator, CompiledStepsUpdateManyParametersInOneLaunch) {
  nn::Sequential net = net_of_many();
  optim::AdamW adamw(net.parameters());
  TrainStep graph(net, adamw);
  const Tensor x = ones({2, 3}, {.device = "cuda"});
  graph(x);
  const int64_t compiled = launches_of([&] { graph(x); });

  net.zero_grad();
  const int64_t eager = launches_of([&] { sum(net(x)).backward(); });

  EXPECT_LE(compiled, eager + kUpdates);
  EXPECT_GT(compiled, eager / 2);
}

// The launch of what was put off may fail. step() throws; a scope that an error leaves logs.
TEST(CudaEmulator, AJoinedLaunchThatFailsIsReported) {
  const NoGradGuard no_grad;
  const Tensor p = ones({4}, {.device = "cuda"}), grad = ones({4}, {.device = "cuda"});
  optim::SGD sgd({ones({4}, {.device = "cuda"})}, {.lr = 0.5});
  sgd.parameters()[0].set_grad(grad);

  testing::internal::CaptureStderr();
  cuda_emulator::fail_calls(cudaErrorIllegalAddress);
  std::string raised;
  try {
    sgd.step();
  } catch (const Error& error) {
    raised = error.what();
  }
  {
    const cuda::JoinLaunches joins;
    sgd_update(p, grad, Tensor(), {.lr = 0.5});
  }
  cuda_emulator::fail_calls(cudaSuccess);
  const std::string logged = testing::internal::GetCapturedStderr();

  EXPECT_NE(raised.find("cudaErrorIllegalAddress"), std::string::npos) << raised;
  EXPECT_NE(logged.find("cudaErrorIllegalAddress"), std::string::npos) << logged;
  EXPECT_EQ(p.to_vector<float>(), std::vector<float>(4, 1));
}

TEST(CudaErrors, SayThatTheDeviceCannotBeUsedAnyMore) {
  for (const cudaError_t code :
       {cudaErrorIllegalAddress, cudaErrorMisalignedAddress, cudaErrorIllegalInstruction}) {
    std::string message;
    try {
      cuda::check(code, "call");
    } catch (const Error& error) {
      message = error.what();
    }
    EXPECT_NE(message.find("cannot use the device any more"), std::string::npos) << message;
  }
}

TEST(CudaEmulator, MemoryRunsOutAtTheLimit) {
  void* block = nullptr;
  cuda_emulator::set_device_memory(1 << 20);

  EXPECT_EQ(cudaMalloc(&block, size_t{2} << 20), cudaErrorMemoryAllocation);

  cuda_emulator::set_device_memory(size_t{4} << 30);
  EXPECT_EQ(cudaMalloc(&block, size_t{2} << 20), cudaSuccess);
  EXPECT_EQ(cudaFree(block), cudaSuccess);
  EXPECT_EQ(cudaFree(block), cudaErrorInvalidValue);
}

// Handles that processes pass to each other; opening one needs a second process
// (cuda_processes_test).
TEST(CudaEmulator, HandlesAreOfWholeBlocksAndForOtherProcesses) {
  cuda::rank_device(rank());
  void* block = nullptr;
  FLOW_CUDA_CALL(cudaMalloc(&block, 6000));
  FLOW_CUDA_CALL(cudaMemsetAsync(block, 5, 6000, stream()));
  FLOW_CUDA_CALL(cudaStreamSynchronize(stream()));
  cudaIpcMemHandle_t handle;
  EXPECT_EQ(cudaIpcGetMemHandle(&handle, static_cast<std::byte*>(block) + 4),
            cudaErrorInvalidValue);
  ASSERT_EQ(cudaIpcGetMemHandle(&handle, block), cudaSuccess);
  void* opened = nullptr;
  EXPECT_EQ(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess),
            cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaIpcCloseMemHandle(block), cudaErrorInvalidValue);
  std::vector<char> values(6000);
  FLOW_CUDA_CALL(
      cudaMemcpyAsync(values.data(), block, values.size(), cudaMemcpyDeviceToHost, stream()));
  EXPECT_EQ(values, std::vector<char>(6000, 5));
  EXPECT_EQ(cudaFree(block), cudaSuccess);

  cudaEvent_t event = nullptr;
  EXPECT_EQ(cudaEventCreateWithFlags(&event, cudaEventInterprocess), cudaErrorInvalidValue);
  ASSERT_EQ(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), cudaSuccess);
  cudaIpcEventHandle_t event_handle;
  EXPECT_EQ(cudaIpcGetEventHandle(&event_handle, event), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(event), cudaSuccess);
}

// Other processes may have it open, which CUDA's cudaFree does not find out.
TEST(CudaEmulator, MemoryThatProcessesShareIsNotFreed) {
  cuda::RankDevice& device = cuda::rank_device(rank());
  cuda::empty_cache();
  Tensor x = ones({3 << 20}, {.device = "cuda"});
  const auto* const inside = x.impl().data() + 100;
  const std::byte* const begin = device.share_allocation(inside);
  const char* const cache = std::getenv("FLOW_CUDA_CACHE");
  if (cache != nullptr && std::string_view(cache) == "0") {
    EXPECT_EQ(begin, nullptr);
    return;
  }
  ASSERT_NE(begin, nullptr);
  EXPECT_LE(begin, inside);
  x = {};
  cuda::empty_cache();
  EXPECT_GE(cuda::memory_stats().bytes_cached, 12 << 20);
  int on_host = 0;
  EXPECT_EQ(device.share_allocation(&on_host), nullptr);
}

}  // namespace

}  // namespace flow
