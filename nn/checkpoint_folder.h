// Names in a folder of checkpoints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace flow::nn {

// Names of folders that are not committed begin with this.
inline constexpr const char* kTemporaryPrefix = ".saving-";

// Names of the folders of steps begin with this.
inline constexpr std::string_view kStepPrefix = "step-";

// The name of the folder of a step, for example "step-000000100".
std::string step_name(int64_t step);

}  // namespace flow::nn
