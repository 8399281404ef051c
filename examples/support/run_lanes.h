// The pipeline of a run as HTML: what each rank did when, as predicted and as measured.
#pragma once

#include <optional>
#include <string>

#include "pipeline/timeline_file.h"

namespace examples {

struct RunTimelines {
  std::optional<flow::pipeline::TimelineFile> predicted, measured;
};

// Reads those of the two files that exist. Throws flow::BadFile for one that is no timeline.
RunTimelines read_timelines(const std::string& predicted, const std::string& measured);

// The share of all ranks' time in which they wait, as text: "12.1 %", or "-" without a timeline.
std::string bubble_text(const std::optional<flow::pipeline::TimelineFile>& timeline);

// Both lanes, each with its bubble, and a table of the ranks' waiting.
std::string pipeline_html(const RunTimelines& timelines);

}  // namespace examples
