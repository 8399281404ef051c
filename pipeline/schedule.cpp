#include "pipeline/schedule.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "core/error.h"

namespace flow::pipeline {

namespace {
constexpr std::string_view kLetters = "FBW";  // by kind
}

bool Schedule::has_weights() const {
  return std::any_of(actions.begin(), actions.end(), [](const std::vector<Action>& worker) {
    return std::any_of(worker.begin(), worker.end(),
                       [](const Action& action) { return action.kind == ActionKind::kWeight; });
  });
}

std::string to_string(const Action& action) {
  return str(action.stage, kLetters[static_cast<size_t>(action.kind)], action.micro_batch);
}

std::string to_string(const Schedule& schedule) {
  std::string text;
  for (const auto& worker : schedule.actions) {
    for (size_t i = 0; i < worker.size(); ++i) {
      text += i == 0 ? "" : " ";
      text += to_string(worker[i]);
    }
    text += '\n';
  }
  return text;
}

Action parse_action(std::string_view word) {
  Action action;
  const char* end = word.data() + word.size();
  auto [kind, first] = std::from_chars(word.data(), end, action.stage);
  bool ok = first == std::errc() && kind != end && kLetters.find(*kind) != kLetters.npos;
  if (ok) {
    action.kind = static_cast<ActionKind>(kLetters.find(*kind));
    const auto [rest, second] = std::from_chars(kind + 1, end, action.micro_batch);
    ok = second == std::errc() && rest == end;
  }
  if (!ok) {
    throw InvalidArgument(
        str("[schedule] cannot read the action '", word, "'; write <stage><F|B|W><micro-batch>"));
  }
  return action;
}

Schedule parse_schedule(std::string_view text) {
  Schedule schedule;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    std::vector<Action>& worker = schedule.actions.emplace_back();
    while (!line.empty()) {
      const size_t space = line.find(' ');
      if (space != 0) worker.push_back(parse_action(line.substr(0, space)));
      line.remove_prefix(space == std::string_view::npos ? line.size() : space + 1);
    }
    if (worker.empty()) schedule.actions.pop_back();  // the line is blank
  }
  int64_t num_actions = 0;
  for (const auto& worker : schedule.actions)
    num_actions += static_cast<int64_t>(worker.size());
  for (const auto& worker : schedule.actions) {
    for (const Action& action : worker) {
      if (std::max(action.stage, action.micro_batch) >= num_actions) {
        throw InvalidArgument(str("[schedule] ", to_string(action), " in a table of ", num_actions,
                                  " actions; list F and B of every stage and micro-batch"));
      }
      schedule.num_stages = std::max(schedule.num_stages, action.stage + 1);
      schedule.num_micro_batches = std::max(schedule.num_micro_batches, action.micro_batch + 1);
    }
  }
  validate(schedule);
  return schedule;
}

std::vector<Action> needs_of(const Schedule& schedule, const Action& action) {
  const auto [stage, kind, micro_batch] = action;
  switch (kind) {
    case ActionKind::kForward:
      if (stage == 0) return {};
      return {{stage - 1, kind, micro_batch}};
    case ActionKind::kBackward:
      if (stage + 1 == schedule.num_stages) return {{stage, ActionKind::kForward, micro_batch}};
      return {{stage, ActionKind::kForward, micro_batch}, {stage + 1, kind, micro_batch}};
    case ActionKind::kWeight:
      return {{stage, ActionKind::kBackward, micro_batch}};
  }
  return {};
}

size_t num_actions(const Schedule& schedule) {
  return static_cast<size_t>(3 * schedule.num_stages * schedule.num_micro_batches);
}

size_t index_of(const Schedule& schedule, const Action& action) {
  const int64_t slot = 3 * action.stage + static_cast<int64_t>(action.kind);
  return static_cast<size_t>(slot * schedule.num_micro_batches + action.micro_batch);
}

namespace {

// Checks that each action is in range and occurs once, and that one worker has all actions of a
// stage. Returns the number of actions.
int64_t check_actions(const Schedule& schedule) {
  std::set<Action> listed;
  std::vector<int64_t> worker_of(static_cast<size_t>(schedule.num_stages), -1);
  for (size_t w = 0; w < schedule.actions.size(); ++w) {
    for (const Action& action : schedule.actions[w]) {
      if (action.stage < 0 || action.stage >= schedule.num_stages || action.micro_batch < 0 ||
          action.micro_batch >= schedule.num_micro_batches) {
        throw InvalidArgument(str("[schedule] ", to_string(action), " is none of ",
                                  schedule.num_stages, " stages and ", schedule.num_micro_batches,
                                  " micro-batches; count both from 0"));
      }
      int64_t& worker = worker_of[static_cast<size_t>(action.stage)];
      if (worker >= 0 && worker != static_cast<int64_t>(w)) {
        throw InvalidArgument(str("[schedule] ", to_string(action), " is listed in line ", w + 1,
                                  ", other actions of stage ", action.stage, " in line ",
                                  worker + 1, "; a stage belongs to one line"));
      }
      worker = static_cast<int64_t>(w);
      if (!listed.insert(action).second) {
        throw InvalidArgument(
            str("[schedule] ", to_string(action), " is listed twice; list it once"));
      }
    }
  }
  return static_cast<int64_t>(listed.size());
}

}  // namespace

void validate(const Schedule& schedule) {
  const int64_t listed = check_actions(schedule);
  const bool has_weights = schedule.has_weights();
  const int64_t wanted = (has_weights ? 3 : 2) * schedule.num_stages * schedule.num_micro_batches;
  if (listed != wanted) {
    throw InvalidArgument(str("[schedule] ", listed, " of ", wanted,
                              " actions are listed; every stage does ",
                              has_weights ? "F, B and W" : "F and B", " of each micro-batch"));
  }
  std::vector<bool> done(num_actions(schedule), false);
  std::vector<size_t> next(schedule.actions.size(), 0);
  const auto is_ready = [&](const Action& action) {
    const std::vector<Action> needs = needs_of(schedule, action);
    return std::all_of(needs.begin(), needs.end(),
                       [&](const Action& a) { return done[index_of(schedule, a)]; });
  };
  bool progressed = true;
  while (progressed) {
    progressed = false;
    for (size_t w = 0; w < next.size(); ++w) {
      const auto& worker = schedule.actions[w];
      while (next[w] < worker.size() && is_ready(worker[next[w]])) {
        done[index_of(schedule, worker[next[w]++])] = true;
        progressed = true;
      }
    }
  }
  std::string stuck;
  for (size_t w = 0; w < next.size(); ++w) {
    if (next[w] < schedule.actions[w].size()) {
      stuck += str(stuck.empty() ? "" : ", ", to_string(schedule.actions[w][next[w]]));
    }
  }
  if (!stuck.empty()) {
    throw InvalidArgument(str("[schedule] these actions wait for each other for ever: ", stuck,
                              "; order each line's actions after what they need"));
  }
}

}  // namespace flow::pipeline
