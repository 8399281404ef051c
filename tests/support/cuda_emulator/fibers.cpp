// Runs a block's threads as fibers on one system thread. A fiber runs one thread of the block after
// another. Only a thread that waits at a barrier keeps its fiber, so kernels without barriers run
// at the speed of a loop.
//
// The variable CUDA_EMULATOR_ORDER says in which order the blocks of a launch and the threads of a
// block run: forward (the default), reversed, or random, which is the same in each run. A kernel
// whose results differ reads what another thread has not written yet. Dynamic shared memory is
// filled with ones, which are NaN as floats, before each block. Asynchronous copies run when their
// thread waits for them in the forward order, when they begin in the reversed one, and each at one
// of these times in the random one: the one shows a missing wait, the other that a copy overwrites
// what is still read.
#undef _FORTIFY_SOURCE  // its longjmp supports one stack only
#include <algorithm>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <ucontext.h>

#include "emulated_device.h"

namespace cuda_emulator {

namespace {

constexpr size_t kStackBytes = 64 << 10;
constexpr unsigned kLanes = 32;
constexpr size_t kCopyBytes = 16;

enum class Wait { kNone, kBlock, kWarp };

struct Fiber {
  jmp_buf place;
  ucontext_t first;
  std::unique_ptr<std::byte[]> stack{new std::byte[kStackBytes]};
  bool is_entered = false;
  bool is_idle = true;
  uint3 thread;
  unsigned number = 0;  // of the thread in its block
  Wait wait = Wait::kNone;
  unsigned mask = 0;
};

// The values that the lanes of a warp exchange: two rounds, because a lane may be one round ahead
// of another.
struct Warp {
  uint64_t values[2][kLanes] = {};
};

// A copy to shared memory.
struct AsyncCopy {
  void* to;
  const void* from;  // null: zeros
  int group;

  void run() const {
    if (from == nullptr) {
      std::memset(to, 0, kCopyBytes);
    } else {
      std::memcpy(to, from, kCopyBytes);
    }
  }
};

// Those that a thread has begun.
struct AsyncCopies {
  std::vector<AsyncCopy> begun;
  int group = 0;  // of the copies to come

  // Runs the copies of the groups before `end`.
  void run(int end) {
    std::erase_if(begun, [end](const AsyncCopy& copy) {
      if (copy.group < end) copy.run();
      return copy.group < end;
    });
  }
};

enum class Order { kForward, kReversed, kRandom };

Order order_of_environment() {
  const char* const value = std::getenv("CUDA_EMULATOR_ORDER");
  const std::string order = value == nullptr ? "forward" : value;
  if (order == "forward") return Order::kForward;
  if (order == "reversed") return Order::kReversed;
  if (order == "random") return Order::kRandom;
  throw std::runtime_error("CUDA_EMULATOR_ORDER is forward, reversed or random; received " + order);
}

// The numbers from 0 to count - 1 in the order in which they run.
class RunOrder {
 public:
  const std::vector<unsigned>& of(unsigned count) {
    numbers_.resize(count);
    std::iota(numbers_.begin(), numbers_.end(), 0U);
    if (order_ == Order::kReversed) std::reverse(numbers_.begin(), numbers_.end());
    if (order_ == Order::kRandom) std::shuffle(numbers_.begin(), numbers_.end(), generator_);
    return numbers_;
  }

  // Whether an asynchronous copy runs when it begins, and not as late as it may.
  bool copies_at_once() {
    return order_ == Order::kReversed || (order_ == Order::kRandom && generator_() % 2 == 0);
  }

 private:
  Order order_ = order_of_environment();
  std::mt19937 generator_{7};
  std::vector<unsigned> numbers_;
};

class Runner;
Runner& runner();

class Runner {
 public:
  cudaError_t run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread) {
    thread_ = &thread;
    total_ = block.x * block.y * block.z;
    shared_.assign((shared_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t), {});
    rounds_.assign(total_, 0);
    failure_ = cudaSuccess;
    gridDim = grid;
    blockDim = block;
    for (const unsigned number : blocks_.of(grid.x * grid.y * grid.z)) {
      blockIdx.x = number % grid.x;
      blockIdx.y = number / grid.x % grid.y;
      blockIdx.z = number / (grid.x * grid.y);
      if (!run_block()) return cudaErrorLaunchFailure;
    }
    return failure_;
  }

  void* shared() { return shared_.data(); }

  Fiber& current() { return *current_; }

  // Of the thread that runs.
  AsyncCopies& copies() {
    if (copies_.empty()) copies_.resize(total_);
    return copies_[current_->number];
  }

  void begin_copy(void* to, const void* from) {
    const AsyncCopy copy{to, from, copies().group};
    if (blocks_.copies_at_once()) return copy.run();
    copies().begun.push_back(copy);
  }

  void fail(cudaError_t error) { failure_ = error; }

  void wait(Wait wait, unsigned mask) {
    Fiber& fiber = *current_;
    fiber.wait = wait;
    fiber.mask = mask;
    if (_setjmp(fiber.place) == 0) _longjmp(scheduler_, 1);
    threadIdx = fiber.thread;
  }

  const uint64_t* exchange(unsigned mask, uint64_t value) {
    const unsigned number = current_->number;
    auto& values = warps_[number / kLanes].values[rounds_[number]++ & 1];
    values[number % kLanes] = value;
    wait(Wait::kWarp, mask);
    return values;
  }

 private:
  static void enter() { runner().work(); }

