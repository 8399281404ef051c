// The state of a rank (RankContext, which the threads of a rank share) and of a thread
// (ThreadState). Apart from these, only the intern tables are mutable state of the process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/allocator.h"
#include "core/generator.h"
#include "core/placement.h"
#include "core/sbp.h"
#include "core/site.h"
#include "core/thread_pool.h"

namespace flow {

class Chooser;
class Interpreter;
class Recorder;
class Autocaster;
class CallObserver;
class OpTable;
class KernelTable;

// The ranks of one run, which are processes or threads.
struct RankIdentity {
  int64_t rank = 0;
  int64_t world_size = 1;
  int64_t local_rank = 0;
  int64_t node_rank = 0;
};

// State of one rank. Its members are thread safe or are set up before the rank runs.
class RankContext {
 public:
  explicit RankContext(const RankIdentity& identity, int num_threads);
  ~RankContext();
  RankContext(const RankContext&) = delete;
  RankContext& operator=(const RankContext&) = delete;

  int64_t rank() const { return identity_.rank; }

  int64_t world_size() const { return identity_.world_size; }

  const RankIdentity& identity() const { return identity_; }

  Generator& generator() { return generator_; }

  Allocator& allocator() { return *allocator_; }

  ThreadPool& thread_pool() { return thread_pool_; }

  // State that a higher layer attaches to the rank. It is made at first use and found by its type.
  template <class T>
  T& slot() {
    static constexpr char kKey = 0;
    void* found = find_slot(&kKey);
    if (found == nullptr) found = add_slot(&kKey, std::make_shared<T>());
    return *static_cast<T*>(found);
  }

  // Installs a value that was made elsewhere, for instance one that the thread ranks of a world
  // share.
  template <class T>
  void set_slot(std::shared_ptr<T> value) {
    slot_ptr<T>() = std::move(value);
  }

  template <class T>
  std::shared_ptr<T>& slot_ptr() {
    return slot<std::shared_ptr<T>>();
  }

 private:
  void* find_slot(const void* key);
  void* add_slot(const void* key, std::shared_ptr<void> value);

  RankIdentity identity_;
  Generator generator_;
  Allocator* allocator_;
  ThreadPool thread_pool_;
  struct Slots;
  std::unique_ptr<Slots> slots_;
};

// The part of a training step that is running. Traced nodes store it.
enum class Phase : uint8_t { kForward, kBackward, kUpdate };

// State of one thread. Only that thread uses it.
struct ThreadState {
  RankContext* context = nullptr;
  // The three parts of dispatch (core/dispatch.h). The runtime or a guard installs them.
  Chooser* chooser = nullptr;
  Interpreter* interpreter = nullptr;
  Recorder* recorder = nullptr;
  const Autocaster* autocast = nullptr;  // AutocastGuard; null: off
  bool grad_enabled = true;
  bool forbids_implicit_boxing = false;  // ForbidImplicitBoxing
  // The default layout of creation ops (PlacementGuard).
  Placement default_placement;
  NdSbp default_sbp;
  // The nearest line of user code, which module calls and the backward engine set, and the module
  // path and pipeline stage of the running call.
  Site scope_site = Site::none();
  const std::string* module_path = nullptr;
  int64_t stage = -1;
  Phase phase = Phase::kForward;
  // Owners of the three parts above, and other per-thread state of higher layers.
  std::vector<std::shared_ptr<void>> owned;
  // The interpreter that records calls while a trace runs; null: calls run at once.
  Interpreter* trace = nullptr;
  // Is told of each call that runs; null: there is no observer.
  CallObserver* observer = nullptr;
};

namespace internal {
inline constinit thread_local ThreadState* current_thread_state = nullptr;
// Attaches the calling thread to the context of the process. Throws InvalidArgument while ranks are
// threads.
ThreadState& attach_to_process();
}  // namespace internal

// The state of this thread. The first call attaches the thread to the rank of the process.
inline ThreadState& thread_state() {
  ThreadState* state = internal::current_thread_state;
  return state != nullptr ? *state : internal::attach_to_process();
}

// Returns `site`, or the site of the enclosing scope if `site` is inside the library.
Site user_site(Site site);

// Attaches the calling thread to `context` for a scope. Thread ranks and flow's own threads are
// attached in this way. The context must outlive the scope.
class RankScope {
 public:
  explicit RankScope(RankContext& context);
  ~RankScope();
  RankScope(const RankScope&) = delete;
  RankScope& operator=(const RankScope&) = delete;

 private:
  std::unique_ptr<ThreadState> state_;
  ThreadState* outer_;
};

// While the guard lives, creation ops that are called without a layout make global tensors of this
// placement and sbp.
class [[nodiscard]] PlacementGuard {
 public:
  PlacementGuard(const Placement& placement, const NdSbp& sbp);
  ~PlacementGuard();
  PlacementGuard(const PlacementGuard&) = delete;
  PlacementGuard& operator=(const PlacementGuard&) = delete;

 private:
  Placement outer_placement_;
  NdSbp outer_sbp_;
};

// What higher layers contribute to every rank and thread. The header <flow/flow.h> installs the
// hooks once, before the first call (eager/runtime.h).
struct RuntimeHooks {
  // Returns the rank that this process is; null: rank 0 of 1.
  RankIdentity (*process_identity)() = nullptr;
  // Installs chooser, interpreter and recorder in the state of a new thread.
  void (*attach_thread)(ThreadState& state) = nullptr;
};

void install_runtime_hooks(const RuntimeHooks& hooks);

// In threads mode, a thread that is attached to no rank gets an error.
void set_threads_mode(bool on);

// Returns the number of compute threads of a rank: FLOW_NUM_THREADS, else the number of cores of
// this process divided by the number of ranks that share them.
int default_num_threads(int64_t ranks_on_host);

// Sets and returns the number of compute threads of the calling rank; it begins as
// default_num_threads() says. Results do not depend on it. Graphs that were compiled before state a
// peak of memory for the number of then. Throws InvalidArgument unless 1 <= num_threads <= 4096.
void set_num_threads(int64_t num_threads);
int64_t get_num_threads();

namespace env {
int64_t rank();
int64_t world_size();
int64_t local_rank();
int64_t node_rank();
}  // namespace env

}  // namespace flow
