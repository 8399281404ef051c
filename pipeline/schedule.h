// Pipeline schedules as data: which worker does what for which micro-batch, in which order.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flow::pipeline {

// F: forward; B: backward; W: the gradients of weights, where they are scheduled apart from B,
// which then makes those of inputs only.
enum class ActionKind : uint8_t { kForward, kBackward, kWeight };

// Prints as <stage><F|B|W><micro-batch>: 1F0.
struct Action {
  int64_t stage = 0;
  ActionKind kind = ActionKind::kForward;
  int64_t micro_batch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): the zero that the compiler compares with
  friend auto operator<=>(const Action&, const Action&) = default;
};

// The order of actions of each worker: the ranks that hold its stages. Its text has a line a
// worker: "0F0 0F1 0B0 0B1".
struct Schedule {
  int64_t num_stages = 0;
  int64_t num_micro_batches = 0;
  std::vector<std::vector<Action>> actions;  // by worker

  // Whether weight gradients are scheduled apart.
  bool has_weights() const;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

std::string to_string(const Action& action);
std::string to_string(const Schedule& schedule);
// Inverse of to_string; throws InvalidArgument for another word.
Action parse_action(std::string_view word);
// Inverse of to_string; throws InvalidArgument naming the word. The result is validated.
Schedule parse_schedule(std::string_view text);

// The actions that one must follow: F that of the stage before, B its own F and the B of the stage
// after, W its own B.
std::vector<Action> needs_of(const Schedule& schedule, const Action& action);

// Throws InvalidArgument unless all actions of a stage are one worker's, it does F, B and (all
// stages or none) W of every micro-batch exactly once, and the order can be carried out. Names the
// actions that would wait for ever.
void validate(const Schedule& schedule);

// All forwards, then all backwards (Huang et al. 2019, "GPipe").
Schedule gpipe(int64_t num_stages, int64_t num_micro_batches);

// Which schedule a graph is to have, whatever its numbers of stages and micro-batches are; what
// GraphConfig::set_schedule takes.
struct ScheduleRule {
  enum class Kind : uint8_t { kGpipe, kOneFOneB, kInterleaved, kZbH1, kZbV, kTable };

  Kind kind = Kind::kOneFOneB;
  int64_t chunks = 1;      // stages of a worker, of kInterleaved
  std::string table = {};  // of kTable
  friend bool operator==(const ScheduleRule&, const ScheduleRule&) = default;
};

// As gpipe(stages, micro-batches).
ScheduleRule gpipe();
// One forward and one backward in turn, once the pipeline is full: a stage keeps as many
// micro-batches as stages follow it, and itself (Narayanan et al. 2019, "PipeDream").
ScheduleRule one_f_one_b();
// The same where each worker has `chunks` stages, w, w + workers, …: less waiting, more messages
// (Narayanan et al. 2021, "Efficient Large-Scale Language Model Training"). The number of
// micro-batches is 1 or a multiple of that of workers.
ScheduleRule interleaved(int64_t chunks);
// Backward is split, and gradients of weights fill the gaps; as much memory as 1F1B (Qi et al.
// 2023, "Zero Bubble Pipeline Parallelism", ZB-H1).
ScheduleRule zb_h1();
// The same with two stages a worker, w and the w-th from the end, so that the last stage's backward
// begins where the first's forward does (ZB-V).
ScheduleRule zb_v();
// An order of the user's, as parse_schedule reads it.
ScheduleRule schedule_table(std::string text);

// "gpipe", "1f1b", "interleaved:2", "zb-h1", "zb-v", "table".
std::string to_string(const ScheduleRule& rule);
// Inverse of to_string, but for tables; throws InvalidArgument that lists the names.
ScheduleRule parse_schedule_rule(std::string_view text);

// Throws InvalidArgument where the rule does not go with the numbers.
Schedule make_schedule(const ScheduleRule& rule, int64_t num_stages, int64_t num_micro_batches);

}  // namespace flow::pipeline
