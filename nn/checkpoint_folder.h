// Names inside a folder of checkpoints.
#pragma once

#include <cstdint>
#include <string>

namespace flow::nn {

// What is not committed begins with this.
inline constexpr const char* kTemporaryPrefix = ".saving-";

// "step-000000100".
std::string step_name(int64_t step);

}  // namespace flow::nn
