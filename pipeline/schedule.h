// Pipeline schedules as data: which stage works on which micro-batch, in which order.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flow::pipeline {

// F: forward; B: backward with respect to inputs and, unless W is scheduled apart, weights.
enum class ActionKind : uint8_t { kForward, kBackward };

// Prints as <stage><F|B><micro-batch>: 1F0.
struct Action {
  int64_t stage = 0;
  ActionKind kind = ActionKind::kForward;
  int64_t micro_batch = 0;
  friend auto operator<=>(const Action&, const Action&) = default;
};

// The order of actions of each stage. Its text has a line a stage: "0F0 0F1 0B0 0B1".
struct Schedule {
  int64_t num_stages = 0;
  int64_t num_micro_batches = 0;
  std::vector<std::vector<Action>> actions;  // by stage
  friend bool operator==(const Schedule&, const Schedule&) = default;
};

std::string to_string(const Action& action);
std::string to_string(const Schedule& schedule);
// Inverse of to_string; throws InvalidArgument naming the word. The result is validated.
Schedule parse_schedule(std::string_view text);

// Throws InvalidArgument unless every stage does F and B of every micro-batch exactly once, in an
// order that can be carried out: F waits for F of the stage before, B for its own F and for B of
// the stage after. Names the actions that would wait for ever.
void validate(const Schedule& schedule);

// All forwards, then all backwards (Huang et al. 2019, "GPipe").
Schedule gpipe(int64_t num_stages, int64_t num_micro_batches);

}  // namespace flow::pipeline
