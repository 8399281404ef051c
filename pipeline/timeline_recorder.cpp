#include "pipeline/timeline_recorder.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "boxing/comm/communicator.h"
#include "core/context.h"
#include "core/error.h"
#include "pipeline/order.h"
#include "pipeline/report.h"

namespace flow::pipeline {

namespace {

using graph::Program;
using graph::ReceiveStep;
using graph::SendStep;
using graph::Step;
using graph::StepTime;
using graph::WaitStep;
using Kind = TimelineEvent::Kind;

constexpr int kRounds = 16;  // of messages by which two clocks are compared

double us(int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

int64_t now_ns() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t bytes_of(const Program& program, graph::BufferId buffer) {
  return static_cast<int64_t>(program.buffer(buffer).meta->local_bytes());
}

std::optional<Action> action_named(const std::string& name) {
  if (name.empty() || name[0] < '0' || name[0] > '9') return std::nullopt;
  return parse_action(name);
}

// Reads the times of one run.
class Reading {
 public:
  Reading(const Program& program, std::span<const StepTime> times, int64_t run, bool with_kernels)
      : program_(program), times_(times), run_(run), with_kernels_(with_kernels) {
    const graph::ProgramRuns runs(program);
    for (const graph::BlockRun& block_run : runs.runs()) {
      first_steps_.push_back(steps_.size());
      const graph::Block& block = runs.block_of(block_run);
      for (size_t i = block.first_step; i < block.end_step; ++i)
        steps_.push_back({&program.steps[i], std::max(block_run.micro_batch, 0)});
    }
    first_steps_.push_back(steps_.size());
    FLOW_ASSERT(times.size() == steps_.size(), "times of ", times.size(), " steps of ",
                steps_.size());
  }

  std::vector<TimelineEvent> read() {
    if (program_.parts.empty()) add_part("step", 0, steps_.size());
    for (size_t i = 0; i < program_.parts.size(); ++i) {
      const bool is_last = i + 1 == program_.parts.size();
      add_part(program_.parts[i].name, first_steps_[program_.parts[i].first_run],
               is_last ? steps_.size() : first_steps_[program_.parts[i + 1].first_run]);
    }
    return std::move(events_);
  }

 private:
  // A step in the run of a block.
  struct RanStep {
    const Step* step;
    int64_t micro_batch;
  };

  void add_part(const std::string& name, size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i)
      add_step(i);
    const std::optional<Action> action = action_named(name);
    size_t first = begin, last = end;
    if (action) {  // from the last receive on, to the waits for its sends
      for (size_t i = begin; i < end; ++i) {
        if (receive_of(*steps_[i].step) != nullptr) first = i + 1;
      }
      while (last > first && waits_for_message(*steps_[last - 1].step))
        --last;
    }
    if (begin == end) {
      // An action without a step on this rank is still part of the schedule.
      if (!action) return;
      const int64_t at = begin > 0 ? times_[begin - 1].end_ns : first_ns();
      events_.push_back(event(Kind::kAction, at, at));
      events_.back().action = *action;
      return;
    }
    const int64_t from = first > begin ? times_[first - 1].end_ns : times_[begin].begin_ns;
    const int64_t to = last > first ? times_[last - 1].end_ns : from;
    TimelineEvent part = event(action ? Kind::kAction : Kind::kPhase, from, to);
    if (action) part.action = *action;
    if (!action) part.name = name;
    for (size_t i = first; i < last; ++i) {
      const double took = us(times_[i].end_ns - times_[i].begin_ns);
      const Step& step = *steps_[i].step;
      if (waits_for_message(step)) part.waiting_us += took;
      if (step.route() != nullptr || waits_for_collective(step)) part.collective_us += took;
    }
    if (!action) part.waiting_us = part.collective_us = 0;
    events_.push_back(std::move(part));
  }

  void add_step(size_t index) {
    std::visit([&](const auto& body) { add(steps_[index], times_[index], body); },
               steps_[index].step->body);
  }

  void add(const RanStep& ran, const StepTime& time, const SendStep& send) {
    add_message(Kind::kTransfer, ran, time, send, ran.step->inputs[0]);
  }

  // The message is on the timeline where the rank waits for it.
  void add(const RanStep&, const StepTime&, const ReceiveStep&) {}

  void add(const RanStep& ran, const StepTime& time, const WaitStep& wait) {
    if (const ReceiveStep* receive = receive_of(*ran.step))
      return add_message(Kind::kWait, ran, time, *receive, ran.step->outputs[0]);
    const auto* send = program_.steps[wait.started].as<SendStep>();
    if (send == nullptr) return add_kernel(ran, time);
    add_message(Kind::kWait, ran, time, *send, ran.step->inputs[0]);
    events_.back().is_send = true;
  }

  // Of a collective in the background.
  bool waits_for_collective(const Step& step) const {
    const auto* wait = step.as<WaitStep>();
    return wait != nullptr && program_.steps[wait->started].route() != nullptr;
  }

  bool waits_for_message(const Step& step) const {
    return step.as<WaitStep>() != nullptr && !waits_for_collective(step);
  }

  // The receive that a step starts or waits for; null if it does neither.
  const ReceiveStep* receive_of(const Step& step) const {
    const auto* wait = step.as<WaitStep>();
    return (wait == nullptr ? step : program_.steps[wait->started]).as<ReceiveStep>();
  }

  // A kernel, a collective, the wait for one, or a conversion.
  template <class Body>
  void add(const RanStep& ran, const StepTime& time, const Body&) {
    add_kernel(ran, time);
  }

  void add_kernel(const RanStep& ran, const StepTime& time) {
    const bool was_skipped = time.begin_ns == time.end_ns;
    if (!with_kernels_ || was_skipped) return;
    events_.push_back(event(Kind::kKernel, time.begin_ns, time.end_ns));
    events_.back().name = ran.step->name();
  }

  template <class Message>
  void add_message(Kind kind, const RanStep& ran, const StepTime& time, const Message& message,
                   graph::BufferId buffer) {
    events_.push_back(event(kind, time.begin_ns, time.end_ns));
    events_.back().peer = message.peer;
    events_.back().tag = message.tag + ran.micro_batch;
    events_.back().bytes = bytes_of(program_, buffer);
  }

  TimelineEvent event(Kind kind, int64_t begin_ns, int64_t end_ns) const {
    return {.kind = kind,
            .rank = env::rank(),
            .run = run_,
            .start_us = us(begin_ns),
            .duration_us = us(end_ns - begin_ns)};
  }

  int64_t first_ns() const { return times_.empty() ? 0 : times_.front().begin_ns; }

  const Program& program_;
  std::span<const StepTime> times_;
  int64_t run_;
  bool with_kernels_;
  std::vector<RanStep> steps_;
  std::vector<size_t> first_steps_;  // by run of a block
  std::vector<TimelineEvent> events_;
};

// ---- all ranks together

constexpr boxing::Fingerprint what() {
  return {.op = "timeline"};
}

// What to add to this rank's clock to get rank 0's. Clocks that may be the same, as those of ranks
// on one host, are taken as the same.
double clock_offset_us(RankContext& rank) {
  boxing::Communicator& world = boxing::world_communicator(rank);
  if (world.position() == 0) {
    for (int64_t peer = 1; peer < world.size(); ++peer) {
      for (int round = 0; round < kRounds; ++round) {
        int64_t asked = 0;
        world.recv(&asked, sizeof(asked), peer, 0, what());
        const int64_t now = now_ns();
        world.send(&now, sizeof(now), peer, 0, what());
      }
    }
    return 0;
  }
  int64_t best_trip = std::numeric_limits<int64_t>::max();
  int64_t offset = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int64_t begin = now_ns();
    world.send(&begin, sizeof(begin), 0, 0, what());
    int64_t theirs = 0;
    world.recv(&theirs, sizeof(theirs), 0, 0, what());
    const int64_t end = now_ns();
    if (end - begin >= best_trip) continue;
    best_trip = end - begin;
    offset = begin <= theirs && theirs <= end ? 0 : theirs - (begin + best_trip / 2);
  }
  return us(offset);
}

// The texts of all ranks, on rank 0.
std::vector<std::string> gather_texts(RankContext& rank, const std::string& own) {
  boxing::Communicator& world = boxing::world_communicator(rank);
  const auto count = static_cast<size_t>(world.size());
  const auto own_bytes = static_cast<int64_t>(own.size());
  std::vector<int64_t> bytes(count);
  world.all_gather(&own_bytes, bytes.data(), std::vector<int64_t>(count, sizeof(int64_t)), what());
  std::string all;
  if (world.position() == 0) {
    int64_t sum = 0;
    for (const int64_t n : bytes)
      sum += n;
    all.resize(static_cast<size_t>(sum));
  }
  world.gather(own.data(), all.data(), bytes, 0, what());
  std::vector<std::string> texts;
  for (size_t i = 0, at = 0; i < count && world.position() == 0; ++i) {
    texts.push_back(all.substr(at, static_cast<size_t>(bytes[i])));
    at += static_cast<size_t>(bytes[i]);
  }
  return texts;
}

// A message's transfer ends when its receiver has it.
void end_transfers(std::vector<TimelineEvent>& events) {
  std::map<std::tuple<int64_t, int64_t, int64_t, int64_t>, double> received;  // from, to, tag, run
  for (const TimelineEvent& event : events) {
    if (event.kind == Kind::kWait && !event.is_send) {
      received[{event.peer, event.rank, event.tag, event.run}] = event.start_us + event.duration_us;
    }
  }
  for (TimelineEvent& event : events) {
    if (event.kind != Kind::kTransfer) continue;
    const auto found = received.find({event.rank, event.peer, event.tag, event.run});
    if (found == received.end()) continue;
    event.duration_us = std::max(event.duration_us, found->second - event.start_us);
  }
}

void add_predictions(TimelineFile& file) {
  if (file.schedule.actions.empty()) return;
  std::map<Action, TimedAction> predicted;
  for (const TimedAction& timed : simulate(file.schedule, file.costs).actions)
    predicted[timed.action] = timed;
  for (TimelineEvent& event : file.events) {
    if (event.kind != Kind::kAction) continue;
    const TimedAction& timed = predicted.at(event.action);
    event.predicted_start_us = timed.begin;
    event.predicted_us = timed.end - timed.begin;
  }
}

}  // namespace

