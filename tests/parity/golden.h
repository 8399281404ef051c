// Access to the golden data of tests/parity.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "nn/safetensors.h"

namespace flow::parity {

using Json = nlohmann::json;

Json read_json(const std::string& file);
nn::StateDict read_tensors(const std::string& file);

// The largest |a - b| of the finite elements over the largest finite |b|. Infinite if the sizes
// differ, or if one of the two has a NaN or an infinity where the other has another value.
double relative_distance(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace flow::parity