  // The loop of a fiber: runs threads that have not begun, then becomes idle.
  void work() {
    for (;;) {
      Fiber& fiber = *current_;
      while (next_ < total_) {
        fiber.number = order_[next_++];
        fiber.thread.x = fiber.number % blockDim.x;
        fiber.thread.y = fiber.number / blockDim.x % blockDim.y;
        fiber.thread.z = fiber.number / (blockDim.x * blockDim.y);
        threadIdx = fiber.thread;
        (*thread_)();
        ++num_ended_;
      }
      fiber.is_idle = true;
      if (_setjmp(fiber.place) == 0) _longjmp(scheduler_, 1);
    }
  }

  void resume(Fiber& fiber) {
    current_ = &fiber;
    if (_setjmp(scheduler_) != 0) return;
    if (fiber.is_entered) _longjmp(fiber.place, 1);
    fiber.is_entered = true;
    setcontext(&fiber.first);
  }

  Fiber& idle_fiber() {
    for (const auto& fiber : fibers_) {
      if (fiber->is_idle) return *fiber;
    }
    fibers_.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *fibers_.back();
    getcontext(&fiber.first);
    fiber.first.uc_stack.ss_sp = fiber.stack.get();
    fiber.first.uc_stack.ss_size = kStackBytes;
    fiber.first.uc_link = nullptr;
    makecontext(&fiber.first, &Runner::enter, 0);
    return fiber;
  }

  // Returns false if some threads wait for others that never reach the barrier.
  bool run_block() {
    order_ = threads_.of(total_);
    std::memset(static_cast<void*>(shared_.data()), 0xff,
                shared_.size() * sizeof(std::max_align_t));
    next_ = 0;
    num_ended_ = 0;
    warps_.assign((total_ + kLanes - 1) / kLanes, {});
    copies_.clear();
    while (num_ended_ < total_) {
      if (next_ < total_) {
        Fiber& fiber = idle_fiber();
        fiber.is_idle = false;
        resume(fiber);
      } else if (!release()) {
        fibers_.clear();
        return false;
      }
    }
    return true;
  }

  // Resumes the threads whose barrier all others have reached. A warp goes on as far as it can
  // before the next one does, so that a kernel fails which lets one overwrite what another still
  // reads. Requires: all threads have begun.
  bool release() {
    std::vector<std::vector<Fiber*>> waiting(warps_.size());
    for (const auto& fiber : fibers_)
      if (!fiber->is_idle) waiting[fiber->number / kLanes].push_back(fiber.get());
    bool has_resumed = false;
    for (const unsigned warp : warp_order_.of(static_cast<unsigned>(waiting.size())))
      while (release_lanes(warp, waiting[warp]))
        has_resumed = true;
    if (has_resumed) return true;
    unsigned at_block = 0;
    for (const std::vector<Fiber*>& lanes : waiting)
      at_block += static_cast<unsigned>(std::count_if(
          lanes.begin(), lanes.end(), [](Fiber* lane) { return lane->wait == Wait::kBlock; }));
    if (at_block == 0 || at_block != total_ - num_ended_) return false;
    for (const std::vector<Fiber*>& lanes : waiting)
      for (Fiber* lane : lanes)
        resume(*lane);
    return true;
  }

  // Resumes the lanes of a warp whose barrier of the warp all others have reached.
  bool release_lanes(unsigned warp, const std::vector<Fiber*>& lanes) {
    unsigned reached = 0;
    for (const Fiber* lane : lanes)
      if (!lane->is_idle && lane->wait == Wait::kWarp) reached |= 1u << lane->number % kLanes;
    std::vector<Fiber*> ready;
    for (Fiber* lane : lanes) {
      const bool waits = !lane->is_idle && lane->wait == Wait::kWarp;
      if (waits && (lane->mask & existing(warp) & ~reached) == 0) ready.push_back(lane);
    }
    for (Fiber* lane : ready)
      resume(*lane);
    return !ready.empty();
  }

  // The lanes of a warp. One that a mask names and that has ended is waited for in vain: a device
  // does not say what others get from it.
  unsigned existing(unsigned warp) const {
    const unsigned count = std::min(kLanes, total_ - warp * kLanes);
    return count == kLanes ? ~0u : (1u << count) - 1;
  }

  const std::function<void()>* thread_ = nullptr;
  unsigned total_ = 0;  // threads of a block
  unsigned next_ = 0;   // how many of them have begun
  RunOrder blocks_, threads_, warp_order_;
  std::vector<unsigned> order_;  // of the threads of a block
  unsigned num_ended_ = 0;
  std::vector<Warp> warps_;
  std::vector<unsigned> rounds_;     // exchanges of each thread
  std::vector<AsyncCopies> copies_;  // of each thread
  cudaError_t failure_ = cudaSuccess;
  std::vector<std::max_align_t> shared_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  jmp_buf scheduler_;
};

Runner& runner() {
  thread_local Runner instance;
  return instance;
}

}  // namespace

void* dynamic_shared() {
  return runner().shared();
}

void block_barrier() {
  runner().wait(Wait::kBlock, 0);
}

void warp_barrier(unsigned mask) {
  runner().wait(Wait::kWarp, mask);
}

unsigned lane() {
  return runner().current().number % kLanes;
}

const uint64_t* exchange(unsigned mask, uint64_t value) {
  return runner().exchange(mask, value);
}

void begin_copy(void* to, const void* from) {
  runner().begin_copy(to, from);
}

void end_copy_group() {
  ++runner().copies().group;
}

void wait_for_copies(int later) {
  AsyncCopies& copies = runner().copies();
  copies.run(copies.group - later);
}

void check_alignment(const void* address, size_t unit) {
  if (reinterpret_cast<uintptr_t>(address) % unit != 0) runner().fail(cudaErrorMisalignedAddress);
}

cudaError_t run_grid(dim3 grid, dim3 block, size_t shared_bytes,
                     const std::function<void()>& thread) {
  return runner().run(grid, block, shared_bytes, thread);
}

}  // namespace cuda_emulator
