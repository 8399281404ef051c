#include "tools/flow_plan/program_lane.h"

#include <algorithm>
#include <utility>

#include "boxing/route.h"
#include "core/error.h"
#include "graph/program/buffer_uses.h"
#include "tools/flow_plan/step_names.h"
#include "tools/page/markup.h"

namespace flow::tools {

namespace {

using graph::Program;
using graph::Step;

bool is_exchange(const Step& step) {
  return step.route() != nullptr || step.as<graph::SendStep>() != nullptr ||
         step.as<graph::ReceiveStep>() != nullptr || step.as<graph::WaitStep>() != nullptr;
}

BarKind kind_of(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return BarKind::kForward;
    case Phase::kBackward:
      return BarKind::kBackward;
    case Phase::kUpdate:
      return BarKind::kUpdate;
  }
  return BarKind::kOther;
}

std::string exchange_text(const Program& program, const Exchange& exchange) {
  const Step& step = program.steps[exchange.step];
  std::string text(step.name());
  if (const boxing::Route* route = step.route()) {
    text = str(boxing::step_names(*route), " of ", route->dtype, ' ', route->shape, ", ",
               route->from.nd_sbp, " to ", route->to.nd_sbp, ", ",
               bytes_text(static_cast<int64_t>(sane(route->bytes()))));
  } else if (const auto* wait = step.as<graph::WaitStep>()) {
    const auto* receive = program.steps[wait->started].as<graph::ReceiveStep>();
    text = receive == nullptr ? "wait until a message has been received"
                              : str("wait for a message from rank ", receive->peer);
  }
  if (!step.module.empty()) text += " in " + step.module;
  if (step.line != 0) text += " at " + line_of(step);
  if (exchange.micro_batch >= 0) text += str(", micro-batch ", exchange.micro_batch);
  return str(text, ": ", time_text(exchange.time.end - exchange.time.begin));
}

std::string span_text(const TimeSpan& time) {
  return str(time_text(time.end - time.begin), " from ", time_text(time.begin));
}

// Adds a bar, or makes the last one longer if it belongs to the same thing.
void add_bar(std::vector<Bar>& bars, Bar bar, bool continues) {
  if (continues && !bars.empty()) {
    bars.back().time.end = std::max(bars.back().time.end, bar.time.end);
  } else {
    bars.push_back(std::move(bar));
  }
}

// The bars of a program with parts: the blocks of each part that compute.
void add_parts(const Program& program, const RankForecast& rank, std::vector<Bar>& bars) {
  const graph::BlockTimes times(program);
  size_t position = 0, part = 0, last_part = SIZE_MAX;
  for (size_t i = 0; i < program.runs.size(); ++i) {
    while (part + 1 < program.parts.size() && program.parts[part + 1].first_run <= i)
      ++part;
    const graph::BlockRun& run = program.runs[i];
    const graph::Block& block = program.block(run.block);
    const size_t count = times.num_runs(run.block) == 1 ? block.end_step - block.first_step : 1;
    const size_t first = position;
    position += count;
    const bool computes =
        std::any_of(program.steps.begin() + static_cast<std::ptrdiff_t>(block.first_step),
                    program.steps.begin() + static_cast<std::ptrdiff_t>(block.end_step),
                    [](const Step& step) { return !is_exchange(step); });
    if (count == 0 || !computes) continue;
    const std::string& name = program.parts.empty() ? std::string() : program.parts[part].name;
    const TimeSpan time{rank.positions[first].begin, rank.positions[position - 1].end};
    add_bar(bars, {time, kind_of_part(name), name, {}}, last_part == part);
    last_part = part;
  }
  for (Bar& bar : bars)
    bar.title = str(bar.name, ": ", span_text(bar.time));
}

// The bars of a program that runs once: its steps by module, or by line where there is none.
void add_steps(const Program& program, const RankForecast& rank, std::vector<Bar>& bars) {
  std::string last;
  for (size_t i = 0; i < program.steps.size() && i < rank.positions.size(); ++i) {
    const Step& step = program.steps[i];
    if (is_exchange(step)) continue;
    const Origin origin = origin_of(step);
    const BarKind kind = kind_of(step.phase);
    // What the compiler added belongs to what comes before it.
    const bool is_added = step.line == 0 && !bars.empty();
    const std::string key = str(static_cast<int>(kind), origin.module, ' ', origin.line);
    Bar bar{rank.positions[i], kind, origin.place(), {}};
    if (!is_added && key != last)
      bar.title = origin.module.empty() ? origin.line : str(origin.module, ", ", origin.line);
    add_bar(bars, std::move(bar), is_added || key == last);
    if (!is_added) last = key;
  }
  for (Bar& bar : bars)
    bar.title += ": " + span_text(bar.time);
}

}  // namespace

Lane make_lane(const Program& program, const RankForecast& rank) {
  Lane lane{.name = str("rank ", rank.rank), .ranks = {}, .work = {}, .exchanges = {}};
  if (program.runs.empty()) {
    add_steps(program, rank, lane.work);
  } else {
    add_parts(program, rank, lane.work);
  }
  for (const Exchange& exchange : rank.exchanges) {
    if (!(exchange.time.end > exchange.time.begin)) continue;
    lane.exchanges.push_back(
        {exchange.time, BarKind::kExchange, {}, exchange_text(program, exchange)});
  }
  return lane;
}

}  // namespace flow::tools
