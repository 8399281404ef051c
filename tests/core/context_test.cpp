#include "core/context.h"

#include <thread>

#include <gtest/gtest.h>

#include "core/calls/site_scope.h"
#include "core/env.h"
#include "core/error.h"

namespace flow {
namespace {

TEST(Context, RankScopeAttachesAndRestores) {
  RankContext context({.rank = 3, .world_size = 4}, 1);
  const int64_t outer = env::rank();
  {
    const RankScope scope(context);
    EXPECT_EQ(env::rank(), 3);
    EXPECT_EQ(env::world_size(), 4);
  }
  EXPECT_EQ(env::rank(), outer);
}

TEST(Context, ThreadsOfARankShareItsGenerator) {
  RankContext context({}, 1);
  const auto draw = [&] {
    const RankScope scope(context);
    context.generator().next();
  };
  std::thread(draw).join();
  std::thread(draw).join();
  EXPECT_EQ(context.generator().state().next_stream, 2U);
}

TEST(Context, UnattachedThreadIsRefusedWhileRanksAreThreads) {
  set_threads_mode(true);
  std::string message;
  std::thread([&] {
    try {
      env::rank();
    } catch (const InvalidArgument& error) {
      message = error.what();
    }
  }).join();
  set_threads_mode(false);
  EXPECT_NE(message.find("belongs to no rank"), std::string::npos) << message;
}

TEST(Context, AThreadMayCallWhileItEnds) {
  struct Last {
    RankContext** seen = nullptr;

    ~Last() {
      if (seen != nullptr) *seen = thread_state().context;
    }
  };

  RankContext* seen = nullptr;
  std::thread([&] {
    thread_local Last last;  // older than the state of the thread, so it ends after the state
    last.seen = &seen;
    thread_state();
  }).join();
  EXPECT_EQ(seen, thread_state().context);
}

// A scope that begins before the thread's first call, which attaches it, is seen by that call.
TEST(Context, AFirstCallHasTheSiteOfItsScope) {
  Site seen = Site::none();
  const Site site = Site::here();
  std::thread([&] {
    const SiteScope scope(site);
    thread_state();
    seen = user_site(Site::none());
  }).join();
  EXPECT_EQ(seen.line(), site.line());
}

TEST(Context, SlotsAreFoundByType) {
  struct Counter {
    int value = 0;
  };

  RankContext context({}, 1);
  context.slot<Counter>().value = 5;
  EXPECT_EQ(context.slot<Counter>().value, 5);
  RankContext other({}, 1);
  EXPECT_EQ(other.slot<Counter>().value, 0);
}

TEST(Context, PlacementGuardNests) {
  const Placement a("cpu", {0}), b("cpu", {1});
  {
    const PlacementGuard outer(a, sbp::broadcast);
    {
      const PlacementGuard inner(b, sbp::split(0));
      EXPECT_EQ(thread_state().default_placement, b);
    }
    EXPECT_EQ(thread_state().default_placement, a);
    EXPECT_EQ(thread_state().default_sbp, sbp::broadcast);
  }
  EXPECT_FALSE(thread_state().default_placement.defined());
}

TEST(Env, UnknownVariableIsABug) {
  EXPECT_THROW(env_string("FLOW_UNHEARD_OF", ""), InternalError);
}

TEST(Env, NumbersAreChecked) {
  setenv("FLOW_NUM_THREADS", "two", 1);
  EXPECT_THROW(env_int("FLOW_NUM_THREADS", 1), InvalidArgument);
  setenv("FLOW_NUM_THREADS", "2", 1);
  EXPECT_EQ(env_int("FLOW_NUM_THREADS", 1), 2);
  EXPECT_EQ(default_num_threads(1), 2);
  for (const char* wrong : {"-1", "4294967297"}) {
    setenv("FLOW_NUM_THREADS", wrong, 1);
    EXPECT_THROW(default_num_threads(1), InvalidArgument) << wrong;
  }
  unsetenv("FLOW_NUM_THREADS");
  EXPECT_EQ(env_int("FLOW_NUM_THREADS", 7), 7);
}

}  // namespace
}  // namespace flow
