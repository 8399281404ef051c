// The lane of a rank: what it does in predicted time.
#pragma once

#include "graph/program/program.h"
#include "tools/flow_plan/forecast.h"
#include "tools/page/lanes.h"

namespace flow::tools {

// A rank's actions; of a step without stages, the steps of one module or line after each other.
Lane make_lane(const graph::Program& program, const RankForecast& rank);

}  // namespace flow::tools
