// The rules of captures of streams that the emulated CUDA enforces, as the real one does.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include "core/device/cuda_error.h"
#include "core/device/cuda_launch.h"
#include "tests/support/cuda_emulator/library_hooks.h"

namespace flow {

namespace {

__global__ void add(int* y, int number) {
  *y += number;
}

__global__ void multiply(int* y, int number) {
  *y *= number;
}

__global__ void copy_number(int* y, const int* x) {
  *y = *x;
}

class Captures : public testing::Test {
 protected:
  void SetUp() override {
    for (cudaStream_t* stream : {&stream_, &other_})
      FLOW_CUDA_CALL(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    FLOW_CUDA_CALL(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    void* memory = nullptr;
    FLOW_CUDA_CALL(cudaMalloc(&memory, 2 * sizeof(int)));
    y_ = static_cast<int*>(memory);
    FLOW_CUDA_CALL(cudaMemsetAsync(y_, 0, 2 * sizeof(int), stream_));
  }

  void TearDown() override {
    EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamDestroy(other_), cudaSuccess);
    EXPECT_EQ(cudaEventDestroy(event_), cudaSuccess);
    EXPECT_EQ(cudaFree(y_), cudaSuccess);
    EXPECT_EQ(cuda_emulator::num_live_graphs(), live_graphs_);
  }

  void begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeThreadLocal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
  }

  // The result of the end of the capture; the graph is kept if there is one.
  cudaError_t end() {
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    EXPECT_EQ(graph != nullptr, ended == cudaSuccess);
    if (graph != nullptr) {
      EXPECT_EQ(cudaGraphInstantiate(&exec_, graph, 0), cudaSuccess);
      EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &num_nodes_), cudaSuccess);
      EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    }
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    EXPECT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusNone);
    return ended;
  }

  void launch() { ASSERT_EQ(cudaGraphLaunch(exec_, stream_), cudaSuccess); }

  void drop() { ASSERT_EQ(cudaGraphExecDestroy(exec_), cudaSuccess); }

  std::vector<int> read() {
    std::vector<int> values(2);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), y_, 2 * sizeof(int), cudaMemcpyDeviceToHost, stream_),
              cudaSuccess);
    return values;
  }

  // The call has this error in a capture, which is useless then, and the stream works afterwards.
  void expect_refused(const std::string& what, cudaError_t expected,
                      const std::function<cudaError_t()>& call) {
    SCOPED_TRACE(what);
    begin();
    cuda::launch(add, 1, 1, 0, stream_, y_, 1);
    EXPECT_EQ(call(), expected);
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    EXPECT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
    EXPECT_EQ(status, cudaStreamCaptureStatusInvalidated);
    EXPECT_EQ(cudaEventRecord(event_, stream_), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
    const int before = read()[0];
    cuda::launch(add, 1, 1, 0, stream_, y_, 1);
    EXPECT_EQ(read()[0], before + 1);
  }

  const int64_t live_graphs_ = cuda_emulator::num_live_graphs();
  cudaStream_t stream_ = nullptr, other_ = nullptr;
  cudaEvent_t event_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
  size_t num_nodes_ = 0;
  int* y_ = nullptr;
};

TEST_F(Captures, LaunchesRepeatTheWorkAndItsParameters) {
  int number = 2;
  begin();
  cuda::launch(add, 1, 1, 0, stream_, y_, number);
  cuda::launch(copy_number, 1, 1, 0, stream_, y_ + 1, static_cast<const int*>(y_));
  ASSERT_EQ(end(), cudaSuccess);
  EXPECT_EQ(num_nodes_, 2);
  EXPECT_EQ(read(), (std::vector<int>{0, 0}));  // nothing has run

  number = 100;
  const int64_t launches = cuda_emulator::num_launches();
  launch();
  launch();
  EXPECT_EQ(cuda_emulator::num_launches(), launches);
  EXPECT_EQ(read(), (std::vector<int>{4, 4}));
  drop();
}

