// Measures runs of a compiled step on all ranks and writes them as one timeline.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/program/program.h"
#include "graph/run/executor.h"
#include "pipeline/micro_batch.h"
#include "pipeline/schedule.h"
#include "pipeline/timeline_file.h"

namespace flow::pipeline {

// What this rank did in one run, in microseconds of the steady clock. An action does not include
// the waits at its ends.
std::vector<TimelineEvent> measured_events(const graph::Program& program,
                                           std::span<const graph::StepTime> steps, int64_t run,
                                           bool with_kernels);

// `frame`: schedule, ranks and predicted costs; its events are ignored. Every rank of the world
// calls it with its own events, timed by its own clock. Rank 0 writes the file and converts all
// times to its clock. Messages compare the clocks of hosts, as exactly as messages are fast. Throws
// IoError.
void write_measured_timeline(const std::string& path, const TimelineFile& frame,
                             std::vector<TimelineEvent> events);

// The schedule, ranks and predicted costs of a step that is cut into micro-batches.
TimelineFile timeline_frame(const graph::Graph& graph, const MicroBatchCut& cut,
                            const Schedule& schedule, const std::string& name);

}  // namespace flow::pipeline
