// Processes connected by MPI.
#pragma once

#include <memory>

#include "boxing/transport.h"

namespace flow::boxing {

// Whether this build has MPI.
bool has_mpi();

// Initialises MPI, if the program has not, and connects all of its processes. Collective. Without
// MPI: Unsupported.
std::unique_ptr<Transport> connect_mpi();

namespace internal {
// Data longer than this goes in several messages, as MPI counts with int.
inline constexpr int64_t kLongestMessage = int64_t{1} << 30;
// The same with a limit of the caller's (tests).
std::unique_ptr<Transport> connect_mpi(int64_t longest_message);
}  // namespace internal

}  // namespace flow::boxing
