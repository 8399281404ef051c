// Which runs of a graph are measured; for nn/graph.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/run/compiled_step.h"
#include "nn/graph.h"
#include "pipeline/timeline_file.h"

namespace flow::nn {

// Of one rank; not thread safe.
class GraphTimeline {
 public:
  // Throws InvalidArgument for fewer than one run, or fewer than none before.
  GraphTimeline(std::string path, const TimelineOptions& options);

  // Before every run; true: it is measured, and end_run() follows. Runs of another plan begin anew.
  bool begin_run(graph::CompiledStep& plan);
  // `frame` is called at the last run, which writes the file.
  void end_run(graph::CompiledStep& plan, const std::function<pipeline::TimelineFile()>& frame);

 private:
  std::string path_;
  TimelineOptions options_;
  const graph::CompiledStep* plan_ = nullptr;
  int64_t num_runs_ = 0;
  bool is_written_ = false;
  std::vector<pipeline::TimelineEvent> events_;
};

}  // namespace flow::nn
