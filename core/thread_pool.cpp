#include "core/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace flow {

namespace {
using Clock = std::chrono::steady_clock;

thread_local bool inside_loop = false;
std::atomic<bool> any_workers{false};

// How long a thread waits before it sleeps. A sleeping thread takes about 50 µs to wake up, and
// consecutive loops of a training step are mostly less than 100 µs apart. After kPolite the waiting
// thread yields its core to any other thread, so that ranks that share a core lose little.
constexpr auto kPolite = std::chrono::microseconds(5);
constexpr auto kPatience = std::chrono::microseconds(200);

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Spins until `is_over()`; returns false if the time for spinning has run out.
template <class IsOver>
bool wait_awake(const IsOver& is_over) {
  constexpr int kLooks = 32;  // between reads of the clock
  Clock::time_point start;
  for (bool is_first = true;; is_first = false) {
    for (int i = 0; i < kLooks; ++i) {
      if (is_over()) return true;
      relax();
    }
    const Clock::time_point now = Clock::now();
    if (is_first) start = now;
    if (now - start > kPatience) return false;
    if (now - start > kPolite) std::this_thread::yield();
  }
}

struct Loop {
  const void* fn;
  void (*call)(const void*, int64_t, int64_t);
  int64_t begin;
  int64_t end;
  int64_t chunk;
};

// Cores fetch cache lines in pairs.
constexpr size_t kSeparate = 128;

// The chunks of one thread; the other threads help when their own chunks are done.
struct alignas(kSeparate) Share {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};
}  // namespace

// A loop is open while `gate` has kOpen. A worker that arrives in time enters, takes chunks and
// leaves. The caller takes chunks until none is left, closes the loop and waits for the workers
// inside. So a worker that sleeps or has no core delays nobody. `loop` and the shares are written
// only while the gate is closed and no worker is inside.
struct ThreadPool::Workers {
  static constexpr uint32_t kOpen = uint32_t{1} << 31;
  static constexpr uint32_t kStop = uint32_t{1} << 30;

  alignas(kSeparate) std::atomic<uint32_t> gate{0};    // kOpen, kStop, number of workers inside
  alignas(kSeparate) std::atomic<uint32_t> signal{0};  // incremented for each loop and at the end
  alignas(kSeparate) Loop loop{};
  std::vector<Share> shares;
  std::mutex error_mutex;
  std::exception_ptr error;  // guarded by error_mutex
  std::mutex loop_mutex;     // one loop at a time; also guards the start of the threads
  std::vector<std::thread> threads;

  explicit Workers(int num_threads) : shares(static_cast<size_t>(num_threads)) {}

  void run_chunks(size_t own) {
    for (size_t k = 0; k < shares.size(); ++k) {
      Share& share = shares[(own + k) % shares.size()];
      // A plain load first: a finished share then stays in all caches.
      while (share.next.load(std::memory_order_relaxed) < share.end) {
        const int64_t i = share.next.fetch_add(1, std::memory_order_relaxed);
        if (i >= share.end) break;
        const int64_t b = loop.begin + i * loop.chunk;
        try {
          loop.call(loop.fn, b, std::min(loop.end, b + loop.chunk));
        } catch (...) {
          const std::lock_guard lock(error_mutex);
          if (!error) error = std::current_exception();
        }
      }
    }
  }

  // Returns false if the loop was already closed.
  bool enter() {
    uint32_t seen = gate.load(std::memory_order_relaxed);
    while ((seen & kOpen) != 0) {
      if (gate.compare_exchange_weak(seen, seen + 1, std::memory_order_acquire,
                                     std::memory_order_relaxed))
        return true;
    }
    return false;
  }

  void leave() {
    if (gate.fetch_sub(1, std::memory_order_release) == 1) gate.notify_one();
  }

  void work(size_t own) {
    inside_loop = true;
    uint32_t seen = 0;
    for (;;) {
      const auto is_called = [&] { return signal.load(std::memory_order_acquire) != seen; };
      if (!wait_awake(is_called)) signal.wait(seen, std::memory_order_acquire);
      seen = signal.load(std::memory_order_acquire);
      if ((gate.load(std::memory_order_relaxed) & kStop) != 0) return;
      if (!enter()) continue;
      run_chunks(own);
      leave();
    }
  }

