// The limit on the time in which a rank that leaves its program must end.
#pragma once

#include <cstdint>

namespace flow::boxing {

// From this call on, the process has FLOW_TIMEOUT_S to end; then its handlers of atexit and the
// destructors of its static objects count as hung, the process reports that, and ends with code 71.
// It warns after half of the time (at most 10 s). Later calls start the time again. `rank` is -1
// for a process whose thread ranks have all ended.
void start_exit_limit(int64_t rank);

// Waiting for other ranks does not count, because they may work for hours.
void pause_exit_limit();

}  // namespace flow::boxing
