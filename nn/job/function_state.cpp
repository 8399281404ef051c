#include "nn/job/function_state.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/tensor.h"
#include "ops/creation/creation.h"

namespace flow::job {

namespace {

// Entries are named function-NUMBER-PART-NAME. The entries of kUpdates are the positions of
// variables in the optimizer.
constexpr std::string_view kFunction = "function-";
constexpr std::string_view kOptimizer = "-optimizer-";
constexpr std::string_view kSchedule = "-schedule-";
constexpr std::string_view kUpdates = "-updates-";

struct EntryName {
  int64_t function = 0;
  std::string_view part;
  std::string name;
};

std::optional<EntryName> parse_entry(std::string_view text) {
  if (!text.starts_with(kFunction)) return std::nullopt;
  text.remove_prefix(kFunction.size());
  EntryName entry;
  const auto [end, status] =
      std::from_chars(text.data(), text.data() + text.size(), entry.function);
  if (status != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  for (const std::string_view part : {kOptimizer, kSchedule, kUpdates}) {
    if (!text.starts_with(part)) continue;
    entry.part = part;
    entry.name = text.substr(part.size());
    return entry;
  }
  return std::nullopt;
}

std::string list_of(const std::vector<std::string>& variables) {
  std::string text;
  for (const std::string& variable : variables)
    text += (text.empty() ? "" : ", ") + variable;
  return text;
}

}  // namespace

bool is_of_function(std::string_view name) {
  return parse_entry(name).has_value();
}

void add_function(nn::StateDict& checkpoint, size_t number, const FunctionState& state) {
  const auto key = [&](std::string_view part, const std::string& name) {
    return str(kFunction, number, part, name);
  };
  const auto add = [&](std::string_view part, const nn::StateDict& values) {
    for (const auto& [name, value] : values)
      checkpoint.emplace(key(part, name), value.full());
  };
  for (size_t i = 0; i < state.variables.size(); ++i)
    checkpoint.emplace(key(kUpdates, state.variables[i]),
                       full({}, static_cast<int64_t>(i), {.dtype = int64}));
  add(kOptimizer, state.optimizer);
  add(kSchedule, state.schedule);
}

std::vector<FunctionState> read_functions(const nn::StateDict& entries) {
  struct Read {
    FunctionState state;
    std::map<int64_t, std::string> variables;  // by position
  };

  std::map<int64_t, Read> functions;
  for (const auto& [name, value] : entries) {
    const std::optional<EntryName> entry = parse_entry(name);
    FLOW_ASSERT(entry.has_value());
    Read& function = functions[entry->function];
    if (entry->part == kUpdates) {
      function.variables.emplace(value.item<int64_t>(), entry->name);
    } else {
      const bool is_of_optimizer = entry->part == kOptimizer;
      (is_of_optimizer ? function.state.optimizer : function.state.schedule)
          .emplace(entry->name, value);
    }
  }
  std::vector<FunctionState> states;
  for (auto& [number, function] : functions) {
    for (auto& [position, variable] : function.variables)
      function.state.variables.push_back(std::move(variable));
    states.push_back(std::move(function.state));
  }
  return states;
}

std::vector<const FunctionState*> match_functions(
    std::span<const FunctionState> saved, std::span<const std::vector<std::string>> functions) {
  std::vector<const FunctionState*> matches;
  for (size_t i = 0; i < functions.size(); ++i) {
    const std::vector<std::string>& variables = functions[i];
    std::vector<const FunctionState*> candidates;
    for (const FunctionState& state : saved) {
      if (state.variables == variables) candidates.push_back(&state);
    }
    const auto own = std::count(functions.begin(), functions.end(), variables);
    if (own != static_cast<ptrdiff_t>(candidates.size())) {
      throw InvalidArgument(
          str("[job] the file cannot continue training function ", i, ", which updates ",
              list_of(variables), ": it has the state of ", candidates.size(),
              " functions that update these variables, and ", own,
              " of the functions that exist do; define the same training functions as the program "
              "that saved the file, in the same order"));
    }
    const auto before =
        std::count(functions.begin(), functions.begin() + static_cast<ptrdiff_t>(i), variables);
    matches.push_back(candidates[static_cast<size_t>(before)]);
  }
  return matches;
}

}  // namespace flow::job
