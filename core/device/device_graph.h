// Work on a rank's CUDA device that is captured once and then queued by one call: a CUDA graph. The
// captured kernels and copies run with the parameters that they had when they were captured. So
// their memory has to stay where it is, and numbers that differ between runs have to be in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/generator.h"
#include "core/storage.h"

namespace flow {

class RankContext;

// Device memory that captured work takes in addition to that of its operands. It stays in use as
// long as this object lives. Graphs of one rank may share it: they run one after another. Not
// thread safe.
class CaptureMemory {
 public:
  // While the result lives, nobody else gets these bytes from this object.
  Ref<Storage> take(RankContext& rank, size_t bytes);

  // The bytes that it holds.
  int64_t bytes() const;

 private:
  struct Block {
    Ref<Storage> storage;
    bool is_free = true;
  };

  std::vector<std::shared_ptr<Block>> blocks_;
};

class DeviceGraph {
 public:
  // No work.
  DeviceGraph() = default;

  // Captures what `queue` queues on the compute stream of the rank's device in the calling thread;
  // nothing of it runs. Device memory that the thread allocates meanwhile is from `memory`, which
  // the graph keeps. Throws the error of `queue`, which is one of CUDA where it did what a graph
  // cannot contain, such as waiting for the device. Nothing is left of the capture then.
  static DeviceGraph capture(RankContext& rank, const std::shared_ptr<CaptureMemory>& memory,
                             const std::function<void()>& queue);

  // Queues the work on the compute stream of the rank that captured it.
  void launch(RankContext& rank) const;

  // Kernels, copies and the like.
  int64_t num_nodes() const { return num_nodes_; }

 private:
  int64_t num_nodes_ = 0;
  std::shared_ptr<void> executable_;  // and its memory
};

// While an object of this class lives, the calling thread captures a draw whose random stream will
// be at `there` in device memory, other than that of KernelContext, when the work runs. Kernels
// find it by cuda::draw_of (core/device/cuda_draw.h). Instances are not nested.
class CapturedDraw {
 public:
  explicit CapturedDraw(const RandomStream* there);
  ~CapturedDraw();  // NOLINT(performance-trivially-destructible): with CUDA it does work
  CapturedDraw(const CapturedDraw&) = delete;
  CapturedDraw& operator=(const CapturedDraw&) = delete;

  // Whether a kernel has asked for it.
  bool was_used() const;
};

}  // namespace flow
