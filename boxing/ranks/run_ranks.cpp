#include "boxing/ranks/run_ranks.h"

#include <exception>
#include <memory>
#include <vector>

#include <cxxabi.h>
#include <pthread.h>

#include "boxing/comm/comm_thread.h"
#include "boxing/comm/communicator.h"
#include "boxing/comm/thread_world.h"
#include "boxing/ranks/forked_child.h"
#include "boxing/ranks/most_ranks.h"
#include "core/context.h"
#include "core/error.h"
#include "core/launcher.h"

namespace flow {

namespace {

using boxing::ThreadWorld;

constexpr size_t kStackBytes = size_t{8} << 20;

struct RankThread {
  std::unique_ptr<RankContext> context;
  std::shared_ptr<ThreadWorld> world;
  const std::function<void()>* body = nullptr;
  pthread_t thread = {};
  std::exception_ptr error;
  bool was_told = false;  // the error is only a consequence of another rank's error

  void fail(const char* message) const {
    world->fail({.rank = context->rank(), .message = message});
  }
};

void run_body(RankThread& self) {
  const int64_t rank = self.context->rank();
  try {
    const RankScope scope(*self.context);
    (*self.body)();
  } catch (const abi::__forced_unwind&) {
    self.fail("the thread was ended by pthread_exit or pthread_cancel");
    self.world->end(rank);
    throw;  // this kind of unwinding must not be stopped
  } catch (const DistributedError& error) {
    self.error = std::current_exception();
    self.was_told = self.world->was_told(rank);
    self.fail(error.what());
  } catch (const std::exception& error) {
    self.error = std::current_exception();
    self.fail(error.what());
  } catch (...) {  // stored, and rethrown by run_ranks
    self.error = std::current_exception();
    self.fail("the body threw an exception that is not a std::exception");
  }
  boxing::drain_comm_thread(*self.context);  // whose tasks fail because the world has failed
  self.world->end(rank);
}

void* thread_main(void* self) {
  run_body(*static_cast<RankThread*>(self));
  return nullptr;
}

// Thread attributes with a stack of at least kStackBytes, for any value of `ulimit -s`.
class ThreadAttributes {
 public:
  ThreadAttributes() {
    pthread_attr_init(&attributes_);
    size_t bytes = 0;
    pthread_attr_getstacksize(&attributes_, &bytes);
    if (bytes < kStackBytes) pthread_attr_setstacksize(&attributes_, kStackBytes);
  }

  ~ThreadAttributes() { pthread_attr_destroy(&attributes_); }

  ThreadAttributes(const ThreadAttributes&) = delete;
  ThreadAttributes& operator=(const ThreadAttributes&) = delete;

  const pthread_attr_t* get() const { return &attributes_; }

 private:
  pthread_attr_t attributes_;
};

void check_may_start(int64_t ranks) {
  if (ranks < 1 || ranks > kMostRanks) {
    throw InvalidArgument(str("[run_ranks] needs 1 to ", kMostRanks, " ranks; received ", ranks));
  }
  const ThreadState* state = internal::current_thread_state;
  if (const int64_t launched = find_launcher().world_size; launched > 1) {
    throw InvalidArgument(
        str("[run_ranks] a launcher started this program as ", launched,
            " processes, which are its ranks; a world consists either of processes "
            "or of threads: start a single process, or do not call run_ranks"));
  }
  if (state == nullptr) return;
  if (state->context->slot_ptr<ThreadWorld>() || state->context->world_size() > 1) {
    throw InvalidArgument(str(
        "[run_ranks] called by rank ", state->context->rank(), " of ", state->context->world_size(),
        "; worlds do not nest, and a world consists either of processes or of "
        "threads: call it from a program that was started as one process"));
  }
}

}  // namespace

void run_ranks(int64_t ranks, const std::function<void()>& body) {
  check_may_start(ranks);
  const auto world = std::make_shared<ThreadWorld>(ranks);
  const int num_threads = default_num_threads(ranks);
  std::vector<RankThread> threads(static_cast<size_t>(ranks));
  for (int64_t rank = 0; rank < ranks; ++rank) {
    RankThread& thread = threads[static_cast<size_t>(rank)];
    const RankIdentity identity{.rank = rank, .world_size = ranks, .local_rank = rank};
    thread.context = std::make_unique<RankContext>(identity, num_threads);
    thread.context->set_slot(world);
    thread.world = world;
    thread.body = &body;
  }
  const ThreadAttributes attributes;
  const boxing::ForkedChildrenForbidden forbidden;
  set_threads_mode(true);
  size_t num_started = 0;
  for (RankThread& thread : threads) {
    if (pthread_create(&thread.thread, attributes.get(), thread_main, &thread) != 0) break;
    ++num_started;
  }
  if (num_started < threads.size()) {
    world->fail({.rank = static_cast<int64_t>(num_started),
                 .message = "the system refused to start the thread of this rank"});
    for (size_t i = num_started; i < threads.size(); ++i)
      world->end(static_cast<int64_t>(i));  // a rank that called exit(0) waits for all ends
  }
  for (size_t i = 0; i < num_started; ++i)
    pthread_join(threads[i].thread, nullptr);
  set_threads_mode(false);
  if (num_started < threads.size()) {
    throw OutOfMemory(str("[run_ranks] the system started ", num_started, " of ", ranks,
                          " threads; use fewer ranks, or raise the limits on threads (ulimit -u) "
                          "and address space (ulimit -v)"));
  }
  for (const bool accepts_told : {false, true}) {
    for (const RankThread& thread : threads) {
      if (thread.error && (accepts_told || !thread.was_told)) std::rethrow_exception(thread.error);
    }
  }
}

namespace env {
void barrier(Site site) {
  RankContext& context = *thread_state().context;
  boxing::world_communicator(context).barrier({.op = "barrier", .site = site});
}
}  // namespace env

}  // namespace flow
