// What pages for a browser are made of.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tools/page/chart.h"
#include "tools/page/shell.h"

namespace flow::tools {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Page, TicksAreRoundNumbersAroundTheData) {
  EXPECT_EQ(nice_ticks(0, 10, 5), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(nice_ticks(1.3, 4.7, 4), (std::vector<double>{1, 2, 3, 4, 5}));
  EXPECT_EQ(nice_ticks(-30, 30, 3), (std::vector<double>{-40, -20, 0, 20, 40}));
  for (const double value : {0.0, 5.0, -2e-5}) {
    const std::vector<double> ticks = nice_ticks(value, value, 4);
    EXPECT_LT(ticks.front(), value);
    EXPECT_GT(ticks.back(), value);
  }
}

TEST(Page, ThinnedPointsAreMeansOfAllPoints) {
  std::vector<Point> points;
  for (int i = 0; i < 1000; ++i)
    points.push_back({static_cast<double>(i), i % 2 == 0 ? 1.0 : 3.0});
  const std::vector<Point> few = thinned(points, 10);
  ASSERT_EQ(few.size(), 10U);
  EXPECT_DOUBLE_EQ(few[0].x, 49.5);
  for (const Point& point : few)
    EXPECT_NEAR(point.y, 2, 1e-12);
  EXPECT_EQ(thinned(points, 1000).size(), 1000U);
}

TEST(Page, AChartHasItsCurvesLevelsAndLegend) {
  const std::string html =
      chart_html({.title = "a < b",
                  .x_name = "step",
                  .curves = {{.name = "one & two", .colour = 2, .points = {{0, 1}, {1, 2}}}},
                  .levels = {{"limit", 4}}});
  EXPECT_TRUE(has(html, "a &lt; b"));
  EXPECT_TRUE(has(html, "one &amp; two"));
  EXPECT_TRUE(has(html, "limit 4"));
  EXPECT_TRUE(has(html, "class=\"curve c2\" d=\"M0 1000L1000 666.7\"")) << html;  // of 1 to 4
}

TEST(Page, AChartLeavesOutWhatIsNoNumber) {
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  const std::string html = chart_html(
      {.title = "t", .x_name = "x", .curves = {{.points = {{0, nan}, {1, infinity}, {2, 5}}}}});
  EXPECT_FALSE(has(html, "nan"));
  EXPECT_FALSE(has(html, "inf"));
  EXPECT_TRUE(has(chart_html({.title = "t", .x_name = "x", .curves = {{.points = {{0, nan}}}}}),
                  "Nothing was recorded."));
}

TEST(Page, LoadsNothing) {
  const std::string html = page_html("<title>", "sub", "<p>body</p>");
  EXPECT_TRUE(has(html, "&lt;title&gt;"));
  EXPECT_TRUE(has(html, "default-src 'none'"));
  EXPECT_FALSE(has(html, "http://") || has(html, "https://") || has(html, "<script"));
}

}  // namespace
}  // namespace flow::tools
