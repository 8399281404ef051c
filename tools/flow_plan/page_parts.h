// The parts of a page about one rank.
#pragma once

#include <cstdint>
#include <string>

#include "graph/program/program.h"
#include "tools/flow_plan/forecast.h"

namespace flow::tools {

// Memory over time by owner, and the owners at the peak. `forecast` is the rank's; null if the plan
// was not simulated.
std::string memory_html(const graph::Program& program, const RankForecast* forecast);
// What the rank, which is the program's or one of its class, exchanges in a run, by line.
std::string transfers_html(const graph::Program& program, int64_t rank);
// The predicted time of kernels by op, module and line.
std::string lines_html(const graph::Program& program);

}  // namespace flow::tools