  void call_all() {
    signal.fetch_add(1, std::memory_order_seq_cst);
    signal.notify_all();
  }

  void start_threads() {
    any_workers.store(true, std::memory_order_relaxed);
    for (size_t i = 1; i < shares.size(); ++i) {
      try {
        threads.emplace_back([this, i] { work(i); });
      } catch (const std::system_error& refusal) {
        throw OutOfMemory(
            str("[threads] the system refused to start compute thread ", i + 1, " of ",
                shares.size(), " of this rank; received ", refusal.code().message(),
                "; set FLOW_NUM_THREADS to a smaller number, or raise the limit on threads "
                "(ulimit -u) or on memory"));
      }
    }
  }

  void stop_threads() {
    gate.store(kStop, std::memory_order_release);
    call_all();
    for (std::thread& thread : threads)
      thread.join();
    threads.clear();
    gate.store(0, std::memory_order_release);
  }

  // Gives each thread contiguous chunks, the same for loops of equal size: data written by one loop
  // is then in the cache of the core that reads it in the next loop.
  void share_out(int64_t num_chunks) {
    const auto n = static_cast<int64_t>(shares.size());
    int64_t begin = 0;
    for (int64_t i = 0; i < n; ++i) {
      Share& share = shares[static_cast<size_t>(i)];
      share.next.store(begin, std::memory_order_relaxed);
      begin = share.end = (num_chunks * (i + 1) + n - 1) / n;
    }
  }

  void run_all(const Loop& next, int64_t num_chunks) {
    loop = next;
    share_out(num_chunks);
    gate.store(kOpen, std::memory_order_release);
    call_all();
    run_chunks(0);
    if (gate.fetch_and(~kOpen, std::memory_order_acquire) == kOpen) return;
    const auto is_empty = [&] { return gate.load(std::memory_order_acquire) == 0; };
    while (!wait_awake(is_empty)) {
      const uint32_t inside = gate.load(std::memory_order_acquire);
      if (inside != 0) gate.wait(inside, std::memory_order_acquire);
    }
  }
};

ThreadPool::ThreadPool(int num_threads)
    : num_threads_(std::max(1, num_threads)),
      workers_(std::make_unique<Workers>(this->num_threads())) {}

ThreadPool::~ThreadPool() {
  workers_->stop_threads();
}

void ThreadPool::set_num_threads(int num_threads) {
  if (inside_loop) {
    throw InvalidArgument(
        "[set_num_threads] a loop on the compute threads calls it; call it from "
        "the program's own threads");
  }
  Workers& w = *workers_;
  const std::lock_guard only_loop(w.loop_mutex);
  w.stop_threads();
  num_threads_.store(std::max(1, num_threads), std::memory_order_relaxed);
  w.shares = std::vector<Share>(static_cast<size_t>(this->num_threads()));
}

void ThreadPool::run(int64_t begin, int64_t end, int64_t grain, const void* fn, ChunkFn call) {
  if (inside_loop) {
    call(fn, begin, end);
    return;
  }
  Workers& w = *workers_;
  const std::lock_guard only_loop(w.loop_mutex);
  if (w.threads.empty()) w.start_threads();
  // Four chunks per thread balance unequal speeds with little overhead. The bounds of long chunks
  // are multiples of a cache line.
  constexpr int64_t kLong = 1024;
  constexpr int64_t kLine = 64;
  int64_t chunk = std::max(grain, (end - begin) / (int64_t{4} * this->num_threads()));
  if (chunk >= kLong) chunk = (chunk + kLine - 1) / kLine * kLine;
  inside_loop = true;
  w.run_all({fn, call, begin, end, chunk}, (end - begin + chunk - 1) / chunk);
  inside_loop = false;
  if (w.error) std::rethrow_exception(std::exchange(w.error, nullptr));
}

bool has_worker_threads() {
  return any_workers.load(std::memory_order_relaxed);
}

}  // namespace flow
