// A page about a plan, for a browser.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graph/program/compiled_artifact.h"

namespace flow::tools {

struct PageOptions {
  std::string name;                  // of the plan, for the title
  std::optional<int64_t> rank = {};  // draws this rank only
};

// One HTML file without scripts and without anything from elsewhere: predicted lanes in time,
// memory over time by owner, transfers, time by line, passes. Ranks that run the same program are
// described once; of more than kMostClasses programs, the first ones are described. Throws
// InvalidArgument if the plan does not have the rank.
std::string page_of(const graph::CompiledArtifact& step, const PageOptions& options);

inline constexpr size_t kMostClasses = 64;

}  // namespace flow::tools
