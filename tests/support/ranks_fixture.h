// A fixture for tests that run on several ranks, with every kind of ranks.
#pragma once

#include <cstdint>
#include <functional>

#include <gtest/gtest.h>

#include "boxing/comm/communicator.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "tests/support/loopback_ranks.h"

namespace flow {

// One of run_ranks, run_loopback_ranks and run_shared_memory_ranks.
using RunRanks = void (*)(int64_t ranks, const std::function<void()>& body);

class RanksFixture : public testing::TestWithParam<RunRanks> {
 protected:
  static void run_on_ranks(int64_t ranks, const std::function<void()>& body) {
    GetParam()(ranks, body);
  }
};

inline int64_t me() {
  return env::rank();
}

inline boxing::Communicator& world() {
  return boxing::world_communicator(*thread_state().context);
}

inline boxing::Fingerprint here(Site site = Site::here()) {
  return {.site = site};
}

}  // namespace flow
