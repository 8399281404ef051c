// Records what a rank does together with others while it runs compiled steps, and compares it with
// what the step's certificate states before the run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "boxing/comm/communicator.h"
#include "graph/run/compiled_step.h"

namespace flow {

// A call of a communicator within a run of a compiled step.
struct RecordedCall {
  std::string name;                      // of the communicator's function
  std::vector<int64_t> ranks;            // the group; of a message: sender, receiver
  boxing::Fingerprint what = {};         // as the caller passes it
  int64_t bytes = 0;                     // of a message; of a collective: the caller's own data
  std::optional<int64_t> received = {};  // from others; unknown if members read each other's memory
  int64_t tag = 0;                       // of a message
  size_t sent_by = 0;                    // of a wait: the index of the call of isend that it ends
};

// Records the calls of the calling thread's rank from now on. Call it before the rank communicates.
void record_calls();

// Returns the calls since the last take, those of the communication thread last.
std::vector<RecordedCall> take_recorded_calls();

// The most bytes that a rank receives in a collective, by what the collective does and how many
// equal ones ran before: stated and recorded.
struct CollectiveBytes {
  int64_t stated = 0;
  std::optional<int64_t> received = {};
};

using BytesOfCollectives = std::map<std::pair<std::string, int>, CollectiveBytes>;

// Expects that the calls, which one run of the step on this rank made, are the communications of
// the step's certificate: equal ones, in the same order, and no others. Returns the bytes of the
// collectives.
BytesOfCollectives expect_as_certified(const graph::CompiledStep& step,
                                       const std::vector<RecordedCall>& calls,
                                       const std::string& what);

// Expects for each collective that the rank that receives most receives the stated bytes. `ranks`
// are the results of expect_as_certified() on all ranks. Returns the number of collectives whose
// bytes were known.
int expect_stated_bytes(const std::vector<BytesOfCollectives>& ranks, const std::string& what);

}  // namespace flow
