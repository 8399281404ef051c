#include "core/launcher.h"

#include <algorithm>
#include <cstdlib>

namespace flow {

namespace {

int64_t read_number(const char* name, int64_t least) {
  const char* text = std::getenv(name);
  return text == nullptr ? least : std::max<int64_t>(least, std::strtoll(text, nullptr, 10));
}

}  // namespace

Launcher find_launcher() {
  return {.is_present =
              std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr,
          .rank = read_number("OMPI_COMM_WORLD_RANK", 0),
          .world_size = read_number("OMPI_COMM_WORLD_SIZE", 1),
          .ranks_on_host = read_number("OMPI_COMM_WORLD_LOCAL_SIZE", 1)};
}

}  // namespace flow
