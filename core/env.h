// The environment variables the library reads: one table, one reader.
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

// Every variable the library reads. Reading another name is an InternalError.
std::span<const EnvVariable> env_table();

// The value, or `fallback` when unset or empty. env_int throws InvalidArgument for a value that is
// no integer.
std::string env_string(std::string_view name, std::string_view fallback);
int64_t env_int(std::string_view name, int64_t fallback);
bool env_flag(std::string_view name);

}  // namespace flow
