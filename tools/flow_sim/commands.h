// The commands of flow-sim. They give the text to print, and throw flow's errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/timeline_file.h"

namespace flow::sim {

// Times in microseconds. A list has a number for each stage (of transfers: each but the last), or
// one for all.
struct RunOptions {
  int64_t stages = 0;         // 0: as `costs` or the lists have
  int64_t micro_batches = 0;  // 0: as `costs` has
  // Names, files with a table, or "all"; none: that of `costs`, else "all".
  std::vector<std::string> schedules = {};
  std::vector<double> forward = {};
  std::vector<double> backward = {};
  std::vector<double> weight = {};
  std::vector<double> transfer = {};          // of activations to the next stage
  std::vector<double> transfer_back = {};     // of gradients; as `transfer` unless it is given
  std::vector<double> activation_bytes = {};  // that a micro-batch keeps in a stage
  std::string costs = {};                     // a timeline to take the stages' times from
  bool uses_predicted = false;                // of `costs`, those it was predicted with
  std::string out = {};                       // of the only schedule
};

// Simulates each schedule: a table, one row each, and the timeline of one.
std::string run(const RunOptions& options);

// Two timelines of the same schedule beside each other: spans and bubbles, how each rank's time is
// shared, what actions take, and the `num_waits` waits that differ most.
std::string compare(const std::string& predicted, const std::string& measured,
                    int64_t num_waits = 8);

// What one timeline amounts to.
std::string show(const std::string& path);

pipeline::TimelineFile load_timeline(const std::string& path);

}  // namespace flow::sim
