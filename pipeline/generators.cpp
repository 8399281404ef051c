#include "pipeline/generators.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <utility>

#include "core/error.h"
#include "pipeline/schedule_size.h"

namespace flow::pipeline {

namespace {

using Worker = std::vector<Action>;

constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kB = ActionKind::kBackward;
constexpr ActionKind kW = ActionKind::kWeight;

// `warm_up` forwards, then forwards and backwards that alternate, then the remaining backwards.
Worker in_turn(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
               size_t warm_up) {
  warm_up = std::min(warm_up, forwards.size());
  Worker worker(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(warm_up));
  for (size_t i = warm_up; i < forwards.size(); ++i) {
    worker.push_back(forwards[i]);
    worker.push_back(backwards[i - warm_up]);
  }
  worker.insert(worker.end(), backwards.end() - static_cast<std::ptrdiff_t>(warm_up),
                backwards.end());
  return worker;
}

// A single stage never waits: each micro-batch goes forward and backward before the next.
Schedule make_interleaved(int64_t num_stages, int64_t num_micro_batches, int64_t chunks) {
  const int64_t workers = num_stages / chunks;
  Schedule schedule{
      .num_stages = num_stages, .num_micro_batches = num_micro_batches, .actions = {}};
  for (int64_t w = 0; w < workers; ++w) {
    std::vector<Action> forwards, backwards;
    // Micro-batches go through all chunks in groups of the number of workers.
    for (int64_t group = 0; group < num_micro_batches; group += workers) {
      const int64_t end = std::min(group + workers, num_micro_batches);
      for (int64_t chunk = 0; chunk < chunks; ++chunk) {
        for (int64_t m = group; m < end; ++m) {
          forwards.push_back({chunk * workers + w, kF, m});
          backwards.push_back({(chunks - 1 - chunk) * workers + w, kB, m});
        }
      }
    }
    const int64_t ahead = workers - 1 - w;
    const int64_t warm_up = chunks == 1 ? ahead : 2 * ahead + (chunks - 1) * workers;
    schedule.actions.push_back(in_turn(forwards, backwards, static_cast<size_t>(warm_up)));
  }
  return schedule;
}

// As 1F1B, but the W of stage s come s micro-batches after their B: without that, a later stage
// waits longer at the end, and it keeps fewer micro-batches.
Schedule make_zb_h1(int64_t num_stages, int64_t num_micro_batches) {
  Schedule schedule{
      .num_stages = num_stages, .num_micro_batches = num_micro_batches, .actions = {}};
  for (int64_t s = 0; s < num_stages; ++s) {
    Worker& worker = schedule.actions.emplace_back();
    int64_t forwards = 0, weights = 0;
    while (forwards < std::min(num_micro_batches, num_stages - s))
      worker.push_back({s, kF, forwards++});
    for (int64_t m = 0; m < num_micro_batches; ++m) {
      worker.push_back({s, kB, m});
      if (m >= s) worker.push_back({s, kW, weights++});
      if (forwards < num_micro_batches) worker.push_back({s, kF, forwards++});
    }
    while (weights < num_micro_batches)
      worker.push_back({s, kW, weights++});
  }
  return schedule;
}

// In steps of equal length, each worker takes an action that is ready: backwards first, then
// forwards within the memory limit, then gradients of weights.
class Greedy {
 public:
  // `stages` by worker. A stage may be `ahead(stage)` forwards before its backwards; a worker keeps
  // at most `limit` micro-batches of its stages.
  Greedy(std::vector<std::vector<int64_t>> stages, int64_t num_micro_batches,
         std::function<int64_t(int64_t stage)> ahead, int64_t limit)
      : stages_(std::move(stages)), ahead_(std::move(ahead)), limit_(limit) {
    schedule_.num_micro_batches = num_micro_batches;
    for (const std::vector<int64_t>& of_worker : stages_)
      schedule_.num_stages += static_cast<int64_t>(of_worker.size());
    schedule_.actions.resize(stages_.size());
    for (std::vector<int64_t>& counts : counts_)
      counts.assign(static_cast<size_t>(schedule_.num_stages), 0);
  }

  Schedule run() {
    const int64_t total = 3 * schedule_.num_stages * schedule_.num_micro_batches;
    for (int64_t done = 0, step = 0; done < total; ++step) {
      std::vector<Action> taken;
      for (size_t w = 0; w < stages_.size(); ++w) {
        Action action;
        if (!choose(w, action)) continue;
        schedule_.actions[w].push_back(action);
        taken.push_back(action);
      }
      FLOW_ASSERT(!taken.empty(), "no worker goes on after ", done, " actions");
      for (const Action& action : taken)
        ++count(action.kind, action.stage);
      done += static_cast<int64_t>(taken.size());
    }
    return std::move(schedule_);
  }

 private:
  int64_t& count(ActionKind kind, int64_t stage) {
    return counts_[static_cast<size_t>(kind)][static_cast<size_t>(stage)];
  }

