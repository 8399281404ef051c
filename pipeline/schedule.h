// Pipeline schedules as data: which worker does what for which micro-batch, in which order.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flow::pipeline {

// F: forward; B: backward; W: the gradients of weights, if they are scheduled separately from B,
// which then computes those of inputs only.
enum class ActionKind : uint8_t { kForward, kBackward, kWeight };

// Prints as <stage><F|B|W><micro-batch>: 1F0.
struct Action {
  int64_t stage = 0;
  ActionKind kind = ActionKind::kForward;
  int64_t micro_batch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the zero that the compiler compares with
  friend auto operator<=>(const Action&, const Action&) = default;
};

// The order of actions of each worker. A worker is the ranks that hold its stages. The text has one
// line for each worker: "0F0 0F1 0B0 0B1".
struct Schedule {
  int64_t num_stages = 0;
  int64_t num_micro_batches = 0;
  std::vector<std::vector<Action>> actions;  // by worker

  // True if weight gradients are scheduled separately.
  bool has_weights() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

std::string to_string(const Action& action);
std::string to_string(const Schedule& schedule);
// Inverse of to_string; throws InvalidArgument for a word that is no action.
Action parse_action(std::string_view word);
// Inverse of to_string; throws InvalidArgument naming the word. The result is validated.
Schedule parse_schedule(std::string_view text);

// The actions that must end before this one: for F that of the previous stage, for B its own F and
// the B of the next stage, for W its own B.
std::vector<Action> needs_of(const Schedule& schedule, const Action& action);

// Throws InvalidArgument unless one worker does all actions of a stage, each stage does F, B and
// (all stages or none) W of every micro-batch exactly once, and the order can be carried out. The
// error names the actions that would wait for ever.
void validate(const Schedule& schedule);

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
