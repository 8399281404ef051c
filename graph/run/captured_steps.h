// Which steps of a program are queued on a CUDA device as CUDA graphs, and which are not, and why.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device/device_graph.h"
#include "graph/program/program.h"
#include "graph/run/loaded_step.h"

namespace flow::graph {

// A step in one of the runs of its block.
struct ScheduledStep {
  size_t run = 0;  // index into ProgramRuns::runs()
  size_t step = 0;
};

// The steps in the order in which a program carries them out, cut into parts: kernels in a row that
// only queue work on the device become one graph. A part goes on through the ends of blocks; it
// ends where the host takes part, where ranks meet, and where the guard changes. Not thread safe.
class CapturedSteps {
 public:
  // Steps [begin, end) of order(), which have one guard, as a graph.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    DeviceGraph graph = {};
  };

  // Queues the work of a step on the device, without effects on the host.
  using QueueStep = std::function<void(const ScheduledStep& at)>;

  // All must outlive it.
  CapturedSteps(const Program& program, const ProgramRuns& runs, std::span<const LoadedStep> steps);
  CapturedSteps(const CapturedSteps&) = delete;
  CapturedSteps& operator=(const CapturedSteps&) = delete;

  // Captures all parts with the memory to which the steps are bound now. A step that cannot be
  // captured is left out from then on. Throws OutOfMemory, and has no parts then.
  void capture(RankContext& rank, const std::shared_ptr<CaptureMemory>& memory,
               const QueueStep& queue);

  // Drops the graphs.
  void forget() { parts_.clear(); }

  std::span<const ScheduledStep> order() const { return order_; }

  std::span<const Part> parts() const { return parts_; }

  // Whether a step that may be captured draws random numbers.
  bool draws() const;

  // A line: how many graphs queue how many steps.
  std::string summary() const;
  // A line for each step that is in no graph, with its place and the reason.
  std::string explain() const;

 private:
  // The end of the part that begins here; `begin` if the step there is in none.
  size_t end_of_part(size_t begin) const;

  const Program& program_;
  std::vector<ScheduledStep> order_;
  std::vector<std::string> reasons_;  // by step: why it cannot be captured; empty: it can
  std::vector<Part> parts_;
};

}  // namespace flow::graph
