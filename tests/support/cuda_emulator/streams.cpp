// Streams delay their work until the program waits for it, so that a missing wait gives a wrong
// result in every run. Only a stream with much queued work runs earlier.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "emulated_device.h"
#include "emulated_library.h"
#include "library_hooks.h"
#include "shared_pages.h"

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
    cuda_emulator::DeviceSet devices;     // whose memory it may use
    std::function<bool()> is_ready = {};  // of a wait for another process
  };

  int device = 0;
  std::deque<Work> work;
  std::shared_ptr<Mark> shown = {};  // the last one for which other processes may wait
};

// The recordings of an event that processes share: how many were made, and reached.
struct SharedMarks {
  std::atomic<int64_t> made;
  std::atomic<int64_t> reached;
};

struct EmulatedEvent {
  int device = 0;
  std::shared_ptr<Mark> mark = {};
  unsigned flags = 0;
  cuda_emulator::PagesName pages = {};  // of `shared`
  SharedMarks* shared = nullptr;
  bool is_foreign = false;
};

namespace {

// Null: the file cannot be mapped. It stays mapped, because queued work uses it.
SharedMarks* shared_marks(int file) {
  if (file < 0) return nullptr;
  void* const page =
      mmap(nullptr, sizeof(SharedMarks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<SharedMarks*>(page);
}

std::vector<cudaStream_t>& streams() {
  static auto& all = *new std::vector<cudaStream_t>;  // used until the process ends
  return all;
}

void advance_shown();

// Waits until the stream's first work may run. Meanwhile other streams go on with what other
// processes wait for.
void wait_until_ready(cudaStream_t stream) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (stream->work.front().is_ready && !stream->work.front().is_ready()) {
    if (std::chrono::steady_clock::now() > end) {
      cuda_emulator::report_mistake("a stream waits for an event that no process reaches");
      return;
    }
    advance_shown();
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

// Runs the stream's work until `is_enough` returns true. Requires device_mutex().
template <class Predicate>
void run(cudaStream_t stream, const Predicate& is_enough) {
  if (stream->work.empty() || is_enough()) return;
  const cuda_emulator::AccessWindow window(cuda_emulator::only_device(stream->device));
  while (!stream->work.empty() && !is_enough()) {
    wait_until_ready(stream);
    if (stream->work.empty()) return;
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

// Runs what other processes wait for, as far as it is ready. Requires device_mutex().
void advance_shown() {
  for (size_t i = 0; i < streams().size(); ++i) {
    const cudaStream_t stream = streams()[i];
    if (stream->shown == nullptr) continue;
    run(stream, [stream] {
      return stream->shown->is_reached ||
             (stream->work.front().is_ready && !stream->work.front().is_ready());
    });
    if (stream->shown->is_reached) stream->shown = nullptr;
  }
}

// Other processes wait for recorded events, so the streams of this one run after a while, whether
// this process waits for them or not.
void keep_advancing_shown() {
  static const bool runs = [] {
    std::thread([] {
      for (;;) {
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        const std::lock_guard lock(cuda_emulator::device_mutex());
        advance_shown();
      }
    }).detach();
    return true;
  }();
  static_cast<void>(runs);
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
  if (event->is_foreign) {
    const std::lock_guard lock(cuda_emulator::device_mutex());
    const int64_t number = event->shared->made;
    stream->work.push_back(
        {[] {}, 0, [shared = event->shared, number] { return shared->reached >= number; }});
    return cuda_emulator::take_failure();
  }
  return queue(stream, 0, [mark = event->mark] { run_to(mark); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  if ((flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0)
    return cudaErrorInvalidValue;
  auto made = std::make_unique<EmulatedEvent>();
  made->device = cuda_emulator::current();
  made->flags = flags;
  if ((flags & cudaEventInterprocess) != 0) {
    made->pages = cuda_emulator::make_pages(sizeof(SharedMarks));
    made->shared = shared_marks(made->pages.file);
    if (made->shared == nullptr) return cudaErrorMemoryAllocation;
  }
  *event = made.release();
  return cudaSuccess;
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  if ((event->flags & cudaEventInterprocess) == 0) return cudaErrorInvalidResourceHandle;
  static_assert(sizeof(event->pages) <= sizeof(handle->reserved));
  std::memset(handle->reserved, 0, sizeof(handle->reserved));
  std::memcpy(handle->reserved, &event->pages, sizeof(event->pages));
  return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  auto opened = std::make_unique<EmulatedEvent>();
  opened->device = cuda_emulator::current();
  opened->is_foreign = true;
  std::memcpy(&opened->pages, handle.reserved, sizeof(opened->pages));
  if (opened->pages.process == getpid()) return cudaErrorInvalidResourceHandle;
  opened->pages.file = cuda_emulator::open_pages(opened->pages);
  opened->shared = shared_marks(opened->pages.file);
  if (opened->shared == nullptr) return cudaErrorMapBufferObjectFailed;
  *event = opened.release();
  return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (event->shared != nullptr) close(event->pages.file);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (stream != nullptr && event->device != stream->device) return cudaErrorInvalidResourceHandle;
  auto mark = std::make_shared<Mark>();
  mark->stream = stream;
  event->mark = mark;
  const std::lock_guard lock(cuda_emulator::device_mutex());
  SharedMarks* const shared = event->shared;
  const int64_t number = shared == nullptr ? 0 : ++shared->made;
  if (shared != nullptr) {
    stream->shown = mark;
    keep_advancing_shown();
  }
  return queue(stream, 0, [mark, shared, number] {
    mark->time = std::chrono::steady_clock::now();
    mark->is_reached = true;
    if (shared != nullptr) shared->reached = number;
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
