// Streams delay their work until the program waits for it, so that a missing wait gives a wrong
// result in every run. Only a stream with much queued work runs earlier.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "emulated_library.h"
#include "emulated_stream.h"
#include "library_hooks.h"

namespace cuda_emulator {

namespace {

constexpr size_t kLongest = 256;
// After this time work has run by itself, where somebody asks for it or another process needs it.
constexpr std::chrono::milliseconds kTimeOfWork(3);

std::atomic<int64_t> launches = 0;
int64_t captured_until_failure = -1;  // guarded by device_mutex()
std::atomic<int64_t> queued = 0;
std::atomic<int64_t> host_bytes = 0;

// Null: the file cannot be mapped. It stays mapped, because queued work uses it.
SharedMarks* shared_marks(int file) {
  if (file < 0) return nullptr;
  void* const page =
      mmap(nullptr, sizeof(SharedMarks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<SharedMarks*>(page);
}

void advance_shown();

// Waits until the stream's first work may run. Meanwhile other streams go on with what other
// processes wait for.
void wait_until_ready(cudaStream_t stream) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!stream->work.empty() && stream->work.front().is_ready &&
         !stream->work.front().is_ready()) {
    if (std::chrono::steady_clock::now() > end) {
      report_mistake("a stream waits for an event that no process reaches");
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
  const AccessWindow window(only_device(stream->device));
  while (!stream->work.empty() && !is_enough()) {
    wait_until_ready(stream);
    if (stream->work.empty()) return;
    const Work next = std::move(stream->work.front());
    stream->work.pop_front();
    ++stream->num_run;
    const AccessWindow its_window(next.devices);
    stream->is_busy = true;
    next.run();
    stream->is_busy = false;
  }
}

void run_all(cudaStream_t stream) {
  run(stream, [] { return false; });
}

// Runs what other processes wait for, as far as it is ready. What follows work that waits for
// another stream stays. Requires device_mutex().
void advance_shown() {
  for (size_t i = 0; i < streams().size(); ++i) {
    const cudaStream_t stream = streams()[i];
    const std::shared_ptr<Mark> shown = stream->shown;
    if (shown == nullptr || stream->is_busy) continue;
    run(stream, [&] {
      return shown->is_reached ||
             (stream->work.front().is_ready && !stream->work.front().is_ready());
    });
    if (shown->is_reached && stream->shown == shown) stream->shown = nullptr;
  }
}

// Other processes wait for recorded events, so the streams of this one run after a while, whether
// this process waits for them or not.
void keep_advancing_shown() {
  static const bool runs = [] {
    std::thread([] {
      for (;;) {
        std::this_thread::sleep_for(kTimeOfWork);
        const std::lock_guard lock(device_mutex());
        advance_shown();
      }
    }).detach();
    return true;
  }();
  static_cast<void>(runs);
}

// Nothing may wait for a stream that is captured, or ask how far it is.
cudaError_t refuse_captured(cudaStream_t stream) {
  if (stream == nullptr || stream->at.capture == nullptr) return cudaSuccess;
  return invalidate(*stream->at.capture, cudaErrorStreamCaptureUnsupported);
}

cudaError_t refuse_captured(cudaEvent_t event) {
  if (event->at.capture == nullptr) return cudaSuccess;
  return invalidate(*event->at.capture, cudaErrorCapturedEvent);
}

}  // namespace

std::vector<cudaStream_t>& streams() {
  static auto& all = *new std::vector<cudaStream_t>;  // used until the process ends
  return all;
}

void run_to(const std::shared_ptr<Mark>& mark) {
  if (mark != nullptr) run(mark->stream, [&] { return mark->is_reached; });
}

// flow queues nothing on the default stream.
cudaError_t queue(cudaStream_t stream, Work work) {
  if (stream == nullptr) return cudaErrorInvalidValue;
  const std::lock_guard lock(device_mutex());
  if (failure_of_calls() != cudaSuccess) return failure_of_calls();
  if (stream->at.capture != nullptr) return capture_work(stream->at, std::move(work));
  ++queued;
  stream->work.push_back(std::move(work));
  if (stream->work.size() > kLongest) run_all(stream);
  return take_failure();
}

cudaError_t enqueue(cudaStream_t stream, std::function<void()> work) {
  if (stream == nullptr) return cudaErrorInvalidValue;
  if (stream->device != current()) return cudaErrorInvalidResourceHandle;
  const std::lock_guard lock(device_mutex());
  if (stream->at.capture == nullptr) {
    ++launches;
  } else if (captured_until_failure >= 0 && captured_until_failure-- == 0) {
    return cudaErrorInvalidValue;
  }
  return queue(stream, {std::move(work), only_device(stream->device)});
}

void fail_captured_launch(int64_t number) {
  const std::lock_guard lock(device_mutex());
  captured_until_failure = number;
}

bool has_captured_launch_to_fail() {
  const std::lock_guard lock(device_mutex());
  return captured_until_failure >= 0;
}

int64_t num_launches() {
  return launches;
}

int64_t num_run(const EmulatedStream* stream) {
  const std::lock_guard lock(device_mutex());
  return stream->num_run;
}

int64_t num_host_bytes() {
  return host_bytes;
}

int64_t num_queued() {
  return queued;
}

cudaError_t synchronize(int device) {
  const std::lock_guard lock(device_mutex());
  if (failure_of_calls() != cudaSuccess) return failure_of_calls();
  for (cudaStream_t stream : streams()) {
    if (stream->device == device) run_all(stream);
  }
  return take_failure();
}

}  // namespace cuda_emulator

using cuda_emulator::keep_advancing_shown;
using cuda_emulator::Mark;
using cuda_emulator::queue;
using cuda_emulator::refuse_captured;
using cuda_emulator::run_all;
using cuda_emulator::run_to;
using cuda_emulator::shared_marks;
using cuda_emulator::SharedMarks;
using cuda_emulator::streams;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned /*flags*/) {
  cuda_emulator::use_context("cudaStreamCreateWithFlags");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  *stream = new EmulatedStream{.device = cuda_emulator::current()};
  streams().push_back(*stream);
  return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  cuda_emulator::use_context("cudaStreamDestroy");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (const cudaError_t refused = refuse_captured(stream); refused != cudaSuccess) return refused;
  run_all(stream);
  std::erase(streams(), stream);
  delete stream;
  return cuda_emulator::take_failure();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  cuda_emulator::use_context("cudaStreamSynchronize");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (const cudaError_t refused = refuse_captured(stream); refused != cudaSuccess) return refused;
  if (stream != nullptr) run_all(stream);
  return cuda_emulator::take_failure();
}

cudaError_t cudaDeviceSynchronize() {
  cuda_emulator::use_context("cudaDeviceSynchronize");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  for (cudaStream_t stream : streams()) {
    if (stream->device != cuda_emulator::current()) continue;
    if (const cudaError_t refused = refuse_captured(stream); refused != cudaSuccess) return refused;
  }
  return cuda_emulator::synchronize(cuda_emulator::current());
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  cuda_emulator::use_context("cudaEventCreateWithFlags");
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
  cuda_emulator::use_context("cudaIpcGetEventHandle");
  if ((event->flags & cudaEventInterprocess) == 0) return cudaErrorInvalidResourceHandle;
  static_assert(sizeof(event->pages) <= sizeof(handle->reserved));
  std::memset(handle->reserved, 0, sizeof(handle->reserved));
  std::memcpy(handle->reserved, &event->pages, sizeof(event->pages));
  return cudaSuccess;
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  cuda_emulator::use_context("cudaIpcOpenEventHandle");
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
  cuda_emulator::use_context("cudaEventDestroy");
  if (cuda_emulator::failure_of_calls() != cudaSuccess) return cuda_emulator::failure_of_calls();
  if (event->shared != nullptr) close(event->pages.file);
  delete event;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  cuda_emulator::use_context("cudaEventRecord");
  if (stream != nullptr && event->device != stream->device) return cudaErrorInvalidResourceHandle;
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (stream != nullptr && stream->at.capture != nullptr) {
    if (!stream->at.capture->is_valid) return cudaErrorStreamCaptureInvalidated;
    event->mark = nullptr;
    event->at = stream->at;
    return cudaSuccess;
  }
  auto mark = std::make_shared<Mark>();
  mark->stream = stream;
  event->mark = mark;
  event->at = {};
  SharedMarks* const shared = event->shared;
  const int64_t number = shared == nullptr ? 0 : ++shared->made;
  if (shared != nullptr) {
    stream->shown = mark;
    keep_advancing_shown();
  }
  return queue(stream, {[mark, shared, number] {
                 mark->time = std::chrono::steady_clock::now();
                 mark->is_reached = true;
                 if (shared != nullptr) shared->reached = number;
               }});
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  cuda_emulator::use_context("cudaEventQuery");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (const cudaError_t refused = refuse_captured(event); refused != cudaSuccess) return refused;
  if (event->mark == nullptr || event->mark->is_reached) return cudaSuccess;
  const auto now = std::chrono::steady_clock::now();
  if (!event->mark->asked) event->mark->asked = now;
  if (now < *event->mark->asked + cuda_emulator::kTimeOfWork) return cudaErrorNotReady;
  run_to(event->mark);
  return cuda_emulator::take_failure();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  cuda_emulator::use_context("cudaEventSynchronize");
  const std::lock_guard lock(cuda_emulator::device_mutex());
  if (const cudaError_t refused = refuse_captured(event); refused != cudaSuccess) return refused;
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
// the real runtime does through a staging buffer; so such a copy cannot be captured.
cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream) {
  cuda_emulator::use_context("cudaMemcpyAsync");
  using cuda_emulator::is_device_memory;
  using cuda_emulator::is_pinned_memory;
  const std::lock_guard lock(cuda_emulator::device_mutex());
  const cuda_emulator::DeviceSet devices = cuda_emulator::devices_of(target, source);
  const bool is_read_now = !is_device_memory(source) && !is_pinned_memory(source);
  const bool waits = !is_device_memory(target) && !is_pinned_memory(target);
  if (!is_device_memory(target) || !is_device_memory(source))
    cuda_emulator::host_bytes += static_cast<int64_t>(bytes);
  if (is_read_now || waits) {
    if (const cudaError_t refused = refuse_captured(stream); refused != cudaSuccess) return refused;
  }
  std::function<void()> copy = [target, source, bytes] { std::memmove(target, source, bytes); };
  if (is_read_now) {
    const auto* first = static_cast<const std::byte*>(source);
    const auto read = std::make_shared<std::vector<std::byte>>(first, first + bytes);
    copy = [target, read, bytes] { std::memcpy(target, read->data(), bytes); };
  }
  const cudaError_t result = queue(stream, {std::move(copy), devices});
  return result == cudaSuccess && waits ? cudaStreamSynchronize(stream) : result;
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
  cuda_emulator::use_context("cudaMemsetAsync");
  return queue(stream, {[target, value, bytes] { std::memset(target, value, bytes); },
                        cuda_emulator::devices_of(target, nullptr)});
}
