// The bound for the number of ranks that users ask for.
#pragma once

#include <cstdint>

namespace flow {

// The most ranks and nodes of a job: a larger number is a mistake.
inline constexpr int64_t kMostRanks = 65536;

}  // namespace flow
