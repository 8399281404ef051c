#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "core/context.h"
#include "core/device/cuda_device.h"
#include "core/device/cuda_draw.h"
#include "core/device/cuda_error.h"
#include "core/device/device_graph.h"
#include "core/device/device_memory.h"
#include "core/device/joined_launch.h"
#include "core/error.h"

namespace flow {

namespace {

// What the calling thread captures; null streams and pointers: nothing.
struct CaptureHere {
  cudaStream_t stream = nullptr;
  CaptureMemory* memory = nullptr;
  const RandomStream* draw = nullptr;
  bool draw_was_used = false;
};

thread_local CaptureHere capture_here;

// Allocations are not part of a capture, so the calls behind them are allowed in this scope.
class AllowAllocation {
 public:
  AllowAllocation() { exchange(); }

  ~AllowAllocation() { exchange(); }

  AllowAllocation(const AllowAllocation&) = delete;
  AllowAllocation& operator=(const AllowAllocation&) = delete;

 private:
  void exchange() noexcept {
    cuda::warn_if_failed(cudaThreadExchangeStreamCaptureMode(&mode_),
                         "cudaThreadExchangeStreamCaptureMode");
  }

  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

// Streams to capture. They are never destroyed, because handles of libraries refer to the last
// stream that they were given.
class StreamPool {
 public:
  static StreamPool& instance() {
    static StreamPool& pool = *new StreamPool;
    return pool;
  }

  // Requires: `device` is the calling thread's current device.
  cudaStream_t take(int device) {
    {
      const std::lock_guard lock(mutex_);
      std::vector<cudaStream_t>& idle = idle_[device];
      if (!idle.empty()) {
        cudaStream_t stream = idle.back();
        idle.pop_back();
        return stream;
      }
    }
    cudaStream_t stream = nullptr;
    FLOW_CUDA_CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    return stream;
  }

  void give_back(int device, cudaStream_t stream) {
    const std::lock_guard lock(mutex_);
    idle_[device].push_back(stream);
  }

 private:
  std::mutex mutex_;
  std::map<int, std::vector<cudaStream_t>> idle_;  // by device; guarded by mutex_
};

// A stream of its own is captured, so that other threads may go on to use the rank's streams.
class Capture {
 public:
  Capture(const cuda::RankDevice& device, CaptureMemory& memory) : device_(device.index()) {
    FLOW_ASSERT(capture_here.stream == nullptr, "a capture in a capture");
    stream_ = StreamPool::instance().take(device_);
    const cudaError_t begun = cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal);
    if (begun != cudaSuccess) StreamPool::instance().give_back(device_, stream_);
    cuda::check(begun, "cudaStreamBeginCapture");
    capture_here.stream = stream_;
    capture_here.memory = &memory;
  }

  ~Capture() {
    if (capture_here.stream != nullptr) static_cast<void>(end());
    if (graph_ != nullptr) cuda::warn_if_failed(cudaGraphDestroy(graph_), "cudaGraphDestroy");
    StreamPool::instance().give_back(device_, stream_);
  }

  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;

  cudaGraph_t finish() {
    cuda::check(end(), "cudaStreamEndCapture");
    return graph_;
  }

 private:
  cudaError_t end() noexcept {
    capture_here = {};
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph_);
    if (ended != cudaSuccess) static_cast<void>(cudaGetLastError());
    return ended;
  }

  const int device_;
  cudaStream_t stream_ = nullptr;
  cudaGraph_t graph_ = nullptr;
};

// An executable graph. It may be destroyed when all its launches have ended.
class Executable {
 public:
  Executable(cuda::RankDevice& device, cudaGraph_t graph, std::shared_ptr<CaptureMemory> memory)
      : device_(device), memory_(std::move(memory)) {
    FLOW_CUDA_CALL(cudaGraphInstantiate(&exec_, graph, 0));
  }

