// Decides which runs of a graph are recorded; for nn/graph.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/run/compiled_step.h"
#include "nn/graph.h"
#include "pipeline/timeline_file.h"

namespace flow::nn {

// Belongs to one rank; not thread safe.
class GraphTimeline {
 public:
  // Throws InvalidArgument unless runs >= 1 and skip >= 0.
  GraphTimeline(std::string path, const TimelineOptions& options);

  // Must be called before every run. Returns true if the run is recorded; then end_run() must
  // follow. A run of another plan restarts the recording.
  bool begin_run(const std::shared_ptr<graph::CompiledStep>& plan);
  // Collects the events of the run. After the last run it calls `frame` and writes the file.
  void end_run(graph::CompiledStep& plan, const std::function<pipeline::TimelineFile()>& frame);

 private:
  std::string path_;
  TimelineOptions options_;
  std::weak_ptr<const graph::CompiledStep> plan_;  // of the last run; the graph may drop it
  int64_t num_runs_ = 0;
  bool is_written_ = false;
  std::vector<pipeline::TimelineEvent> events_;
};

}  // namespace flow::nn
