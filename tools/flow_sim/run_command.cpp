#include <algorithm>
#include <filesystem>
#include <iomanip>
#include <map>
#include <numeric>
#include <sstream>

#include "core/error.h"
#include "nn/file.h"
#include "pipeline/generators.h"
#include "pipeline/schedule_size.h"
#include "tools/flow_sim/commands.h"
#include "tools/flow_sim/timeline_sums.h"

namespace flow::sim {

namespace {

using pipeline::ActionKind;
using pipeline::Schedule;
using pipeline::ScheduleRule;
using pipeline::StageCost;
using pipeline::Timeline;
using pipeline::TransferCost;

// The number in a list that applies to a stage.
double at(const std::vector<double>& list, size_t stage, double fallback) {
  if (list.empty()) return fallback;
  return list.size() == 1 ? list[0] : list[stage];
}

void check_list(const std::vector<double>& list, const char* name, int64_t count) {
  if (list.size() > 1 && static_cast<int64_t>(list.size()) != count) {
    throw InvalidArgument(str("[flow-sim] --", name, " has ", list.size(), " numbers; give ", count,
                              ", or one for all"));
  }
  for (const double number : list) {
    if (number >= 0 && number < 1e15) continue;
    throw InvalidArgument(
        str("[flow-sim] --", name, " has ", number, "; give numbers that are at least 0"));
  }
}

// What is simulated: the options with their defaults filled in.
struct Job {
  int64_t stages = 0;
  int64_t micro_batches = 0;
  std::vector<StageCost> costs = {};
  std::vector<TransferCost> transfers = {};
  std::vector<double> activation_bytes = {};  // empty: not requested
  std::vector<std::pair<std::string, Schedule>> schedules = {};
};

// Adds a schedule, unless it does not support the number of stages or micro-batches.
void add_if_possible(Job& job, const ScheduleRule& rule) {
  try {
    job.schedules.emplace_back(to_string(rule), make_schedule(rule, job.stages, job.micro_batches));
  } catch (const InvalidArgument&) {  // the schedule needs other numbers
  }
}

void add_schedule(Job& job, const std::string& name) {
  if (name == "all") {
    for (const ScheduleRule& rule : {pipeline::gpipe(), pipeline::one_f_one_b(),
                                     pipeline::interleaved(2), pipeline::zb_h1(), pipeline::zb_v()})
      add_if_possible(job, rule);
  } else if (std::filesystem::is_regular_file(name)) {
    const ScheduleRule rule = pipeline::schedule_table(nn::read_text(name));
    job.schedules.emplace_back(name, make_schedule(rule, job.stages, job.micro_batches));
  } else {
    const ScheduleRule rule = pipeline::parse_schedule_rule(name);
    job.schedules.emplace_back(name, make_schedule(rule, job.stages, job.micro_batches));
  }
}

int64_t stages_of(const RunOptions& options) {
  if (options.stages > 0) return options.stages;
  size_t count = 0;
  for (const auto* list : {&options.forward, &options.backward, &options.weight})
    count = std::max(count, list->size());
  for (const std::string& name : options.schedules) {
    if (std::filesystem::is_regular_file(name)) {
      const Schedule table = pipeline::parse_schedule(nn::read_text(name));
      return table.num_stages;
    }
  }
  return static_cast<int64_t>(count);
}

Job make_job(const RunOptions& options) {
  Job job{.stages = stages_of(options), .micro_batches = options.micro_batches};
  std::vector<StageCost> known;
  if (!options.costs.empty()) {
    const pipeline::TimelineFile file = load_timeline(options.costs);
    known = options.uses_predicted ? file.costs : costs_of(file);
    const auto count = static_cast<int64_t>(known.size());
    if (options.stages > 0 && options.stages != count) {
      throw InvalidArgument(str("[flow-sim] ", options.costs, " has costs of ", count,
                                " stages, but --stages is ", options.stages,
                                "; leave --stages out"));
    }
    job.stages = count;
    if (job.micro_batches == 0) job.micro_batches = file.schedule.num_micro_batches;
    if (options.schedules.empty() && job.micro_batches == file.schedule.num_micro_batches)
      job.schedules.emplace_back(file.schedule_name, file.schedule);
  }
  if (job.micro_batches == 0) {
    for (const std::string& name : options.schedules) {
      if (!std::filesystem::is_regular_file(name)) continue;
      job.micro_batches = pipeline::parse_schedule(nn::read_text(name)).num_micro_batches;
    }
  }
  pipeline::check_schedule_size(job.stages, job.micro_batches);
  check_list(options.forward, "forward", job.stages);
  check_list(options.backward, "backward", job.stages);
  check_list(options.weight, "weight", job.stages);
  check_list(options.activation_bytes, "activation-bytes", job.stages);
  check_list(options.transfer, "transfer", job.stages - 1);
  check_list(options.transfer_back, "transfer-back", job.stages - 1);
  for (size_t stage = 0; stage < static_cast<size_t>(job.stages); ++stage) {
    const StageCost base = known.empty() ? StageCost() : known[stage];
    job.costs.push_back({.forward = at(options.forward, stage, base.forward),
                         .backward = at(options.backward, stage, base.backward),
                         .weight = at(options.weight, stage, base.weight)});
    if (!options.activation_bytes.empty())
      job.activation_bytes.push_back(at(options.activation_bytes, stage, 0));
    if (stage + 1 == static_cast<size_t>(job.stages)) break;
    const double forward = at(options.transfer, stage, 0);
    job.transfers.push_back(
        {.forward = forward, .backward = at(options.transfer_back, stage, forward)});
  }
  for (const std::string& name : options.schedules)
    add_schedule(job, name);
  if (job.schedules.empty()) add_schedule(job, "all");
  return job;
}

// The peak memory of the activations in the stages of one worker.
double peak_bytes(const Schedule& schedule, const Timeline& timeline,
                  const std::vector<double>& bytes) {
  const ActionKind last = schedule.has_weights() ? ActionKind::kWeight : ActionKind::kBackward;
  std::map<int64_t, double> now;  // by worker
  double most = 0;
  for (const pipeline::TimedAction& timed : timeline.actions) {
    const double size = bytes[static_cast<size_t>(timed.action.stage)];
    if (timed.action.kind == ActionKind::kForward) most = std::max(most, now[timed.worker] += size);
    if (timed.action.kind == last) now[timed.worker] -= size;
  }
  return most;
}

}  // namespace

pipeline::TimelineFile load_timeline(const std::string& path) {
  return pipeline::parse_timeline(nn::read_text(path, uint64_t{1} << 30), path);
}

std::string run(const RunOptions& options) {
  const Job job = make_job(options);
  if (!options.out.empty() && job.schedules.size() != 1) {
    throw InvalidArgument(
        str("[flow-sim] --out with ", job.schedules.size(),
            " schedules; a timeline holds one schedule, so name it with --schedule"));
  }
  std::ostringstream out;
  out << job.stages << " stages, " << job.micro_batches << " micro-batches\n"
      << std::left << std::setw(20) << "schedule" << std::right << std::setw(8) << "workers"
      << std::setw(14) << "makespan us" << std::setw(9) << "bubble" << std::setw(9) << "speed"
      << (job.activation_bytes.empty() ? "" : "    peak bytes") << "  kept by stage\n";
  double first = 0;
  for (const auto& [name, schedule] : job.schedules) {
    const Timeline timeline = simulate(schedule, job.costs, job.transfers);
    if (first == 0) first = timeline.makespan;
    out << std::left << std::setw(20) << name << std::right << std::setw(8)
        << schedule.actions.size() << std::fixed << std::setprecision(1) << std::setw(14)
        << timeline.makespan << std::setprecision(4) << std::setw(9) << timeline.bubble()
        << std::setprecision(3) << std::setw(9)
        << (timeline.makespan > 0 ? first / timeline.makespan : 1.0);
    if (!job.activation_bytes.empty()) {
      out << std::setprecision(0) << std::setw(14)
          << peak_bytes(schedule, timeline, job.activation_bytes);
    }
    out << ' ';
    for (const int64_t kept : timeline.kept_by_stage)
      out << ' ' << kept;
    out << '\n';
  }
  if (!options.out.empty()) {
    const auto& [name, schedule] = job.schedules.front();
    pipeline::write_timeline(
        options.out, pipeline::simulated_timeline(schedule, name, job.costs, job.transfers));
  }
  return out.str();
}

}  // namespace flow::sim