  ~Executable() {
    cuda::queue_joined_or_warn();
    const cuda::OnDevice scope(device_.index());
    cuda::warn_if_failed(cudaStreamSynchronize(device_.compute_stream()), "cudaStreamSynchronize");
    cuda::warn_if_failed(cudaGraphExecDestroy(exec_), "cudaGraphExecDestroy");
  }

  Executable(const Executable&) = delete;
  Executable& operator=(const Executable&) = delete;

  void launch() const { FLOW_CUDA_CALL(cudaGraphLaunch(exec_, device_.compute_stream())); }

 private:
  cuda::RankDevice& device_;  // lives for ever
  std::shared_ptr<CaptureMemory> memory_;
  cudaGraphExec_t exec_ = nullptr;
};

}  // namespace

Ref<Storage> CaptureMemory::take(RankContext& rank, size_t bytes) {
  std::shared_ptr<Block> chosen;
  for (const std::shared_ptr<Block>& block : blocks_) {
    const size_t size = block->storage->bytes();
    // A small request leaves large blocks to the large ones.
    if (!block->is_free || size < bytes || size / 2 > std::max<size_t>(bytes, 512)) continue;
    if (chosen == nullptr || size < chosen->storage->bytes()) chosen = block;
  }
  if (chosen == nullptr) {
    const AllowAllocation allow;
    CaptureMemory* const outer = std::exchange(capture_here.memory, nullptr);

    const struct Restore {
      CaptureMemory* memory;

      ~Restore() { capture_here.memory = memory; }
    } restore{outer};

    chosen = std::make_shared<Block>(Block{allocate_storage(rank, DeviceType::kCuda, bytes)});
    blocks_.push_back(chosen);
  }
  chosen->is_free = false;
  const Ref<Storage>& storage = chosen->storage;
  return Storage::wrap(
      storage->data(), bytes, [chosen](void* /*block*/) { chosen->is_free = true; },
      storage->device_owner());
}

int64_t CaptureMemory::bytes() const {
  int64_t sum = 0;
  for (const std::shared_ptr<Block>& block : blocks_)
    sum += static_cast<int64_t>(block->storage->bytes());
  return sum;
}

DeviceGraph DeviceGraph::capture(RankContext& rank, const std::shared_ptr<CaptureMemory>& memory,
                                 const std::function<void()>& queue) {
  cuda::RankDevice& device = cuda::rank_device(rank);
  cuda::queue_joined();
  Capture capture(device, *memory);
  {
    const cuda::JoinLaunches joins;
    try {
      queue();
      cuda::queue_joined();
    } catch (...) {
      cuda::drop_joined();
      throw;
    }
  }
  const cudaGraph_t captured = capture.finish();
  size_t num_nodes = 0;
  FLOW_CUDA_CALL(cudaGraphGetNodes(captured, nullptr, &num_nodes));
  DeviceGraph graph;
  graph.num_nodes_ = static_cast<int64_t>(num_nodes);
  graph.executable_ = std::make_shared<Executable>(device, captured, memory);
  return graph;
}

void DeviceGraph::launch(RankContext& rank) const {
  cuda::rank_device(rank).make_current();
  static_cast<const Executable*>(executable_.get())->launch();
}

CapturedDraw::CapturedDraw(const RandomStream* there) {
  capture_here.draw = there;
  capture_here.draw_was_used = false;
}

CapturedDraw::~CapturedDraw() {
  capture_here.draw = nullptr;
}

bool CapturedDraw::was_used() const {
  return capture_here.draw_was_used;
}

namespace cuda {

cudaStream_t captured_stream() noexcept {
  return capture_here.stream;
}

CaptureMemory* capture_memory() noexcept {
  return capture_here.memory;
}

void refuse_in_capture(const char* what) {
  if (capture_here.stream == nullptr) [[likely]]
    return;
  throw Error(str("[cuda] ", what, " while a CUDA graph is captured; a graph cannot contain this"));
}

DeviceDraw draw_of(const KernelContext& ctx) {
  capture_here.draw_was_used = true;
  return {ctx.random, capture_here.draw};
}

}  // namespace cuda

}  // namespace flow
