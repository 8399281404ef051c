// Whether other threads may have read the memory that a kernel writes.
#pragma once

namespace flow {

// Returns true once a thread pool of this process has started worker threads.
bool has_worker_threads();

}  // namespace flow
