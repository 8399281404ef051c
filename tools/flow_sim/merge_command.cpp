#include <filesystem>

#include "core/error.h"
#include "core/timeline/merge.h"
#include "tools/flow_sim/commands.h"

namespace flow::sim {

std::string merge(const std::string& folder, const std::string& output) {
  const std::string path = output.empty() ? timeline::merged_file(folder) : output;
  const timeline::MergeResult result = timeline::merge_timelines(folder, path);
  if (result.error.empty()) return timeline::describe(result, path);
  const std::string message = str("[flow-sim] ", result.error,
                                  "; give a folder in which a run with "
                                  "FLOW_TIMELINE has recorded events");
  if (result.num_ranks == 0 && std::filesystem::is_directory(folder)) throw BadFile(message);
  throw IoError(message);
}

}  // namespace flow::sim
