// Ranks that speak the protocol of processes, as threads of one process: what MPI carries between
// processes goes through memory here, so that sanitizers see it and many ranks cost little.
#pragma once

#include <cstdint>
#include <functional>

namespace flow {

// As run_ranks.
void run_loopback_ranks(int64_t ranks, const std::function<void()>& body);
// The same with memory that they share as ranks of one host do.
void run_shared_memory_ranks(int64_t ranks, const std::function<void()>& body);

// What other ranks have sent to the calling one outside of short messages; of run_loopback_ranks.
int64_t loopback_bytes_received();

}  // namespace flow
