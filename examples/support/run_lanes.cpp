#include "support/run_lanes.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tools/flow_sim/commands.h"
#include "tools/flow_sim/timeline_sums.h"
#include "tools/page/lanes.h"
#include "tools/page/markup.h"

namespace examples {

namespace {

using flow::pipeline::ActionKind;
using flow::pipeline::TimelineEvent;
using flow::pipeline::TimelineFile;
using flow::sim::RankShares;
using flow::sim::TimelineSums;
using flow::tools::Bar;
using flow::tools::BarKind;
using flow::tools::Lane;
using flow::tools::number_cell;
using flow::tools::text_cell;
using flow::tools::time_text;
using Kind = TimelineEvent::Kind;

std::string stages_on(const TimelineFile& file, int64_t rank) {
  std::string text;
  for (size_t stage = 0; stage < file.ranks.size(); ++stage) {
    const std::vector<int64_t>& ranks = file.ranks[stage];
    if (std::find(ranks.begin(), ranks.end(), rank) == ranks.end()) continue;
    text += flow::str(text.empty() ? "stage " : ", ", stage);
  }
  return text;
}

BarKind kind_of(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return BarKind::kForward;
    case ActionKind::kBackward:
      return BarKind::kBackward;
    case ActionKind::kWeight:
      return BarKind::kWeight;
  }
  return BarKind::kOther;
}

std::string title_of(const TimelineEvent& event, const std::string& name) {
  std::string text =
      flow::str(name, ": ", time_text(event.duration_us), " from ", time_text(event.start_us));
  if (event.waiting_us > 0) text += flow::str(", ", time_text(event.waiting_us), " of it waiting");
  if (event.kind == Kind::kWait)
    text += flow::str(", rank ", event.peer, ", ", flow::tools::bytes_text(event.bytes));
  return text;
}

// The lanes of one run, whose time begins at 0, and its length.
struct RunLanes {
  std::vector<Lane> lanes;
  double span_us = 0;
};

RunLanes lanes_of(const TimelineFile& file, int64_t run) {
  double begin = 0;
  bool is_first = true;
  for (const TimelineEvent& event : file.events) {
    if (event.run != run) continue;
    begin = is_first ? event.start_us : std::min(begin, event.start_us);
    is_first = false;
  }
  std::map<int64_t, Lane> lanes;
  RunLanes result;
  for (TimelineEvent event : file.events) {
    if (event.run != run || event.kind == Kind::kTransfer || event.kind == Kind::kKernel) continue;
    event.start_us -= begin;
    Lane& lane = lanes[event.rank];
    const double end = event.start_us + event.duration_us;
    result.span_us = std::max(result.span_us, end);
    const bool is_action = event.kind == Kind::kAction;
    const std::string name = is_action                   ? to_string(event.action)
                             : event.kind == Kind::kWait ? "wait for a message"
                                                         : event.name;
    Bar bar{{event.start_us, end},
            is_action ? kind_of(event.action.kind) : BarKind::kOther,
            name,
            title_of(event, name)};
    if (event.kind == Kind::kWait) {
      bar.kind = BarKind::kExchange;
      lane.exchanges.push_back(std::move(bar));
    } else {
      lane.work.push_back(std::move(bar));
    }
  }
  for (auto& [rank, lane] : lanes) {
    lane.name = flow::str("rank ", rank);
    lane.ranks = stages_on(file, rank);
    result.lanes.push_back(std::move(lane));
  }
  return result;
}

std::string lanes_html(const std::optional<TimelineFile>& file, const std::string& what,
                       const std::string& explanation) {
  std::string html = flow::str("<h3>", what, ": bubble ", bubble_text(file), "</h3>\n");
  if (!file) return html + "<p class=\"note\">There is no timeline.</p>\n";
  int64_t last = 0;
  for (const TimelineEvent& event : file->events)
    last = std::max(last, event.run);
  const RunLanes run = lanes_of(*file, last / 2);
  return html + "<p class=\"note\">" + explanation + "</p>\n" +
         flow::tools::lanes_html(run.lanes, run.span_us,
                                 {.id = what, .label = what + " time of each rank"});
}

std::string shares_html(const TimelineFile& predicted, const TimelineFile& measured) {
  const TimelineSums a = flow::sim::sum_up(predicted), b = flow::sim::sum_up(measured);
  std::string html =
      "<h3>Where ranks wait</h3>\n<div class=\"wide\"><table>\n" +
      flow::tools::table_head({text_cell("rank"), text_cell("stage"), number_cell("bubble"),
                               number_cell("at the start"), number_cell("between actions"),
                               number_cell("at the end")});
  const auto pair = [](double left, double right) {
    return number_cell(flow::tools::share_text(left, 1) + " / " +
                       flow::tools::share_text(right, 1));
  };
  for (const auto& [rank, right] : b.ranks) {
    const auto found = a.ranks.find(rank);
    const RankShares left = found == a.ranks.end() ? RankShares{.busy = 1} : found->second;
    html += flow::tools::table_row(
        {text_cell(flow::str(rank)), text_cell(stages_on(measured, rank).substr(6)),
         pair(1 - left.busy, 1 - right.busy), pair(left.start, right.start),
         pair(left.between, right.between), pair(left.end, right.end)});
  }
  return html +
         "</table></div>\n<p class=\"note\">Predicted / measured, as shares of the time from "
         "the first action to the last.</p>\n";
}

// Says so if ranks had to share cores; several hosts are taken to be alike.
std::string cores_text(const RunTimelines& timelines) {
  std::set<int64_t> ranks;
  if (timelines.measured) {
    for (const TimelineEvent& event : timelines.measured->events)
      ranks.insert(event.rank);
  }
  const unsigned cores = std::thread::hardware_concurrency();
  if (cores == 0 || ranks.size() <= cores) return {};
  return flow::str(" This host has ", cores, cores == 1 ? " core" : " cores",
                   ", so its ranks also waited for each other's cores.");
}

std::optional<TimelineFile> read(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  return flow::sim::load_timeline(path);
}

}  // namespace

RunTimelines read_timelines(const std::string& predicted, const std::string& measured) {
  return {.predicted = read(predicted), .measured = read(measured)};
}

std::string bubble_text(const std::optional<TimelineFile>& timeline) {
  return timeline ? flow::tools::share_text(flow::sim::sum_up(*timeline).bubble, 1) : "-";
}

std::string pipeline_html(const RunTimelines& timelines) {
  std::string html = "<h2>Pipeline</h2>\n";
  html += lanes_html(timelines.measured, "Measured",
                     "One step of the training, after some steps that warm up. Narrow bars are "
                     "waits for messages." +
                         cores_text(timelines));
  html += lanes_html(timelines.predicted, "Predicted",
                     "The schedule with the times of the cost model, before the first step. The "
                     "model knows one core a rank and no other load.");
  if (timelines.predicted && timelines.measured &&
      timelines.predicted->schedule == timelines.measured->schedule) {
    html += shares_html(*timelines.predicted, *timelines.measured);
  }
  return html;
}

}  // namespace examples
