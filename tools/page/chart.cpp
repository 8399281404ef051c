#include "tools/page/chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

#include "core/error.h"
#include "tools/page/markup.h"

namespace flow::tools {

namespace {

constexpr size_t kMostPoints = 800;  // of a curve; a chart is about as many pixels wide
constexpr int kTicks = 5;            // of the y axis
constexpr int kXTicks = 6;

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }

  bool is_empty() const { return !(low <= high); }

  // Where a value is, from 0 to 1.
  double place(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

std::string number(double value) {
  std::array<char, 32> text{};
  const char* format = "%.4g";
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e15) format = "%.0f";
  std::snprintf(text.data(), text.size(), format, value == 0 ? 0.0 : value);
  return text.data();
}

std::vector<Point> finite(const std::vector<Point>& points) {
  std::vector<Point> all;
  for (const Point& point : points) {
    if (std::isfinite(point.x) && std::isfinite(point.y)) all.push_back(point);
  }
  return thinned(all, kMostPoints);
}

// Coordinates in a drawing of 1000 x 1000, with one decimal.
std::string coordinates(const Range& x, const Range& y, const Point& point) {
  const auto rounded = [](double share) { return std::round(share * 10000) / 10; };
  return str(rounded(x.place(point.x)), ' ', rounded(1 - y.place(point.y)));
}

std::string curve_html(const Curve& curve, const Range& x, const Range& y) {
  std::string path;
  for (const Point& point : curve.points)
    path += str(path.empty() ? 'M' : 'L', coordinates(x, y, point));
  return str("<path class=\"curve c", curve.colour, curve.is_faint ? " faint" : "", "\" d=\"", path,
             "\"/>\n");
}

std::string dots_html(const Curve& curve, const Range& x, const Range& y) {
  std::string html;
  for (const Point& point : curve.points) {
    html += str("<circle class=\"c", curve.colour, "\" r=\"3\" cx=\"", percent(x.place(point.x)),
                "\" cy=\"", percent(1 - y.place(point.y)), "\"><title>", escaped(curve.name), ' ',
                number(point.y), " at ", number(point.x), "</title></circle>\n");
  }
  return html;
}

std::string axes_html(const Range& x, const std::vector<double>& x_ticks, const Range& y,
                      const std::vector<double>& y_ticks, const std::string& x_name) {
  std::string html;
  for (const double tick : y_ticks) {
    const std::string place = percent(1 - y.place(tick));
    html += str("<line class=\"tick\" x1=\"0\" x2=\"100%\" y1=\"", place, "\" y2=\"", place,
                "\"/><text class=\"a\" x=\"-8\" text-anchor=\"end\" y=\"", place, "\" dy=\"4\">",
                number(tick), "</text>\n");
  }
  for (const double tick : x_ticks) {
    if (tick < x.low || tick > x.high) continue;
    const double place = x.place(tick);
    html += str("<text class=\"a\" text-anchor=\"middle\" x=\"", percent(place),
                "\" y=\"100%\" dy=\"17\">", number(tick), "</text>\n");
  }
  return html + str("<text class=\"a\" text-anchor=\"end\" x=\"100%\" y=\"100%\" dy=\"32\">",
                    escaped(x_name), "</text>\n");
}

std::string legend_html(const Chart& chart) {
  std::string html = "<p class=\"legend\">";
  for (const Curve& curve : chart.curves) {
    if (curve.name.empty()) continue;
    html += str("<span><i class=\"m m", curve.colour, curve.is_faint ? " faint" : "", "\"></i>",
                escaped(curve.name), "</span> ");
  }
  return html + "</p>\n";
}

}  // namespace

std::vector<double> nice_ticks(double low, double high, int count) {
  if (!(high > low)) {
    const double around = low == 0 ? 1 : std::abs(low) / 2;
    low -= around;
    high += around;
  }
  const double rough = (high - low) / std::max(count, 1);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  const double step = power * (lead <= 1 ? 1 : lead <= 2 ? 2 : lead <= 5 ? 5 : 10);
  std::vector<double> ticks;
  const auto first = static_cast<int64_t>(std::floor(low / step + 1e-9));
  const auto last = static_cast<int64_t>(std::ceil(high / step - 1e-9));
  for (int64_t i = first; i <= last; ++i)
    ticks.push_back(static_cast<double>(i) * step);
  return ticks;
}

std::vector<Point> thinned(const std::vector<Point>& points, size_t most) {
  if (points.size() <= most || most == 0) return points;
  std::vector<Point> means;
  for (size_t i = 0; i < most; ++i) {
    const size_t begin = i * points.size() / most, end = (i + 1) * points.size() / most;
    Point mean;
    for (size_t j = begin; j < end; ++j) {
      mean.x += points[j].x / static_cast<double>(end - begin);
      mean.y += points[j].y / static_cast<double>(end - begin);
    }
    means.push_back(mean);
  }
  return means;
}

std::string chart_html(const Chart& chart) {
  Range x, y;
  std::vector<Curve> curves = chart.curves;
  for (Curve& curve : curves) {
    curve.points = finite(curve.points);
    for (const Point& point : curve.points) {
      x.add(point.x);
      y.add(point.y);
    }
  }
  std::string html = str("<div class=\"chart\"><h3>", escaped(chart.title), "</h3>\n");
  if (x.is_empty()) return html + "<p class=\"note\">Nothing was recorded.</p></div>\n";
  for (const Level& level : chart.levels)
    y.add(level.y);
  if (chart.from_zero) y.add(0);
  const std::vector<double> y_ticks = nice_ticks(y.low, y.high, kTicks);
  y = {y_ticks.front(), y_ticks.back()};
  std::stable_sort(curves.begin(), curves.end(),
                   [](const Curve& a, const Curve& b) { return a.is_faint > b.is_faint; });
  html += legend_html(chart) + "<div class=\"plot\"><svg class=\"over\">\n" +
          axes_html(x, nice_ticks(x.low, x.high, kXTicks), y, y_ticks, chart.x_name) +
          "</svg><svg class=\"over\" viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" "
          "role=\"img\" aria-label=\"" +
          escaped(chart.title) + "\">\n";
  for (const Curve& curve : curves)
    html += curve_html(curve, x, y);
  html += "</svg><svg class=\"over\">\n";
  for (const Curve& curve : curves) {
    if (curve.has_dots || curve.points.size() == 1) html += dots_html(curve, x, y);
  }
  for (const Level& level : chart.levels) {
    const std::string place = percent(1 - y.place(level.y));
    html += str("<line class=\"level\" x1=\"0\" x2=\"100%\" y1=\"", place, "\" y2=\"", place,
                "\"/><text class=\"level\" text-anchor=\"end\" x=\"100%\" dx=\"-4\" y=\"", place,
                "\" dy=\"-4\">", escaped(level.name), ' ', number(level.y), "</text>\n");
  }
  return html + "</svg></div></div>\n";
}

}  // namespace flow::tools
