// Ranks as threads of this process.
#pragma once

#include <cstdint>
#include <functional>

#include "core/site.h"

namespace flow {

// Runs `body` once on each of `ranks` threads, which are the ranks 0, 1, … of a world of their own
// with their own random state, allocator and compute threads, and returns when all have ended. When
// bodies throw, the others are told at their next collective or while they wait for one; the first
// exception by rank that is not such a consequence is thrown here.
//
//   flow::run_ranks(2, [] {
//     auto x = flow::ones({4, 2}, {.placement = {"cpu", {0, 1}}, .sbp = flow::sbp::split(0)});
//   });
void run_ranks(int64_t ranks, const std::function<void()>& body);

namespace env {
// Returns when all ranks of the world have called it.
void barrier(Site site = Site::here());
}  // namespace env

}  // namespace flow
