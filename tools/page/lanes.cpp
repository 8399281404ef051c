#include "tools/page/lanes.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "tools/page/markup.h"

namespace flow::tools {

namespace {

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

std::string lanes_html(const std::vector<Lane>& lanes, double span_us,
                       const LanesOptions& options) {
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
                " wide, and the height of a colour is its share of this time. ", options.hint,
                "</p>\n");
  }
  html += "<div class=\"zooms\">";
  for (const int zoom : kZooms) {
    html += str("<input type=\"radio\" class=\"z", zoom, "\" name=\"zoom-", options.id, "\" id=\"z",
                zoom, '-', options.id, "\"", zoom == 1 ? " checked" : "", "><label for=\"z", zoom,
                '-', options.id, "\">", zoom, "&times;</label>");
  }
  html += "<div class=\"lanes\"><div class=\"names\">\n";
  for (const Lane& lane : lanes) {
    html +=
        str("<div><b>", escaped(lane.name), "</b><small>", escaped(lane.ranks), "</small></div>\n");
  }
  const size_t height = lanes.size() * kLaneHeight + kAxisHeight;
  html += str("</div><div class=\"scroll\"><svg class=\"time\" height=\"", height,
              "\" role=\"img\" aria-label=\"", escaped(options.label), "\">\n");
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
