// Rules that generate schedules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "pipeline/schedule.h"

namespace flow::pipeline {

// All forwards, then all backwards (Huang et al. 2019, "GPipe").
Schedule gpipe(int64_t num_stages, int64_t num_micro_batches);

// The kind of schedule for a graph of any number of stages and micro-batches, as
// GraphConfig::set_schedule takes it.
struct ScheduleRule {
  enum class Kind : uint8_t { kGpipe, kOneFOneB, kInterleaved, kZbH1, kZbV, kTable };

  Kind kind = Kind::kOneFOneB;
  int64_t chunks = 1;      // stages per worker, for kInterleaved
  std::string table = {};  // for kTable
  friend bool operator==(const ScheduleRule&, const ScheduleRule&) = default;
};

// The rule of gpipe(stages, micro-batches).
ScheduleRule gpipe();
// One forward and one backward alternate once the pipeline is full. A stage keeps one micro-batch
// more than stages follow it (Narayanan et al. 2019, "PipeDream").
ScheduleRule one_f_one_b();
// The same with `chunks` stages per worker, w, w + workers, …: less waiting, more messages
// (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training"). The number of
// micro-batches is 1 or a multiple of the number of workers.
ScheduleRule interleaved(int64_t chunks);
// Backward is split, and gradients of weights fill the gaps. It takes as much memory as 1F1B (Qi et
// al. 2023, "Zero Bubble Pipeline Parallelism", ZB-H1).
ScheduleRule zb_h1();
// The same with two stages per worker, w and the w-th from the end, so that the backward of the
// last stage begins on the worker of the first stage's forward (ZB-V).
ScheduleRule zb_v();
// An order that the user gives as text, as parse_schedule reads it.
ScheduleRule schedule_table(std::string text);

// "gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-v", "table".
std::string to_string(const ScheduleRule& rule);
// Inverse of to_string, except for tables; throws InvalidArgument that lists the names.
ScheduleRule parse_schedule_rule(std::string_view text);

// Throws InvalidArgument if the rule has no schedule for these numbers.
Schedule make_schedule(const ScheduleRule& rule, int64_t num_stages, int64_t num_micro_batches);

}  // namespace flow::pipeline
