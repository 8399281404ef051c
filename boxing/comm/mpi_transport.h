// Processes connected by MPI.
#pragma once

#include <memory>

#include "boxing/comm/transport.h"

namespace flow::boxing {

// Whether this build has MPI.
bool has_mpi();

// Initialises MPI, if the program has not, and connects all of its processes. Collective. Without
// MPI: Unsupported.
std::unique_ptr<Transport> connect_mpi();

namespace internal {
// The same without shared memory, in messages of at most so many bytes (tests).
std::unique_ptr<Transport> connect_mpi_by_messages(int64_t longest_message);
}  // namespace internal

}  // namespace flow::boxing
