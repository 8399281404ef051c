#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace flow {

namespace {
thread_local bool inside_loop = false;

struct Loop {
  const void* fn;
  void (*call)(const void*, int64_t, int64_t);
  int64_t begin;
  int64_t end;
  int64_t chunk;
  int64_t num_chunks;
};

// A short spin covers the gap between two loops of one step; after it the thread sleeps.
constexpr int kSpins = 2000;
}  // namespace

struct ThreadPool::Workers {
  std::atomic<uint64_t> epoch{0};  // bumped for each loop and at the end
  std::atomic<int64_t> next_chunk{0};
  std::atomic<int> running{0};
  std::atomic<bool> stop{false};
  Loop loop{};
  std::mutex error_mutex;
  std::exception_ptr error;  // guarded by error_mutex
  std::mutex loop_mutex;     // one loop at a time
  std::vector<std::thread> threads;

  void run_chunks() {
    for (;;) {
      const int64_t i = next_chunk.fetch_add(1, std::memory_order_relaxed);
      if (i >= loop.num_chunks) return;
      const int64_t b = loop.begin + i * loop.chunk;
      try {
        loop.call(loop.fn, b, std::min(loop.end, b + loop.chunk));
      } catch (...) {
        const std::lock_guard lock(error_mutex);
        if (!error) error = std::current_exception();
      }
    }
  }

  void work() {
    inside_loop = true;
    uint64_t seen = 0;
    for (;;) {
      int spins = 0;
      while (epoch.load(std::memory_order_acquire) == seen) {
        if (++spins > kSpins) epoch.wait(seen, std::memory_order_acquire);
      }
      seen = epoch.load(std::memory_order_acquire);
      if (stop.load(std::memory_order_relaxed)) return;
      run_chunks();
      if (running.fetch_sub(1, std::memory_order_acq_rel) == 1) running.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : num_threads_(std::max(1, num_threads)) {}

ThreadPool::~ThreadPool() {
  if (!workers_) return;
  workers_->stop = true;
  workers_->epoch.fetch_add(1, std::memory_order_release);
  workers_->epoch.notify_all();
  for (std::thread& thread : workers_->threads)
    thread.join();
}

void ThreadPool::run(int64_t begin, int64_t end, int64_t grain, const void* fn, ChunkFn call) {
  if (inside_loop) {
    call(fn, begin, end);
    return;
  }
  if (!workers_) {
    workers_ = std::make_unique<Workers>();
    for (int i = 1; i < num_threads_; ++i) {
      workers_->threads.emplace_back([workers = workers_.get()] { workers->work(); });
    }
  }
  Workers& w = *workers_;
  const std::lock_guard only_loop(w.loop_mutex);
  const int64_t size = end - begin;
  // Four chunks a thread even out unequal speed without much overhead.
  const int64_t num_chunks = int64_t{4} * num_threads_;
  const int64_t wanted = std::max<int64_t>(grain, (size + num_chunks - 1) / num_chunks);
  w.loop = {fn, call, begin, end, wanted, (size + wanted - 1) / wanted};
  w.next_chunk.store(0, std::memory_order_relaxed);
  w.running.store(num_threads_ - 1, std::memory_order_relaxed);
  w.epoch.fetch_add(1, std::memory_order_release);
  w.epoch.notify_all();
  inside_loop = true;
  w.run_chunks();
  inside_loop = false;
  int spins = 0;
  for (int left = w.running.load(std::memory_order_acquire); left != 0;
       left = w.running.load(std::memory_order_acquire)) {
    if (++spins > kSpins) w.running.wait(left, std::memory_order_acquire);
  }
  if (w.error) std::rethrow_exception(std::exchange(w.error, nullptr));
}

}  // namespace flow
