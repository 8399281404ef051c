#include "graph/run/step_timeline.h"

namespace flow::graph {

using timeline::Event;
using timeline::EventKind;

StepTimeline::StepTimeline(timeline::TimelineLog& log, const Program& program)
    : log_(log), program_(program) {
  for (const Step& step : program.steps) {
    Event event{.name = log.text(step.name()), .kind = EventKind::kKernel};
    if (step.line != 0) {
      event.file = log.text(step.file);
      event.line = step.line;
    }
    event.module = log.text(step.module);
    for (const BufferId id : step.outputs)
      event.bytes += static_cast<int64_t>(program.buffer(id).meta->local_bytes());
    steps_.push_back(event);
  }
  for (const ProgramPart& part : program.parts)
    part_names_.push_back(log.text(part.name));
  if (part_names_.empty()) part_names_.push_back(log.text("step"));
}

void StepTimeline::begin_run() {
  ++run_;
  next_part_ = 0;
  part_.reset();
  if (program_.parts.empty()) begin_part(0);
}

void StepTimeline::begin_part(size_t index) {
  part_.reset();
  part_.emplace(&log_,
                Event{.name = part_names_[index], .number_in = run_, .kind = EventKind::kPart});
}

void StepTimeline::begin_block_run(size_t index) {
  const std::vector<ProgramPart>& parts = program_.parts;
  const size_t first = next_part_;
  while (next_part_ < parts.size() && parts[next_part_].first_run <= index)
    ++next_part_;
  if (next_part_ > first) begin_part(next_part_ - 1);
}

void StepTimeline::begin_step(size_t index, std::optional<timeline::TimelineSpan>& span) const {
  Event event = steps_[index];
  event.number_in = run_;
  span.emplace(&log_, event);
}

}  // namespace flow::graph
