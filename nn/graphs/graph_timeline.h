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
  // follow. The runs of each plan are counted on their own.
  bool begin_run(const std::shared_ptr<graph::CompiledStep>& plan);
  // Collects the events of the run. After the last run of a plan it calls `frame` and writes the
  // file; nothing is recorded from then on.
  void end_run(const std::shared_ptr<graph::CompiledStep>& plan,
               const std::function<pipeline::TimelineFile()>& frame);

 private:
  struct Recording {
    std::weak_ptr<graph::CompiledStep> plan;  // the graph may drop it
    int64_t num_runs = 0;
    std::vector<pipeline::TimelineEvent> events = {};
  };

  Recording& recording_of(const std::shared_ptr<graph::CompiledStep>& plan);
  void stop();

  std::string path_;
  TimelineOptions options_;
  std::vector<Recording> recordings_;
  bool is_written_ = false;
};

}  // namespace flow::nn
