// Streams delay their work until the program waits for it, so that a missing wait gives a wrong
// result in every run. Only a stream with much queued work runs earlier.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "emulated_device.h"
#include "library_hooks.h"

namespace {

constexpr size_t kLongest = 256;

std::atomic<int64_t> launches = 0;

// One recording of an event.
struct Mark {
  cudaStream_t stream = nullptr;
  bool is_reached = false;
  std::chrono::steady_clock::time_point time;
};

}  // namespace

struct EmulatedStream {
  struct Work {
    std::function<void()> run;
    cuda_emulator::DeviceSet devices;  // whose memory it may use
  };

  int device = 0;
  std::deque<Work> work;
};

struct EmulatedEvent {
  int device = 0;
  std::shared_ptr<Mark> mark;
};

namespace {

std::vector<cudaStream_t>& streams() {
  static std::vector<cudaStream_t> all;
  return all;
}

// Runs the stream's work until `is_enough` returns true. Requires device_mutex().
template <class Predicate>
void run(cudaStream_t stream, const Predicate& is_enough) {
  if (stream->work.empty() || is_enough()) return;
  const cuda_emulator::AccessWindow window(cuda_emulator::only_device(stream->device));
  while (!stream->work.empty() && !is_enough()) {
    const EmulatedStream::Work next = std::move(stream->work.front());
    stream->work.pop_front();
    const cuda_emulator::AccessWindow its_window(next.devices);
    next.run();
  }
}

void run_all(cudaStream_t stream) {
  run(stream, [] { return false; });
}

void run_to(const std::shared_ptr<Mark>& mark) {
  if (mark != nullptr) run(mark->stream, [&] { return mark->is_reached; });
}

// flow queues nothing on the default stream.
cudaError_t queue(cudaStream_t stream, cuda_emulator::DeviceSet devices,
                  std::function<void()> work) {
  if (stream == nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  stream->work.push_back({std::move(work), devices});
  if (stream->work.size() > kLongest) run_all(stream);
  return cuda_emulator::take_failure();
}

}  // namespace

cudaError_t cuda_emulator::enqueue(cudaStream_t stream, std::function<void()> work) {
  if (stream != nullptr && stream->device != current()) return cudaErrorInvalidResourceHandle;
  ++launches;
  return queue(stream, stream == nullptr ? 0 : only_device(stream->device), std::move(work));
}

int64_t cuda_emulator::num_launches() {
  return launches;
}

cudaError_t cuda_emulator::synchronize(int device) {
  const std::lock_guard lock(device_mutex());
  if (failure_of_calls() != cudaSuccess) return failure_of_calls();
  for (cudaStream_t stream : streams()) {
    if (stream->device == device) run_all(stream);
  }
  return take_failure();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  *stream = new EmulatedStream{cuda_emulator::current(), {}};
  streams().push_back(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  run_all(stream);
  std::erase(streams(), stream);
  delete stream;
  return cuda_emulator::take_failure();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (stream != nullptr) run_all(stream);
  return cuda_emulator::take_failure();
}

cudaError_t cudaDeviceSynchronize() {
  return cuda_emulator::synchronize(cuda_emulator::current());
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned /*flags*/) {
  return queue(stream, 0, [mark = event->mark] { run_to(mark); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned /*flags*/) {
  *event = new EmulatedEvent{cuda_emulator::current(), nullptr};
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream != nullptr && event->device != stream->device) return cudaErrorInvalidResourceHandle;
  auto mark = std::make_shared<Mark>();
  mark->stream = stream;
  event->mark = mark;
  return queue(stream, 0, [mark] {
    mark->time = std::chrono::steady_clock::now();
    mark->is_reached = true;
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  return event->mark == nullptr || event->mark->is_reached ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  const std::lock_guard lock(cuda_emulator::device_mutex());
  run_to(event->mark);
  return cuda_emulator::take_failure();
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  if (start->mark == nullptr || end->mark == nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (!start->mark->is_reached || !end->mark->is_reached) return cudaErrorNotReady;
  const std::chrono::duration<float, std::milli> passed = end->mark->time - start->mark->time;
  *milliseconds = passed.count();
  return cudaSuccess;
}

// Memory that is not pinned is read when the copy is queued and written before the call returns, as
// the real runtime does through a staging buffer.
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  using cuda_emulator::is_device_memory;
  using cuda_emulator::is_pinned_memory;
  const std::lock_guard lock(cuda_emulator::device_mutex());
  const cuda_emulator::DeviceSet devices = cuda_emulator::devices_of(target, source);
  if (!is_device_memory(source) && !is_pinned_memory(source)) {
    const auto* first = static_cast<const std::byte*>(source);
    auto copy = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    const cudaError_t queued =
        queue(stream, devices, [target, copy, bytes] { std::memcpy(target, copy->data(), bytes); });
    if (queued != cudaSuccess) return queued;
  } else {
    const cudaError_t queued =
        queue(stream, devices, [target, source, bytes] { std::memmove(target, source, bytes); });
    if (queued != cudaSuccess) return queued;
  }
  if (!is_device_memory(target) && !is_pinned_memory(target)) return cudaStreamSynchronize(stream);
  return cudaSuccess;
}

cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                int source_device, size_t bytes, cudaStream_t stream) {
  if (cuda_emulator::device_of(target) != target_device ||
      cuda_emulator::device_of(source) != source_device) {
    return cudaErrorInvalidValue;
  }
  return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}

cudaError_t cudaMemsetAsync(void* target, int value, size_t bytes, cudaStream_t stream) {
  return queue(stream, cuda_emulator::devices_of(target, nullptr),
               [target, value, bytes] { std::memset(target, value, bytes); });
}
