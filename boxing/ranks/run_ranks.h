// Runs ranks as threads of this process.
#pragma once

#include <cstdint>
#include <functional>

#include "core/site.h"

namespace flow {

// Runs `body` once on each of `ranks` threads and blocks until all have ended. The threads are the
// ranks 0, 1, … of a new world; each has its own random state, allocator and compute threads. If a
// body throws, the other ranks get a DistributedError at their next collective, or while they wait
// in one. Then the exception of the lowest rank that is not such a consequence is rethrown here.
//
//   flow::run_ranks(2, [] {
//     auto x = flow::ones({4, 2}, {.placement = {"cpu", {0, 1}}, .sbp = flow::sbp::split(0)});
//   });
void run_ranks(int64_t ranks, const std::function<void()>& body);

namespace env {
// Blocks until all ranks of the world have called it.
void barrier(Site site = Site::here());
}  // namespace env

}  // namespace flow
