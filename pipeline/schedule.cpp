#include "pipeline/schedule.h"

#include <charconv>
#include <set>

#include "core/error.h"

namespace flow::pipeline {

std::string to_string(const Action& action) {
  return str(action.stage, action.kind == ActionKind::kForward ? 'F' : 'B', action.micro_batch);
}

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const auto& stage : schedule.actions) {
    for (size_t i = 0; i < stage.size(); ++i) {
      text += i == 0 ? "" : " ";
      text += to_string(stage[i]);
    }
    text += '\n';
  }
  return text;
}

namespace {

Action parse_action(std::string_view word) {
  Action action;
  const char* end = word.data() + word.size();
  auto [kind, first] = std::from_chars(word.data(), end, action.stage);
  bool ok = first == std::errc() && kind != end && (*kind == 'F' || *kind == 'B');
  if (ok) {
    action.kind = *kind == 'F' ? ActionKind::kForward : ActionKind::kBackward;
    const auto [rest, second] = std::from_chars(kind + 1, end, action.micro_batch);
    ok = second == std::errc() && rest == end;
  }
  if (!ok) {
    throw InvalidArgument(
        str("[schedule] cannot read the action '", word, "'; write <stage><F|B><micro-batch>"));
  }
  return action;
}

}  // namespace

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    std::vector<Action>& stage = schedule.actions.emplace_back();
    while (!line.empty()) {
      const size_t space = line.find(' ');
      if (space != 0) stage.push_back(parse_action(line.substr(0, space)));
      line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
    }
  }
  schedule.num_stages = static_cast<int64_t>(schedule.actions.size());
  for (const auto& stage : schedule.actions) {
    for (const Action& action : stage) {
      schedule.num_micro_batches = std::max(schedule.num_micro_batches, action.micro_batch + 1);
    }
  }
  validate(schedule);
  return schedule;
}

namespace {

bool is_ready(const Schedule& schedule, const std::set<Action>& done, const Action& action) {
  Action before = action;
  if (action.kind == ActionKind::kForward) {
    before.stage -= 1;
    return action.stage == 0 || done.contains(before);
  }
  before.kind = ActionKind::kForward;
  if (!done.contains(before)) return false;
  before = action;
  before.stage += 1;
  return before.stage == schedule.num_stages || done.contains(before);
}

}  // namespace

void validate(const Schedule& schedule) {
  std::set<Action> listed;
  for (size_t s = 0; s < schedule.actions.size(); ++s) {
    for (const Action& action : schedule.actions[s]) {
      if (action.stage != static_cast<int64_t>(s) || action.micro_batch < 0 ||
          action.micro_batch >= schedule.num_micro_batches) {
        throw InvalidArgument(str("[schedule] ", to_string(action), " does not belong to stage ", s,
                                  " of ", schedule.num_micro_batches, " micro-batches"));
      }
      if (!listed.insert(action).second) {
        throw InvalidArgument(str("[schedule] ", to_string(action), " is listed twice"));
      }
    }
  }
  const int64_t wanted = 2 * schedule.num_stages * schedule.num_micro_batches;
  if (static_cast<int64_t>(listed.size()) != wanted ||
      static_cast<int64_t>(schedule.actions.size()) != schedule.num_stages) {
    throw InvalidArgument(str("[schedule] ", listed.size(), " of ", wanted,
                              " actions are listed; every stage does F and B of each micro-batch"));
  }
  std::set<Action> done;
  std::vector<size_t> next(schedule.actions.size(), 0);
  bool progressed = true;
  while (progressed) {
    progressed = false;
    for (size_t s = 0; s < next.size(); ++s) {
      const auto& stage = schedule.actions[s];
      while (next[s] < stage.size() && is_ready(schedule, done, stage[next[s]])) {
        done.insert(stage[next[s]++]);
        progressed = true;
      }
    }
  }
  std::string stuck;
  for (size_t s = 0; s < next.size(); ++s) {
    if (next[s] < schedule.actions[s].size()) {
      stuck += str(stuck.empty() ? "" : ", ", to_string(schedule.actions[s][next[s]]));
    }
  }
  if (!stuck.empty()) {
    throw InvalidArgument(str("[schedule] these actions wait for each other for ever: ", stuck,
                              "; order each stage's actions after what they need"));
  }
}

Schedule gpipe(int64_t num_stages, int64_t num_micro_batches) {
  Schedule schedule{
      .num_stages = num_stages, .num_micro_batches = num_micro_batches, .actions = {}};
  for (int64_t s = 0; s < num_stages; ++s) {
    std::vector<Action>& stage = schedule.actions.emplace_back();
    for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
      for (int64_t m = 0; m < num_micro_batches; ++m)
        stage.push_back({s, kind, m});
    }
  }
  return schedule;
}

}  // namespace flow::pipeline
