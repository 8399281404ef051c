#include "pipeline/timeline_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/error.h"

namespace flow::pipeline {

namespace {

using Json = nlohmann::ordered_json;
using Kind = TimelineEvent::Kind;

constexpr const char* kFormat = "flow-timeline";
constexpr int64_t kVersion = 1;
constexpr std::array<const char*, 5> kCategories = {"action", "phase", "wait", "transfer",
                                                    "kernel"};   // by kind
constexpr std::array<const char*, 3> kPhases = {"F", "B", "W"};  // by action kind

// Tracks of a rank's process in the viewer.
int64_t track_of(const TimelineEvent& event) {
  switch (event.kind) {
    case Kind::kAction:
    case Kind::kPhase:
    case Kind::kKernel:
      return 0;
    case Kind::kWait:
      return 1;
    case Kind::kTransfer:
      return 2;
  }
  return 0;
}

std::string title_of(const TimelineEvent& event) {
  switch (event.kind) {
    case Kind::kAction:
      return to_string(event.action);
    case Kind::kPhase:
    case Kind::kKernel:
      return event.name;
    case Kind::kWait:
      return str(event.is_send ? "wait for send to " : "wait for ", event.peer);
    case Kind::kTransfer:
      return str("to ", event.peer);
  }
  return {};
}

Json json_of(const TimelineEvent& event) {
  Json args = {{"run", event.run}};
  if (event.kind == Kind::kAction) {
    args["stage"] = event.action.stage;
    args["kind"] = kPhases[static_cast<size_t>(event.action.kind)];
    args["micro_batch"] = event.action.micro_batch;
    if (event.predicted_us >= 0) {
      args["predicted_start_us"] = event.predicted_start_us;
      args["predicted_us"] = event.predicted_us;
    }
    if (event.waiting_us > 0) args["waiting_us"] = event.waiting_us;
    if (event.collective_us > 0) args["collective_us"] = event.collective_us;
  } else if (event.peer >= 0) {
    args["peer"] = event.peer;
    args["tag"] = event.tag;
    args["bytes"] = event.bytes;
    if (event.is_send) args["send"] = true;
  }
  return {{"name", title_of(event)},
          {"cat", kCategories[static_cast<size_t>(event.kind)]},
          {"ph", "X"},
          {"pid", event.rank},
          {"tid", track_of(event)},
          {"ts", event.start_us},
          {"dur", event.duration_us},
          {"args", std::move(args)}};
}

// The parser copies lists and objects, and calls itself for each level of nesting.
bool is_nested_too_deeply(std::string_view text) {
  constexpr int kMost = 64;  // levels of a timeline: 5, but other programs may add events
  int depth = 0;
  bool is_quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      is_quoted = !is_quoted;
    } else if (!is_quoted && (c == '[' || c == '{')) {
      if (++depth > kMost) return true;
    } else if (!is_quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return false;
}

// Reads a file's JSON; every error names the path.
class Parser {
 public:
  explicit Parser(const std::string& path) : path_(path) {}

  Json parse(std::string_view text) const {
    if (is_nested_too_deeply(text)) fail("it is nested too deeply");
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) fail("it is no JSON");
    return json;
  }

  const Json& field(const Json& object, const char* name, const std::string& where) const {
    if (!object.is_object() || !object.contains(name)) fail(str(where, " has no ", name));
    return object.at(name);
  }

  const Json& list(const Json& object, const char* name, const std::string& where) const {
    const Json& value = field(object, name, where);
    if (!value.is_array()) fail(str(name, " of ", where, " is no list"));
    return value;
  }

  std::string text(const Json& object, const char* name, const std::string& where) const {
    const Json& value = field(object, name, where);
    if (!value.is_string()) fail(str(name, " of ", where, " is no text"));
    return value.get<std::string>();
  }

  // A count or an index.
  int64_t whole(const Json& object, const char* name, const std::string& where) const {
    const Json& value = field(object, name, where);
    if (!value.is_number_integer() || value.get<int64_t>() < 0) {
      fail(str(name, " of ", where, " is no whole number"));
    }
    return value.get<int64_t>();
  }

  // Neither negative nor infinite.
  double time(const Json& object, const char* name, const std::string& where) const {
    const Json& value = field(object, name, where);
    if (!value.is_number() || !(value.get<double>() >= 0) || std::isinf(value.get<double>())) {
      fail(str(name, " of ", where, " is no time"));
    }
    return value.get<double>();
  }

  double time_or(const Json& object, const char* name, const std::string& where,
                 double fallback) const {
    return object.contains(name) ? time(object, name, where) : fallback;
  }

