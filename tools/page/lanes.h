// Lanes of a page: what ranks do in time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace flow::tools {

// An interval of time, in microseconds from the start of the step.
struct TimeSpan {
  double begin = 0;
  double end = 0;
};

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

// Of a part of a pipeline's step such as "1F0" or "after".
BarKind kind_of_part(const std::string& part);

struct LanesOptions {
  std::string id;         // tells the lanes of a page apart
  std::string label;      // what is drawn
  std::string hint = {};  // HTML: what draws fewer bars; shown where there are too many
};

// The lanes as HTML, with the zoom buttons and the legend.
std::string lanes_html(const std::vector<Lane>& lanes, double span_us, const LanesOptions& options);

}  // namespace flow::tools