TEST_F(Captures, PinnedMemoryIsReadWhenTheGraphRuns) {
  void* memory = nullptr;
  ASSERT_EQ(cudaMallocHost(&memory, sizeof(int)), cudaSuccess);
  auto* const pinned = static_cast<int*>(memory);
  *pinned = 1;
  begin();
  ASSERT_EQ(cudaMemcpyAsync(y_, pinned, sizeof(int), cudaMemcpyHostToDevice, stream_), cudaSuccess);
  ASSERT_EQ(end(), cudaSuccess);
  *pinned = 7;
  launch();
  EXPECT_EQ(read()[0], 7);
  drop();
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(Captures, NothingMayWaitForWhatIsCaptured) {
  cudaEvent_t outside = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&outside, cudaEventDisableTiming), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(outside, other_), cudaSuccess);
  const auto recorded = [&](cudaError_t (*call)(cudaEvent_t)) {
    EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
    return call(event_);
  };
  int number = 0;
  expect_refused("stream", cudaErrorStreamCaptureUnsupported,
                 [&] { return cudaStreamSynchronize(stream_); });
  expect_refused("device", cudaErrorStreamCaptureUnsupported, cudaDeviceSynchronize);
  expect_refused("event", cudaErrorCapturedEvent, [&] { return recorded(cudaEventSynchronize); });
  expect_refused("query", cudaErrorCapturedEvent, [&] { return recorded(cudaEventQuery); });
  expect_refused("an event from outside", cudaErrorStreamCaptureIsolation,
                 [&] { return cudaStreamWaitEvent(stream_, outside, 0); });
  expect_refused("from pageable memory", cudaErrorStreamCaptureUnsupported, [&] {
    return cudaMemcpyAsync(y_, &number, sizeof number, cudaMemcpyHostToDevice, stream_);
  });
  expect_refused("to pageable memory", cudaErrorStreamCaptureUnsupported, [&] {
    return cudaMemcpyAsync(&number, y_, sizeof number, cudaMemcpyDeviceToHost, stream_);
  });
  expect_refused("destruction", cudaErrorStreamCaptureUnsupported,
                 [&] { return cudaStreamDestroy(stream_); });
  // Other streams may be waited for.
  begin();
  EXPECT_EQ(cudaStreamSynchronize(other_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(outside), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  drop();
  EXPECT_EQ(cudaEventDestroy(outside), cudaSuccess);
}

TEST_F(Captures, MemoryIsAllocatedOutsideOfThem) {
  void* device = nullptr;
  void* host = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 8), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&host, 8), cudaSuccess);
  void* none = nullptr;
  expect_refused("malloc", cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&none, 8); });
  expect_refused("free", cudaErrorStreamCaptureUnsupported, [&] { return cudaFree(device); });
  expect_refused("pinned", cudaErrorStreamCaptureUnsupported,
                 [&] { return cudaMallocHost(&none, 8); });
  expect_refused("free pinned", cudaErrorStreamCaptureUnsupported,
                 [&] { return cudaFreeHost(host); });
  EXPECT_EQ(cudaFree(device), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(host), cudaSuccess);
}

TEST_F(Captures, ModesSayWhoMayAllocate) {
  const auto allocates = [] {
    void* block = nullptr;
    const cudaError_t result = cudaMalloc(&block, 8);
    return result == cudaSuccess && cudaFree(block) == cudaSuccess;
  };
  const auto other_thread_allocates = [&] {
    bool result = false;
    std::thread([&] { result = allocates(); }).join();
    return result;
  };
  begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_TRUE(other_thread_allocates());
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(mode, cudaStreamCaptureModeGlobal);
  EXPECT_TRUE(allocates());
  EXPECT_EQ(cudaThreadExchangeStreamCaptureMode(&mode), cudaSuccess);
  EXPECT_EQ(end(), cudaSuccess);
  drop();

  begin(cudaStreamCaptureModeRelaxed);
  EXPECT_TRUE(allocates());
  EXPECT_EQ(end(), cudaSuccess);
  drop();

  begin(cudaStreamCaptureModeGlobal);
  EXPECT_FALSE(other_thread_allocates());
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
}

TEST_F(Captures, BeginAndEndOnTheirStreamAndThread) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  EXPECT_EQ(end(), cudaSuccess);
  drop();

  begin();
  cudaError_t elsewhere = cudaSuccess;
  std::thread([&] { elsewhere = cudaStreamEndCapture(stream_, &graph); }).join();
  EXPECT_EQ(elsewhere, cudaErrorStreamCaptureWrongThread);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);

  begin();
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph), cudaErrorStreamCaptureUnmatched);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  // The event is still that of the capture.
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaErrorCapturedEvent);
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
}

// Another stream takes part from its wait for an event on, and has to be joined in the same way.
TEST_F(Captures, OtherStreamsAreForkedAndJoined) {
  cudaEvent_t done = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&done, cudaEventDisableTiming), cudaSuccess);
  for (const bool joins : {true, false}) {
    begin();
    cuda::launch(add, 1, 1, 0, stream_, y_, 3);
    EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
    EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaSuccess);
    cuda::launch(copy_number, 1, 1, 0, other_, y_ + 1, static_cast<const int*>(y_));
    cuda::launch(add, 1, 1, 0, other_, y_ + 1, 10);
    EXPECT_EQ(cudaEventRecord(done, other_), cudaSuccess);
    if (joins) {
      EXPECT_EQ(cudaStreamWaitEvent(stream_, done, 0), cudaSuccess);
      cuda::launch(multiply, 1, 1, 0, stream_, y_, 2);
      EXPECT_EQ(end(), cudaSuccess);
      launch();
      EXPECT_EQ(read(), (std::vector<int>{6, 13}));
      launch();
      EXPECT_EQ(read(), (std::vector<int>{18, 19}));
      drop();
    } else {
      EXPECT_EQ(end(), cudaErrorStreamCaptureUnjoined);
    }
  }
  // Two captures cannot become one.
  begin();
  ASSERT_EQ(cudaStreamBeginCapture(other_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  EXPECT_EQ(cudaEventRecord(event_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(other_, event_, 0), cudaErrorStreamCaptureMerge);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(other_, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(end(), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaEventDestroy(done), cudaSuccess);
}

TEST_F(Captures, GraphsAreLaunchedOutsideOfCaptures) {
  begin();
  cuda::launch(add, 1, 1, 0, stream_, y_, 1);
  ASSERT_EQ(end(), cudaSuccess);
  expect_refused("launch", cudaErrorStreamCaptureUnsupported,
                 [&] { return cudaGraphLaunch(exec_, stream_); });
  EXPECT_EQ(cudaGraphLaunch(exec_, nullptr), cudaErrorInvalidResourceHandle);
  launch();
  drop();  // what is queued still runs
  EXPECT_EQ(read()[0], 2);
}

}  // namespace

}  // namespace flow
