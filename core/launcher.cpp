#include "core/launcher.h"

#include <algorithm>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

#include "core/env.h"

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

int64_t env::terminal_width() {
  constexpr int64_t kUsual = 80;  // of terminals that do not say
  const int64_t told = env_int("FLOW_TERMINAL_WIDTH", -1);
  if (told >= 0) return told;
  if (find_launcher().is_present || isatty(STDOUT_FILENO) == 0) return 0;
  winsize size{};
  const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : kUsual;
}

}  // namespace flow
