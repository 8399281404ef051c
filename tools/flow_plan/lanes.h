// The lanes of a page: what ranks do in predicted time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/program/program.h"
#include "tools/flow_plan/forecast.h"

namespace flow::tools {

enum class BarKind : uint8_t { kForward, kBackward, kWeight, kUpdate, kOther, kExchange };

// What a rank does for some time.
struct Bar {
  TimeSpan time;
  BarKind kind = BarKind::kOther;
  std::string name;   // may be shown inside of the bar
  std::string title;  // shown by the pointer
};

struct Lane {
  std::string name;   // "rank 0"
  std::string ranks;  // all ranks that do the same
  std::vector<Bar> work;
  std::vector<Bar> exchanges;
};

// A lane with more bars is drawn as columns that show the share of each kind of work.
inline constexpr size_t kMostBars = 8000;  // of all lanes together

// A rank's actions; of a step without stages, the steps of one module or line after each other.
Lane make_lane(const graph::Program& program, const RankForecast& rank);

// The lanes as HTML, with the zoom buttons and the legend.
std::string lanes_html(const std::vector<Lane>& lanes, double span_us);

}  // namespace flow::tools
