// Charts of curves over one axis.
#pragma once

#include <string>
#include <vector>

namespace flow::tools {

struct Point {
  double x = 0, y = 0;
};

struct Curve {
  std::string name = {};           // in the legend; empty: not there
  int colour = 0;                  // of the style's colours, 0 to 6
  std::vector<Point> points = {};  // by x; those with a y that is not finite are left out
  bool is_faint = false;           // drawn thin, behind the others
  bool has_dots = false;           // each point has a dot
};

// A horizontal line to compare the curves with.
struct Level {
  std::string name;
  double y = 0;
};

struct Chart {
  std::string title;   // with the unit of y
  std::string x_name;  // below the axis
  std::vector<Curve> curves = {};
  std::vector<Level> levels = {};
  bool from_zero = false;  // the y axis begins at 0
};

// Multiples of 1, 2 or 5 times a power of ten, about `count` of them, the first at or below `low`
// and the last at or above `high`. Requires finite bounds and low <= high.
std::vector<double> nice_ticks(double low, double high, int count);

// At most `most` points: means of the y of about equally many neighbours, at the middle of their x.
std::vector<Point> thinned(const std::vector<Point>& points, size_t most);

// The chart as HTML. A chart without points is a note that says so.
std::string chart_html(const Chart& chart);

}  // namespace flow::tools
