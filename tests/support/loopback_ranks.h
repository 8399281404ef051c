// Ranks that use the protocol of processes but are threads of one process. Memory replaces MPI
// here, so that sanitizers see all traffic and many ranks cost little.
#pragma once

#include <cstdint>
#include <functional>

namespace flow {

// Like run_ranks.
void run_loopback_ranks(int64_t ranks, const std::function<void()>& body);
// Like run_loopback_ranks, with shared memory, as ranks of one host have it.
void run_shared_memory_ranks(int64_t ranks, const std::function<void()>& body);

// The bytes that other ranks have sent to the calling rank, except in short messages. For
// run_loopback_ranks.
int64_t loopback_bytes_received();

}  // namespace flow