  // False for an event in no category of flow: other programs may add events.
  bool read_event(const Json& json, size_t index, TimelineEvent& event) const {
    const std::string where = str("event ", index);
    if (!json.is_object()) fail(str(where, " is no object"));
    if (!json.contains("cat")) return false;
    const std::string category = text(json, "cat", where);
    const auto* kind = std::find(kCategories.begin(), kCategories.end(), category);
    if (kind == kCategories.end()) return false;
    event.kind = static_cast<Kind>(kind - kCategories.begin());
    event.rank = whole(json, "pid", where);
    event.start_us = time(json, "ts", where);
    event.duration_us = time(json, "dur", where);
    const Json& args = field(json, "args", where);
    event.run = whole(args, "run", where);
    switch (event.kind) {
      case Kind::kAction:
        event.action = action_of(args, where);
        event.predicted_start_us = time_or(args, "predicted_start_us", where, -1);
        event.predicted_us = time_or(args, "predicted_us", where, -1);
        event.waiting_us = time_or(args, "waiting_us", where, 0);
        event.collective_us = time_or(args, "collective_us", where, 0);
        break;
      case Kind::kPhase:
      case Kind::kKernel:
        event.name = text(json, "name", where);
        break;
      case Kind::kWait:
      case Kind::kTransfer:
        event.peer = whole(args, "peer", where);
        event.tag = whole(args, "tag", where);
        event.bytes = whole(args, "bytes", where);
        event.is_send = args.contains("send");
        break;
    }
    return true;
  }

  Schedule schedule(const Json& lines) const {
    std::string table;
    for (const Json& line : lines) {
      if (!line.is_string()) fail("a line of the schedule is no text");
      table += line.get<std::string>() + '\n';
    }
    if (table.empty()) return {};
    try {
      return parse_schedule(table);
    } catch (const InvalidArgument& error) {
      fail(error.what());
    }
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw BadFile(str("[timeline] ", path_, " is no timeline of flow: ", why,
                      "; write it with flow-sim run or a graph's set_timeline"));
  }

 private:
  Action action_of(const Json& args, const std::string& where) const {
    const std::string letter = text(args, "kind", where);
    const auto* kind = std::find(kPhases.begin(), kPhases.end(), letter);
    if (kind == kPhases.end()) fail(str("kind of ", where, " is '", letter, "', not F, B or W"));
    return {.stage = whole(args, "stage", where),
            .kind = static_cast<ActionKind>(kind - kPhases.begin()),
            .micro_batch = whole(args, "micro_batch", where)};
  }

  const std::string& path_;
};

// Checks that every run has each action exactly once on each rank of its stage, and no others.
void check_actions(const TimelineFile& file, const Parser& parser) {
  std::set<Action> scheduled;
  size_t wanted = 0;  // in a run
  for (const std::vector<Action>& worker : file.schedule.actions) {
    for (const Action& action : worker) {
      scheduled.insert(action);
      wanted += file.ranks[static_cast<size_t>(action.stage)].size();
    }
  }
  std::set<std::tuple<int64_t, int64_t, Action>> seen;
  std::set<int64_t> runs;
  for (const TimelineEvent& event : file.events) {
    if (event.kind != Kind::kAction) continue;
    if (!scheduled.contains(event.action)) {
      parser.fail(str(to_string(event.action), " is not in the schedule"));
    }
    const std::vector<int64_t>& ranks = file.ranks[static_cast<size_t>(event.action.stage)];
    if (std::find(ranks.begin(), ranks.end(), event.rank) == ranks.end()) {
      parser.fail(str(to_string(event.action), " is on rank ", event.rank,
                      ", which does not hold its stage"));
    }
    if (!seen.insert({event.run, event.rank, event.action}).second) {
      parser.fail(str(to_string(event.action), " is there twice on rank ", event.rank));
    }
    runs.insert(event.run);
  }
  if (seen.size() != wanted * runs.size() || (runs.empty() && wanted > 0)) {
    parser.fail(
        str(seen.size(), " actions are there, of ", wanted, " in each of ", runs.size(), " runs"));
  }
}

}  // namespace

std::string events_to_json(const std::vector<TimelineEvent>& events) {
  std::string text = "[";
  for (size_t i = 0; i < events.size(); ++i)
    text += str(i == 0 ? "\n" : ",\n", json_of(events[i]).dump());
  return text + "\n]";
}

std::string to_json(const TimelineFile& file) {
  Json lines = Json::array();
  for (const std::vector<Action>& worker : file.schedule.actions) {
    std::string line;
    for (const Action& action : worker)
      line += str(line.empty() ? "" : " ", to_string(action));
    lines.push_back(line);
  }
  Json costs = Json::array();
  for (const StageCost& cost : file.costs) {
    costs.push_back(
        {{"forward_us", cost.forward}, {"backward_us", cost.backward}, {"weight_us", cost.weight}});
  }
  const Json about = {{"format", kFormat},
                      {"version", kVersion},
                      {"source", file.is_measured ? "measured" : "simulated"},
                      {"schedule_name", file.schedule_name},
                      {"schedule", std::move(lines)},
                      {"ranks", file.ranks},
                      {"costs", std::move(costs)}};
  std::set<int64_t> ranks;
  for (const TimelineEvent& event : file.events)
    ranks.insert(event.rank);
  std::string names;  // of the tracks, for the viewer
  for (const int64_t rank : ranks) {
    const auto name = [&](const char* what, int64_t track, const std::string& text) {
      const Json json = {
          {"name", what}, {"ph", "M"}, {"pid", rank}, {"tid", track}, {"args", {{"name", text}}}};
      names += json.dump() + ",\n";
    };
    name("process_name", 0, str("rank ", rank));
    name("thread_name", 0, "actions");
    name("thread_name", 1, "waits");
    name("thread_name", 2, "messages");
  }
  std::string events = events_to_json(file.events);
  events.insert(file.events.empty() ? 1 : 2, names.empty() ? "" : names);
  return str("{\"flow\": ", about.dump(),
             ",\n\"displayTimeUnit\": \"ms\",\n\"traceEvents\": ", events, "}\n");
}

