#include "tools/flow_plan/lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "boxing/route.h"
#include "core/error.h"
#include "graph/program/buffer_uses.h"
#include "tools/flow_plan/markup.h"
#include "tools/flow_plan/step_names.h"

namespace flow::tools {

namespace {

using graph::Program;
using graph::Step;

constexpr int kLaneHeight = 40;  // pixels: the work, and below it what the rank exchanges
constexpr int kWorkHeight = 22;
constexpr int kExchangeTop = 25;
constexpr int kExchangeHeight = 8;
constexpr int kAxisHeight = 22;
constexpr std::array kZooms = {1, 4, 16};
constexpr double kWidth = 1000;  // pixels that a lane is expected to have
constexpr double kLetter = 6.6;  // pixels of a letter in a bar

struct KindText {
  const char* css;
  const char* legend;
};

// By BarKind.
constexpr std::array<KindText, 6> kKinds = {{{"f", "forward (F)"},
                                             {"b", "backward (B)"},
                                             {"w", "gradients of weights (W)"},
                                             {"u", "update"},
                                             {"o", "before and after the micro-batches"},
                                             {"x", "collectives and messages, with waiting"}}};

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

// Of a part such as "1F0" or "after".
BarKind kind_of_part(const std::string& part) {
  const size_t letter = part.find_first_not_of("0123456789");
  if (letter == 0 || letter == std::string::npos) return BarKind::kOther;
  switch (part[letter]) {
    case 'F':
      return BarKind::kForward;
    case 'B':
      return BarKind::kBackward;
    case 'W':
      return BarKind::kWeight;
    default:
      return BarKind::kOther;
  }
}

std::string exchange_text(const Program& program, const Exchange& exchange) {
  const Step& step = program.steps[exchange.step];
  std::string text(step.name());
  if (const boxing::Route* route = step.route()) {
    text = str(boxing::step_names(*route), " of ", route->dtype, ' ', route->shape, ", ",
               route->from.nd_sbp, " to ", route->to.nd_sbp, ", ",
               bytes_text(static_cast<int64_t>(sane(route->bytes()))));
  } else if (const auto* receive = step.as<graph::ReceiveStep>()) {
    text = str("wait for a message from rank ", receive->peer);
  } else if (step.as<graph::WaitStep>() != nullptr) {
    text = "wait until a message has been received";
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

// The smallest zoom at which the text fits into the bar; 0: none.
int zoom_for(double share, size_t letters) {
  for (const int zoom : kZooms) {
    if (share * kWidth * zoom >= kLetter * static_cast<double>(letters) + 4) return zoom;
  }
  return 0;
}

std::string label_of(const Bar& bar, double share, double x, int y) {
  std::string text = bar.name;
  // "1F0" is shown as F0 in a bar; of a path, the last part.
  if (kind_of_part(text) != BarKind::kOther)
    text = text.substr(text.find_first_not_of("0123456789"));
  const size_t dot = text.find_last_of('.');
  const bool is_path = dot != std::string::npos && text.find(':') == std::string::npos;
  if (is_path && zoom_for(share, text.size()) != 1) text = text.substr(dot + 1);
  const int zoom = zoom_for(share, text.size());
  if (zoom == 0 || text.empty()) return {};
  return str("<text class=\"l l", zoom, "\" x=\"", percent(x + share / 2), "\" y=\"", y + 15, "\">",
             escaped(text), "</text>");
}

std::string rect(double x, double share, double y, double height, BarKind kind) {
  return str("<rect class=\"", kKinds[static_cast<size_t>(kind)].css, "\" x=\"", percent(x),
             "\" width=\"", percent(share), "\" y=\"", y, "\" height=\"", height, '"');
}

std::string bars_html(const std::vector<Bar>& bars, double span_us, int y, int height,
                      bool has_labels) {
  std::string html;
  for (const Bar& bar : bars) {
    const double x = bar.time.begin / span_us;
    const double share = (bar.time.end - bar.time.begin) / span_us;
    html += rect(x, share, y, height, bar.kind);
    html += str("><title>", escaped(bar.title), "</title></rect>");
    if (has_labels) html += label_of(bar, share, x, y);
    html += '\n';
  }
  return html;
}

// Columns of equal time; in each, kinds of work by their share of the time.
std::string columns_html(const std::vector<Bar>& bars, double span_us, size_t num_columns, int y,
                         int height) {
  using Shares = std::array<double, kKinds.size()>;
  std::vector<Shares> columns(num_columns, Shares{});
  const double wide = span_us / static_cast<double>(num_columns);
  for (const Bar& bar : bars) {
    auto column = static_cast<size_t>(std::max(bar.time.begin / wide, 0.0));
    for (; column < num_columns; ++column) {
      const double begin = static_cast<double>(column) * wide;
      if (begin >= bar.time.end) break;
      const double inside = std::min(bar.time.end, begin + wide) - std::max(bar.time.begin, begin);
      columns[column][static_cast<size_t>(bar.kind)] += std::max(inside, 0.0) / wide;
    }
  }
  std::string html;
  for (size_t i = 0; i < num_columns; ++i) {
    double below = y + height;
    for (size_t kind = 0; kind < kKinds.size(); ++kind) {
      const double share = std::min(columns[i][kind], 1.0);
      if (share < 0.005) continue;
      const double tall = share * height;
      below -= tall;
      const auto count = static_cast<double>(num_columns);
      html += rect(static_cast<double>(i) / count, 1 / count, std::round(below * 100) / 100,
                   std::round(tall * 100) / 100, static_cast<BarKind>(kind));
      html += str("><title>", kKinds[kind].legend, ": ", share_text(share, 1), " of ",
                  time_text(wide), "</title></rect>\n");
    }
  }
  return html;
}

std::string axis_html(double span_us, size_t num_lanes) {
  constexpr int kTicks = 5;  // at the smallest zoom
  const auto top = static_cast<int>(num_lanes) * kLaneHeight;
  std::string html;
  const int finest = kZooms.back() * kTicks;
  for (int i = 0; i <= finest; ++i) {
    const int zoom = i % kZooms[2] == 0 ? 1 : (i % kZooms[1] == 0 ? kZooms[1] : kZooms[2]);
    const double x = static_cast<double>(i) / finest;
    const char* anchor = i == 0 ? "start" : (i == finest ? "end" : "middle");
    html += str("<line class=\"tick l", zoom, "\" x1=\"", percent(x), "\" x2=\"", percent(x),
                "\" y1=\"0\" y2=\"", top + 4, "\"/><text class=\"a l", zoom, "\" x=\"", percent(x),
                "\" y=\"", top + 17, "\" text-anchor=\"", anchor, "\">", time_text(x * span_us),
                "</text>\n");
  }
  return html;
}

std::string legend_html(const std::vector<Lane>& lanes) {
  std::array<bool, kKinds.size()> is_used{};
  for (const Lane& lane : lanes) {
    for (const auto* bars : {&lane.work, &lane.exchanges}) {
      for (const Bar& bar : *bars)
        is_used[static_cast<size_t>(bar.kind)] = true;
    }
  }
  std::string html = "<p class=\"legend\">";
  for (size_t i = 0; i < kKinds.size(); ++i) {
    if (is_used[i])
      html += str("<span><i class=\"", kKinds[i].css, "\"></i>", kKinds[i].legend, "</span> ");
  }
  return html + "</p>\n";
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

std::string lanes_html(const std::vector<Lane>& lanes, double span_us) {
  size_t num_bars = 0;
  for (const Lane& lane : lanes)
    num_bars += lane.work.size() + lane.exchanges.size();
  const bool is_summed = num_bars > kMostBars;
  const size_t num_columns = std::clamp<size_t>(2 * kMostBars / (2 * lanes.size()), 60, 400);
  std::string html = legend_html(lanes);
  if (is_summed) {
    html += str("<p class=\"note\">These are ", num_bars, " bars, and at most ", kMostBars,
                " are drawn one by one. Each column here is ",
                time_text(span_us / static_cast<double>(num_columns)),
                " wide, and the height of a colour is its share of this time. "
                "<code>flow-plan page --rank R</code> draws one rank.</p>\n");
  }
  html += "<div class=\"zooms\">";
  for (const int zoom : kZooms) {
    html +=
        str("<input type=\"radio\" name=\"zoom\" id=\"z", zoom, "\"", zoom == 1 ? " checked" : "",
            "><label for=\"z", zoom, "\">", zoom, "&times;</label>");
  }
  html += "<div class=\"lanes\"><div class=\"names\">\n";
  for (const Lane& lane : lanes) {
    html +=
        str("<div><b>", escaped(lane.name), "</b><small>", escaped(lane.ranks), "</small></div>\n");
  }
  const size_t height = lanes.size() * kLaneHeight + kAxisHeight;
  html += str("</div><div class=\"scroll\"><svg class=\"time\" height=\"", height,
              "\" role=\"img\" aria-label=\"predicted time of each rank\">\n");
  html += axis_html(span_us, lanes.size());
  int y = 4;
  for (const Lane& lane : lanes) {
    if (is_summed) {
      html += columns_html(lane.work, span_us, num_columns, y, kWorkHeight);
      html += columns_html(lane.exchanges, span_us, num_columns, y + kExchangeTop, kExchangeHeight);
    } else {
      html += bars_html(lane.work, span_us, y, kWorkHeight, true);
      html += bars_html(lane.exchanges, span_us, y + kExchangeTop, kExchangeHeight, false);
    }
    y += kLaneHeight;
  }
  return html + "</svg></div></div></div>\n";
}

}  // namespace flow::tools
