// Records the runs of a program in the rank's timeline (FLOW_TIMELINE).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/timeline/timeline_log.h"
#include "graph/program/program.h"

namespace flow::graph {

class StepTimeline {
 public:
  // Both must outlive it.
  StepTimeline(timeline::TimelineLog& log, const Program& program);
  StepTimeline(const StepTimeline&) = delete;
  StepTimeline& operator=(const StepTimeline&) = delete;

  // A run of the program begins or ends, or has thrown.
  void begin_run();

  void end_run() { part_.reset(); }

  // The block run with this index begins: perhaps a new part of the program with it.
  void begin_block_run(size_t index);
  // The step lasts until `span` is destroyed.
  void begin_step(size_t index, std::optional<timeline::TimelineSpan>& span) const;

 private:
  void begin_part(size_t index);

  timeline::TimelineLog& log_;
  const Program& program_;
  std::vector<timeline::Event> steps_;
  std::vector<uint32_t> part_names_;
  std::optional<timeline::TimelineSpan> part_;
  size_t next_part_ = 0;
  int32_t run_ = -1;
};

}  // namespace flow::graph
