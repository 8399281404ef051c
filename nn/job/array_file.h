// Reads and writes Arrays as safetensors files, for the callers of jobs, which are not ranks.
#pragma once

#include <map>
#include <string>

#include "nn/job/array.h"

namespace flow {

// The same as nn::load_safetensors and nn::save_safetensors, for Arrays.
std::map<std::string, Array> load_arrays(const std::string& path);
void save_arrays(const std::string& path, const std::map<std::string, Array>& arrays);

}  // namespace flow
