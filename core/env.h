// The environment variables that the library reads. All of them are in one table and have one
// reader.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace flow {

struct EnvVariable {
  std::string_view name;
  std::string_view default_value;
  std::string_view meaning;
};

// Every variable that the library reads. Reading another name throws InternalError.
std::span<const EnvVariable> env_table();

// The variable's value, or `fallback` if it is unset or empty. env_int throws InvalidArgument if
// the value is not an integer.
std::string env_string(std::string_view name, std::string_view fallback);
int64_t env_int(std::string_view name, int64_t fallback);
bool env_flag(std::string_view name);

// The home folder of the user (HOME, or else what the system knows); empty if there is none.
std::string home_folder();

}  // namespace flow