  bool choose(size_t worker, Action& action) {
    const std::vector<int64_t>& stages = stages_[worker];
    int64_t kept = 0;
    for (const int64_t stage : stages)
      kept += count(kF, stage) - count(kW, stage);
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      const int64_t m = count(kB, *stage);
      const bool follows =
          *stage + 1 == schedule_.num_stages ? m < count(kF, *stage) : m < count(kB, *stage + 1);
      if (!follows) continue;
      action = {*stage, kB, m};
      return true;
    }
    for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
      const int64_t m = count(kF, *stage);
      const int64_t ready = *stage == 0 ? schedule_.num_micro_batches : count(kF, *stage - 1);
      if (m >= ready || kept >= limit_ || m - count(kB, *stage) >= ahead_(*stage)) continue;
      action = {*stage, kF, m};
      return true;
    }
    for (const int64_t stage : stages) {
      const int64_t m = count(kW, stage);
      if (m >= count(kB, stage)) continue;
      action = {stage, kW, m};
      return true;
    }
    return false;
  }

  std::vector<std::vector<int64_t>> stages_;
  std::function<int64_t(int64_t)> ahead_;
  int64_t limit_;
  Schedule schedule_;
  std::array<std::vector<int64_t>, 3> counts_;  // done, by kind and stage
};

void check_multiple(int64_t number, int64_t of, const char* what) {
  if (of >= 1 && number % of == 0) return;
  throw InvalidArgument(
      str("[schedule] ", number, " ", what, " are no multiple of ", of, "; change one of them"));
}

}  // namespace

Schedule gpipe(int64_t num_stages, int64_t num_micro_batches) {
  Schedule schedule{
      .num_stages = num_stages, .num_micro_batches = num_micro_batches, .actions = {}};
  for (int64_t s = 0; s < num_stages; ++s) {
    Worker& worker = schedule.actions.emplace_back();
    for (const ActionKind kind : {kF, kB}) {
      for (int64_t m = 0; m < num_micro_batches; ++m)
        worker.push_back({s, kind, m});
    }
  }
  return schedule;
}

ScheduleRule gpipe() {
  return {.kind = ScheduleRule::Kind::kGpipe};
}

ScheduleRule one_f_one_b() {
  return {};
}

ScheduleRule interleaved(int64_t chunks) {
  if (chunks < 1 || chunks > kMostActions) {
    throw InvalidArgument(
        str("[schedule] ", chunks, " stages of a worker; give 1 to ", kMostActions));
  }
  return {.kind = ScheduleRule::Kind::kInterleaved, .chunks = chunks};
}

ScheduleRule zb_h1() {
  return {.kind = ScheduleRule::Kind::kZbH1};
}

ScheduleRule zb_v() {
  return {.kind = ScheduleRule::Kind::kZbV};
}

ScheduleRule schedule_table(std::string text) {
  parse_schedule(text);
  return {.kind = ScheduleRule::Kind::kTable, .chunks = 1, .table = std::move(text)};
}

namespace {
constexpr std::array<std::string_view, 6> kNames = {"gpipe", "1f1b", "interleaved",
                                                    "zb-h1", "zb-v", "table"};  // by kind
}

std::string to_string(const ScheduleRule& rule) {
  const std::string name(kNames[static_cast<size_t>(rule.kind)]);
  return rule.kind == ScheduleRule::Kind::kInterleaved ? str(name, ':', rule.chunks) : name;
}

ScheduleRule parse_schedule_rule(std::string_view text) {
  if (text == kNames[0]) return gpipe();
  if (text == kNames[1]) return one_f_one_b();
  if (text == kNames[3]) return zb_h1();
  if (text == kNames[4]) return zb_v();
  if (text.starts_with("interleaved:")) {
    int64_t chunks = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + 12, end, chunks);
    if (error == std::errc() && rest == end) return interleaved(chunks);
  }
  throw InvalidArgument(str("[schedule] '", text,
                            "' is unknown; use gpipe, 1f1b, interleaved:CHUNKS, zb-h1 or zb-v"));
}

Schedule make_schedule(const ScheduleRule& rule, int64_t num_stages, int64_t num_micro_batches) {
  check_schedule_size(num_stages, num_micro_batches);
  using Kind = ScheduleRule::Kind;
  switch (rule.kind) {
    case Kind::kGpipe:
      return gpipe(num_stages, num_micro_batches);
    case Kind::kOneFOneB:
      return make_interleaved(num_stages, num_micro_batches, 1);
    case Kind::kInterleaved:
      check_multiple(num_stages, rule.chunks, "stages");
      if (num_micro_batches > 1) {
        check_multiple(num_micro_batches, num_stages / rule.chunks,
                       "micro-batches, which take turns on all workers,");
      }
      return make_interleaved(num_stages, num_micro_batches, rule.chunks);
    case Kind::kZbH1:
      return make_zb_h1(num_stages, num_micro_batches);
    case Kind::kZbV: {
      check_multiple(num_stages, 2, "stages");
      std::vector<std::vector<int64_t>> stages;
      for (int64_t w = 0; w < num_stages / 2; ++w)
        stages.push_back({w, num_stages - 1 - w});
      return Greedy(
                 stages, num_micro_batches, [=](int64_t stage) { return num_stages - stage; },
                 num_stages)
          .run();
    }
    case Kind::kTable: {
      Schedule schedule = parse_schedule(rule.table);
      if (schedule.num_stages == num_stages && schedule.num_micro_batches == num_micro_batches) {
        return schedule;
      }
      throw InvalidArgument(str("[schedule] the table is for ", schedule.num_stages, " stages and ",
                                schedule.num_micro_batches, " micro-batches; the graph has ",
                                num_stages, " and ", num_micro_batches));
    }
  }
  return {};
}

}  // namespace flow::pipeline
