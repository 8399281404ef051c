// The state of training functions in checkpoints: what they need besides the variables to go on.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "nn/module.h"

namespace flow::job {

struct FunctionState {
  std::vector<std::string> variables = {};  // that the optimizer updates, in its order
  nn::StateDict optimizer = {};
  nn::StateDict schedule = {};  // empty: the function has no schedule
};

// True if an entry of a checkpoint with this name belongs to a function.
bool is_of_function(std::string_view name);

// Adds the entries of training function `number` to a checkpoint. Values of any layout become
// whole, so all ranks must call it.
void add_function(nn::StateDict& checkpoint, size_t number, const FunctionState& state);

// The functions of a checkpoint in ascending order of their numbers. `entries` are those of
// functions.
std::vector<FunctionState> read_functions(const nn::StateDict& entries);

// The state in `saved` of each training function of the program, which are given by the variables
// that they update. Functions of the same variables are told apart by their order. Throws
// InvalidArgument if the numbers of functions of the same variables differ.
std::vector<const FunctionState*> match_functions(
    std::span<const FunctionState> saved, std::span<const std::vector<std::string>> functions);

}  // namespace flow::job
