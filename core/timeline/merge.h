// Merges the files of ranks into one timeline for a viewer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flow::timeline {

struct MergeResult {
  int64_t num_ranks = 0;    // of which a file was merged
  uint64_t num_events = 0;  // written
  uint64_t num_lost = 0;    // that ranks have recorded and lost again, because their files are full
  std::vector<std::string> remarks;  // files that are missing or damaged, clocks that differ
  std::string error;                 // why nothing was written; empty if the file was written
};

// Writes `output` from all files rank_R.events of the folder, in the format of docs/timelines.md.
// The file appears complete or not at all. Ranks that still run may go on. Ranks of hosts that were
// booted apart have different clocks; their times are aligned by the time of day of each host.
MergeResult merge_timelines(const std::string& folder, const std::string& output);

// "FOLDER/timeline.json".
std::string merged_file(const std::string& folder);

// "merged 2 ranks, 5000 events, 12 lost: FOLDER/timeline.json", and the remarks.
std::string describe(const MergeResult& result, const std::string& output);

}  // namespace flow::timeline
