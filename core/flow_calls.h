// Whether this process may call flow.
#pragma once

namespace flow {

// Detaches the calling thread from its rank. From now on, flow calls of threads that belong to no
// rank throw InvalidArgument with `reason`, which must live for ever. For a forked child: it takes
// no lock.
void refuse_flow_calls(const char* reason);

// The reason for which flow calls are refused; null if they are not.
const char* refusal_of_flow_calls();

}  // namespace flow
