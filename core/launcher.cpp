#include "core/launcher.h"

#include <algorithm>
#include <cstdlib>

namespace flow {

namespace {

int64_t read_count(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? 1 : std::max<int64_t>(1, std::strtoll(text, nullptr, 10));
}

}  // namespace

Launcher find_launcher() {
  return {.is_present =
              std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr,
          .world_size = read_count("OMPI_COMM_WORLD_SIZE"),
          .ranks_on_host = read_count("OMPI_COMM_WORLD_LOCAL_SIZE")};
}

}  // namespace flow
