#include "tools/flowrun/timeline.h"

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "core/timeline/merge.h"
#include "tools/flowrun/job_error.h"

namespace flowrun {

namespace fs = std::filesystem;
using flow::timeline::MergeResult;

std::string start_timeline(const Options& options) {
  const char* given = std::getenv("FLOW_TIMELINE");
  std::string folder = options.timeline;
  if (folder.empty() && given != nullptr) folder = given;
  if (folder.empty()) return {};
  std::error_code error;
  folder = fs::absolute(folder, error).lexically_normal().string();
  fs::create_directories(folder, error);
  if (error) {
    throw JobError(kInputOutput, "cannot make the folder " + folder + " of --timeline: " +
                                     error.message() + "; name a folder that can be written");
  }
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;  // the merge names what it cannot use
    if (name.starts_with("rank_") && name.ends_with(".events")) fs::remove(entry.path(), ignored);
  }
  fs::remove(flow::timeline::merged_file(folder), error);
  setenv("FLOW_TIMELINE", folder.c_str(), 1);
  return folder;
}

void end_timeline(const std::string& folder) {
  if (folder.empty()) return;
  const std::string output = flow::timeline::merged_file(folder);
  const MergeResult result = flow::timeline::merge_timelines(folder, output);
  std::string text = flow::timeline::describe(result, output);
  for (size_t begin = 0, end = 0; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    std::cerr << "flowrun: " << text.substr(begin, end - begin) << '\n';
}

}  // namespace flowrun
