// Streams, events and captures (cudaStreamBeginCapture), which the emulator's files share.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "cuda_runtime_api.h"
#include "emulated_device.h"
#include "shared_pages.h"

namespace cuda_emulator {

struct Work {
  std::function<void()> run;
  DeviceSet devices = 0;                // whose memory it may use
  std::function<bool()> is_ready = {};  // of a wait for another process
};

// Captured work, and the nodes of the graph that end before it begins.
struct GraphNode {
  Work work;
  std::vector<size_t> after;
};

// What begins at a stream and takes in the streams that wait for it.
struct Capture {
  cudaStream_t origin = nullptr;
  std::thread::id thread;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  bool is_valid = true;  // no rule was broken
  std::vector<GraphNode> nodes = {};
};

// Where a stream or an event is in a capture.
struct CapturePoint {
  std::shared_ptr<Capture> capture = nullptr;  // null: in none
  std::vector<size_t> after = {};              // what comes next follows these nodes
};

// One recording of an event.
struct Mark {
  cudaStream_t stream = nullptr;
  bool is_reached = false;
  std::chrono::steady_clock::time_point time;
  // The first time that somebody asked whether it is reached.
  std::optional<std::chrono::steady_clock::time_point> asked = {};
};

// The recordings of an event that processes share: how many were made, and reached.
struct SharedMarks {
  std::atomic<int64_t> made;
  std::atomic<int64_t> reached;
};

// All functions require device_mutex().

std::vector<cudaStream_t>& streams();

// Adds work to the capture.
cudaError_t capture_work(CapturePoint& at, Work work);

// What a call does that the rules of captures do not allow: the capture cannot be completed.
cudaError_t invalidate(Capture& capture, cudaError_t error);

// Refuses a call that no capture sees, such as cudaMalloc, where a capture forbids it.
cudaError_t refuse_unsafe_call();

// Queues work on the stream, or captures it.
cudaError_t queue(cudaStream_t stream, Work work);

// Runs work of the mark's stream until the mark is reached.
void run_to(const std::shared_ptr<Mark>& mark);

}  // namespace cuda_emulator

struct EmulatedStream {
  int device = 0;
  std::deque<cuda_emulator::Work> work = {};
  int64_t num_run = 0;   // of the work that was queued
  bool is_busy = false;  // its first work runs, and may wait for another stream
  std::shared_ptr<cuda_emulator::Mark> shown = {};  // the last that other processes may wait for
  cuda_emulator::CapturePoint at = {};
};

struct EmulatedEvent {
  int device = 0;
  std::shared_ptr<cuda_emulator::Mark> mark = nullptr;
  unsigned flags = 0;
  cuda_emulator::PagesName pages = {};  // of `shared`
  cuda_emulator::SharedMarks* shared = nullptr;
  bool is_foreign = false;
  cuda_emulator::CapturePoint at = {};  // if it was last recorded in a capture
};
