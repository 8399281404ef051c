#pragma once

#include <string_view>

namespace flow {

// The library's version, "major.minor.patch".
std::string_view version();

// The properties of this build in one line: version, compiler and optional packages. All ranks of a
// job must have the same.
std::string_view build_configuration();

}  // namespace flow