std::vector<TimelineEvent> measured_events(const Program& program, std::span<const StepTime> steps,
                                           int64_t run, bool with_kernels) {
  return Reading(program, steps, run, with_kernels).read();
}

void write_measured_timeline(const std::string& path, const TimelineFile& frame,
                             std::vector<TimelineEvent> events) {
  RankContext& rank = *thread_state().context;
  TimelineFile file = frame;
  if (rank.world_size() > 1) {
    const double offset = clock_offset_us(rank);
    for (TimelineEvent& event : events)
      event.start_us += offset;
    const std::vector<std::string> texts = gather_texts(rank, events_to_json(events));
    if (rank.rank() != 0) return;
    events.clear();
    for (const std::string& text : texts) {
      std::vector<TimelineEvent> theirs = parse_events(text, path);
      events.insert(events.end(), std::make_move_iterator(theirs.begin()),
                    std::make_move_iterator(theirs.end()));
    }
  }
  double start = std::numeric_limits<double>::max();
  for (const TimelineEvent& event : events)
    start = std::min(start, event.start_us);
  for (TimelineEvent& event : events)
    event.start_us -= start;
  end_transfers(events);
  // An event that encloses others comes before them.
  const auto key = [](const TimelineEvent& event) {
    return std::tuple(event.start_us, event.rank, -event.duration_us);
  };
  std::stable_sort(events.begin(), events.end(),
                   [&](const TimelineEvent& a, const TimelineEvent& b) { return key(a) < key(b); });
  file.is_measured = true;
  file.events = std::move(events);
  add_predictions(file);
  write_timeline(path, file);
}

TimelineFile timeline_frame(const graph::Graph& graph, const MicroBatchCut& cut,
                            const Schedule& schedule, const std::string& name) {
  const StagePlan stages = plan_stages(graph, cut, schedule.has_weights());
  TimelineFile frame{.schedule_name = name,
                     .schedule = schedule_on_ranks(schedule, stages),
                     .costs = stage_costs(graph, cut)};
  for (const std::set<int64_t>& ranks : stages.ranks) {
    frame.ranks.emplace_back(ranks.begin(), ranks.end());
    if (ranks.empty()) frame.ranks.back().push_back(env::rank());  // all tensors are local
  }
  return frame;
}

}  // namespace flow::pipeline
