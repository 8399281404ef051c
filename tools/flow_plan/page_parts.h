// The part of a page about one rank.
#pragma once

#include <cstdint>
#include <string>

#include "graph/program/compiled_artifact.h"
#include "tools/flow_plan/forecast.h"

namespace flow::tools {

// Memory over time by owner, the peak and its owners, transfers, and time by line. `forecast` is
// the rank's; null if the plan was not simulated.
std::string rank_html(const graph::CompiledArtifact& step, int64_t rank,
                      const RankForecast* forecast);

}  // namespace flow::tools
