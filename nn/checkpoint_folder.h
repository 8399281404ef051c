// Names in a folder of checkpoints.
#pragma once

#include <cstdint>
#include <string>

namespace flow::nn {

// Names of folders that are not committed begin with this.
inline constexpr const char* kTemporaryPrefix = ".saving-";

// The name of the folder of a step, for example "step-000000100".
std::string step_name(int64_t step);

}  // namespace flow::nn
