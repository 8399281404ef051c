#pragma once

#include <string_view>

namespace flow {

// The library's version, "major.minor.patch".
std::string_view version();

// What this library was built with, as one line: version, compiler and optional packages. Two ranks
// of one job must agree on it.
std::string_view build_configuration();

}  // namespace flow
