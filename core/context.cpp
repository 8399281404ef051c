#include "core/context.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include <sched.h>

#include "core/calls/site_scope.h"
#include "core/env.h"
#include "core/error.h"
#include "core/flow_calls.h"
#include "core/launcher.h"

namespace flow {

namespace {

// Set by install_runtime_hooks before any thread runs flow code; constant afterwards.
RuntimeHooks& runtime_hooks() {
  static RuntimeHooks hooks;
  return hooks;
}

std::atomic<bool> threads_mode{false};

// The rank that plain processes are; made at the first call of any thread.
RankContext& process_context() {
  static RankContext& context = *[] {
    const auto identity = runtime_hooks().process_identity;
    const RankIdentity who = identity != nullptr ? identity() : RankIdentity{};
    const int64_t ranks_on_host = find_launcher().ranks_on_host;
    return new RankContext(who, default_num_threads(ranks_on_host));  // outlives static tensors
  }();
  return context;
}

std::unique_ptr<ThreadState> make_thread_state(RankContext& context) {
  auto state = std::make_unique<ThreadState>();
  state->context = &context;
  if (runtime_hooks().attach_thread != nullptr) runtime_hooks().attach_thread(*state);
  return state;
}

// True once the state of the thread has ended with it. Static objects, and thread_local ones that
// are older than the state, end later and may call flow.
constinit thread_local bool has_ended = false;

// For such calls, after which nothing could end a state.
ThreadState& keep_for_ever(std::unique_ptr<ThreadState> state) {
  static std::mutex mutex;
  static auto& states = *new std::vector<std::unique_ptr<ThreadState>>;  // guarded by mutex
  const std::lock_guard lock(mutex);
  return *states.emplace_back(std::move(state));
}

}  // namespace

struct RankContext::Slots {
  Slots() = default;

  // What was made first ends first.
  ~Slots() {
    for (auto& [key, value] : values)
      value = nullptr;
  }

  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  std::mutex mutex;
  std::vector<std::pair<const void*, std::shared_ptr<void>>> values;  // guarded by mutex
};

RankContext::RankContext(const RankIdentity& identity, int num_threads)
    : identity_(identity),
      allocator_(Allocator::acquire()),
      thread_pool_(num_threads),
      slots_(std::make_unique<Slots>()) {}

RankContext::~RankContext() {
  Allocator::recycle(allocator_);
}

void* RankContext::find_slot(const void* key) {
  const std::lock_guard lock(slots_->mutex);
  for (const auto& [slot_key, value] : slots_->values) {
    if (slot_key == key) return value.get();
  }
  return nullptr;
}

void* RankContext::add_slot(const void* key, std::shared_ptr<void> value) {
  const std::lock_guard lock(slots_->mutex);
  for (const auto& [slot_key, existing] : slots_->values) {
    if (slot_key == key) return existing.get();  // another thread of the rank was first
  }
  return slots_->values.emplace_back(key, std::move(value)).second.get();
}

namespace internal {
ThreadState& attach_to_process() {
  if (const char* reason = refusal_of_flow_calls()) throw InvalidArgument(reason);
  if (threads_mode.load()) {
    throw InvalidArgument(
        "[context] this thread belongs to no rank while ranks are threads; attach it with "
        "flow::RankScope(context) before it calls flow");
  }

  struct Owner {
    std::unique_ptr<ThreadState> state;

    ~Owner() {
      current_thread_state = nullptr;
      has_ended = true;
    }
  };

  std::unique_ptr<ThreadState> state = make_thread_state(process_context());
  current_thread_state = state.get();
  if (has_ended) return keep_for_ever(std::move(state));
  thread_local Owner owner;
  owner.state = std::move(state);
  return *owner.state;
}
}  // namespace internal

Site user_site(Site site) {
  if (site.is_known() && !site.is_inside_library()) return site;
  const Site scope = SiteScope::current();
  return scope.is_known() ? scope : site;
}

RankScope::RankScope(RankContext& context)
    : state_(make_thread_state(context)), outer_(internal::current_thread_state) {
  internal::current_thread_state = state_.get();
}

RankScope::~RankScope() {
  internal::current_thread_state = outer_;
}

PlacementGuard::PlacementGuard(const Placement& placement, const NdSbp& sbp) {
  ThreadState& state = thread_state();
  outer_placement_ = std::exchange(state.default_placement, placement);
  outer_sbp_ = std::exchange(state.default_sbp, sbp);
}

PlacementGuard::~PlacementGuard() {
  ThreadState& state = thread_state();
  state.default_placement = outer_placement_;
  state.default_sbp = outer_sbp_;
}

void install_runtime_hooks(const RuntimeHooks& hooks) {
  runtime_hooks() = hooks;
}

void set_threads_mode(bool on) {
  threads_mode.store(on);
}

constexpr int64_t kMostThreads = 4096;

int default_num_threads(int64_t ranks_on_host) {
  const int64_t wanted = env_int("FLOW_NUM_THREADS", 0);
  if (wanted < 0 || wanted > kMostThreads) {
    throw InvalidArgument(str("[env] FLOW_NUM_THREADS is ", wanted, "; give a number from 1 to ",
                              kMostThreads, ", or 0 for all cores"));
  }
  if (wanted > 0) return static_cast<int>(wanted);
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const int64_t count = sched_getaffinity(0, sizeof(cores), &cores) == 0 ? CPU_COUNT(&cores) : 1;
  return static_cast<int>(std::max<int64_t>(1, count / std::max<int64_t>(1, ranks_on_host)));
}

void set_num_threads(int64_t num_threads) {
  if (num_threads < 1 || num_threads > kMostThreads) {
    throw InvalidArgument(str("[set_num_threads] received ", num_threads,
                              "; give a number from 1 to ", kMostThreads));
  }
  thread_state().context->thread_pool().set_num_threads(static_cast<int>(num_threads));
}

int64_t get_num_threads() {
  return thread_state().context->thread_pool().num_threads();
}

namespace env {
int64_t rank() {
  return thread_state().context->rank();
}

int64_t world_size() {
  return thread_state().context->world_size();
}

int64_t local_rank() {
  return thread_state().context->identity().local_rank;
}

int64_t node_rank() {
  return thread_state().context->identity().node_rank;
}
}  // namespace env

}  // namespace flow
