// What a program moves between ranks in one run, by line and reason.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program/program.h"
#include "tools/flow_plan/step_names.h"

namespace flow::tools {

// The same transfer as often as a run does it.
struct Transfer {
  Origin origin;
  std::string what;          // "float32 (64, 10)"; of a bucket, how many sums it joins
  std::string reason;        // "P(sum) -> B on cpu:(0, 1)", or "to rank 2"
  std::string route;         // "all_reduce"
  std::string instead = {};  // the next best route with its predicted time; empty if there is none
  int64_t bytes = 0;         // each time, received by the rank that receives most
  double time_us = 0;        // each time, predicted
  int64_t count = 0;         // in a run

  double total_us() const { return time_us * static_cast<double>(count); }
};

// The transfers of `rank`, which is the program's or one of its class; those with the largest
// predicted time come first. What a rank keeps for itself is no transfer.
std::vector<Transfer> transfers_of(const graph::Program& program, int64_t rank);

}  // namespace flow::tools
