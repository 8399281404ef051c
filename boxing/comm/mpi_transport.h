// Connects processes by MPI.
#pragma once

#include <memory>

#include "boxing/comm/transport.h"

namespace flow::boxing {

// True if this build supports MPI.
bool has_mpi();

// Initialises MPI, unless the program has done so, and connects all processes of the job.
// Collective. Throws Unsupported in a build without MPI.
std::unique_ptr<Transport> connect_mpi();

namespace internal {
// Like connect_mpi, but without shared memory, and with messages of at most `longest_message`
// bytes; for tests.
std::unique_ptr<Transport> connect_mpi_by_messages(int64_t longest_message);
}  // namespace internal

}  // namespace flow::boxing
