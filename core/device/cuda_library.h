// Loads NVIDIA's libraries at their first use. Linked, they would delay the start of every program.
// In builds with FLOW_CUDA=EMULATED, tests/support/cuda_emulator defines these functions.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace flow::cuda {

// Opens the first of `names` that is found, such as libcudnn.so.9: in the folders of
// FLOW_CUDA_LIBS, which colons separate, then where the system looks, then in `last_folder`. The
// library stays loaded. Returns null, and sets `reason`, if there is none.
void* load_library(std::initializer_list<std::string> names, const std::string& last_folder,
                   std::string& reason);

// The function of this name in a library that load_library() has opened; null if it has none.
void* find_function(void* library, const char* name);

// The files of the libraries that this process has loaded so far, in that order.
std::vector<std::string> loaded_libraries();

}  // namespace flow::cuda
