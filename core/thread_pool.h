// The compute threads of one rank. They run one parallel loop at a time, in chunks whose bounds do
// not depend on which thread runs them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace flow {

// Runs loops on `num_threads` threads; the calling thread is one of them. The worker threads start
// at the first loop that needs them and belong to the rank. A loop inside a loop runs on the
// calling thread.
class ThreadPool {
 public:
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const { return num_threads_.load(std::memory_order_relaxed); }

  // Waits for the loop that runs, ends the worker threads, and continues with another number.
  void set_num_threads(int num_threads);

  // Calls fn(b, e) for disjoint chunks that cover [begin, end); each chunk but the last has at
  // least `grain` indices. Blocks until all chunks have ended, then rethrows the first exception of
  // a chunk.
  template <class Fn>
  void parallel_for(int64_t begin, int64_t end, int64_t grain, const Fn& fn) {
    if (num_threads() == 1 || end - begin <= grain) {
      if (end > begin) fn(begin, end);
      return;
    }
    run(begin, end, grain, &fn,
        [](const void* f, int64_t b, int64_t e) { (*static_cast<const Fn*>(f))(b, e); });
  }

 private:
  using ChunkFn = void (*)(const void* fn, int64_t begin, int64_t end);
  void run(int64_t begin, int64_t end, int64_t grain, const void* fn, ChunkFn call);

  struct Workers;
  std::atomic<int> num_threads_;
  std::unique_ptr<Workers> workers_;
};

// Returns true once a pool of this process has started worker threads. Before that no other thread
// has read the memory that a kernel writes.
bool has_worker_threads();

}  // namespace flow
