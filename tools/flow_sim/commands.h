// The commands of flow-sim. They return the text to print, and throw flow's errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pipeline/timeline_file.h"

namespace flow::sim {

// Times are in microseconds. A list has one number for all stages, or a number for each stage (for
// transfers: for each stage except the last).
struct RunOptions {
  int64_t stages = 0;         // 0: take the number from `costs` or from the lists
  int64_t micro_batches = 0;  // 0: take the number from `costs`
  // Names, files with a table, or "all". If empty: the schedule of `costs`, or else "all".
  std::vector<std::string> schedules = {};
  std::vector<double> forward = {};
  std::vector<double> backward = {};
  std::vector<double> weight = {};
  std::vector<double> transfer = {};          // time of activations to the next stage
  std::vector<double> transfer_back = {};     // time of gradients; if empty: `transfer`
  std::vector<double> activation_bytes = {};  // bytes that a micro-batch keeps in a stage
  std::string costs = {};                     // a timeline with the stages' times
  bool uses_predicted = false;                // take the predicted times of `costs`
  std::string out = {};  // file for the timeline, if there is only one schedule
};

// Simulates each schedule. Returns a table with a row for each, and writes the timeline of one.
std::string run(const RunOptions& options);

// Compares two timelines of the same schedule: spans and bubbles, how each rank's time is divided,
// the times of actions, and the `num_waits` waits that differ most.
std::string compare(const std::string& predicted, const std::string& measured,
                    int64_t num_waits = 8);

// Summarises one timeline.
std::string show(const std::string& path);

// Merges the events of the ranks of a folder into `output`, or FOLDER/timeline.json if it is empty.
// Returns a text about what was merged. Throws BadFile if the folder has no such events, and
// IoError if the folder cannot be read or the file cannot be written.
std::string merge(const std::string& folder, const std::string& output);

pipeline::TimelineFile load_timeline(const std::string& path);

}  // namespace flow::sim
