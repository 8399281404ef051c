// Arrays in safetensors files, for callers of jobs, which are no ranks.
#pragma once

#include <map>
#include <string>

#include "nn/job/array.h"

namespace flow {

// As nn::load_safetensors and nn::save_safetensors.
std::map<std::string, Array> load_arrays(const std::string& path);
void save_arrays(const std::string& path, const std::map<std::string, Array>& arrays);

}  // namespace flow
