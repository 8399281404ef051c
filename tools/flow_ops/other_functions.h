// Calls of public functions that the golden cases of the parity test leave out, because they draw
// random numbers, make tensors or have no counterpart in PyTorch.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace flow::tools {

// Names of public functions, each with a call of it.
const std::vector<std::pair<std::string, std::function<void()>>>& other_functions();

}  // namespace flow::tools
