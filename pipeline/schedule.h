// Pipeline schedules as data: which worker does what for which micro-batch, in which order.
#pragma once

#include <compare>
#include <cstddef>
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

// Numbers the actions of F, B and W of all stages and micro-batches, from 0 to num_actions().
size_t num_actions(const Schedule& schedule);
size_t index_of(const Schedule& schedule, const Action& action);

// Throws InvalidArgument unless one worker does all actions of a stage, each stage does F, B and
// (all stages or none) W of every micro-batch exactly once, and the order can be carried out. The
// error names the actions that would wait for ever.
void validate(const Schedule& schedule);

}  // namespace flow::pipeline