std::vector<TimelineEvent> parse_events(std::string_view text, const std::string& path) {
  const Parser parser(path);
  const Json json = parser.parse(text);
  if (!json.is_array()) parser.fail("its events are no list");
  std::vector<TimelineEvent> events;
  for (size_t i = 0; i < json.size(); ++i) {
    TimelineEvent event;
    if (parser.read_event(json[i], i, event)) events.push_back(std::move(event));
  }
  return events;
}

TimelineFile parse_timeline(std::string_view text, const std::string& path) {
  const Parser parser(path);
  const Json json = parser.parse(text);
  if (!json.is_object()) parser.fail("it is no object");
  const Json& about = parser.field(json, "flow", "the file");
  if (parser.text(about, "format", "flow") != kFormat) parser.fail("its format is another");
  const int64_t version = parser.whole(about, "version", "flow");
  if (version != kVersion) {
    parser.fail(str("it has version ", version, ", this program reads ", kVersion));
  }
  TimelineFile file;
  const std::string source = parser.text(about, "source", "flow");
  if (source != "measured" && source != "simulated") {
    parser.fail(str("its source is '", source, "', not measured or simulated"));
  }
  file.is_measured = source == "measured";
  file.schedule_name = parser.text(about, "schedule_name", "flow");
  file.schedule = parser.schedule(parser.list(about, "schedule", "flow"));
  for (const Json& stage : parser.list(about, "ranks", "flow")) {
    std::vector<int64_t>& ranks = file.ranks.emplace_back();
    if (!stage.is_array()) parser.fail("ranks of a stage are no list");
    for (const Json& rank : stage) {
      if (!rank.is_number_unsigned()) parser.fail("a rank of a stage is no whole number");
      ranks.push_back(rank.get<int64_t>());
    }
  }
  const auto num_stages = static_cast<size_t>(file.schedule.num_stages);
  if (file.ranks.size() != num_stages) {
    parser.fail(str("it has ranks of ", file.ranks.size(), " stages of ", num_stages));
  }
  for (const Json& cost : parser.list(about, "costs", "flow")) {
    file.costs.push_back({.forward = parser.time(cost, "forward_us", "costs"),
                          .backward = parser.time(cost, "backward_us", "costs"),
                          .weight = parser.time(cost, "weight_us", "costs")});
  }
  if (!file.costs.empty() && file.costs.size() != num_stages) {
    parser.fail(str("it has costs of ", file.costs.size(), " stages of ", num_stages));
  }
  const Json& events = parser.list(json, "traceEvents", "the file");
  for (size_t i = 0; i < events.size(); ++i) {
    TimelineEvent event;
    if (parser.read_event(events[i], i, event)) file.events.push_back(std::move(event));
  }
  check_actions(file, parser);
  return file;
}

void write_timeline(const std::string& path, const TimelineFile& timeline) {
  std::ofstream file(path);
  file << to_json(timeline);
  file.close();
  if (!file) {
    throw IoError(
        str("[timeline] cannot write ", path, "; check that its folder exists and has room"));
  }
}

TimelineFile simulated_timeline(const Schedule& schedule, const std::string& name,
                                const std::vector<StageCost>& costs,
                                const std::vector<TransferCost>& transfers,
                                std::vector<std::vector<int64_t>> ranks) {
  if (ranks.empty()) {
    for (const int64_t worker : workers_of(schedule))
      ranks.push_back({worker});
  }
  TimelineFile file{.schedule_name = name,
                    .schedule = schedule,
                    .ranks = std::move(ranks),
                    .costs = costs.empty()
                                 ? std::vector<StageCost>(static_cast<size_t>(schedule.num_stages))
                                 : costs};
  for (const TimedAction& timed : simulate(schedule, costs, transfers).actions) {
    for (const int64_t rank : file.ranks[static_cast<size_t>(timed.action.stage)]) {
      file.events.push_back({.kind = Kind::kAction,
                             .rank = rank,
                             .start_us = timed.begin,
                             .duration_us = timed.end - timed.begin,
                             .action = timed.action,
                             .predicted_start_us = timed.begin,
                             .predicted_us = timed.end - timed.begin});
    }
  }
  return file;
}

}  // namespace flow::pipeline
