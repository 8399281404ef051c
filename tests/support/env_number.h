// Numbers that the environment gives to tests.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace flow {

// The value of an environment variable, or `otherwise` if it is not set.
inline uint64_t env_number(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace flow
