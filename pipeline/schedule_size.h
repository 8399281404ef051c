// The limit on the size of schedules.
#pragma once

#include <cstdint>

namespace flow::pipeline {

// The most actions of a schedule: larger numbers of stages and micro-batches are mistakes.
inline constexpr int64_t kMostActions = 1 << 20;

// Throws InvalidArgument unless both numbers are at least 1 and a schedule of F, B and W for all of
// them has at most kMostActions actions.
void check_schedule_size(int64_t num_stages, int64_t num_micro_batches);

}  // namespace flow::pipeline
