// What launchers say about a process.
#include "core/launcher.h"

#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include "core/error.h"

namespace flow {
namespace {

// Sets an environment variable for the duration of a test; null removes it.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }

  ~Variable() { set(before_ ? before_->c_str() : nullptr); }

  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  void set(const char* value) const {
    if (value == nullptr) {
      unsetenv(name_);
    } else {
      setenv(name_, value, 1);
    }
  }

  const char* name_;
  std::optional<std::string> before_;
};

// Standard output is a terminal of so many columns until the end of the scope.
class OnTerminal {
 public:
  explicit OnTerminal(unsigned short columns) : before_(dup(STDOUT_FILENO)) {
    winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    int terminal = -1;
    if (openpty(&main_, &terminal, nullptr, nullptr, &size) != 0) return;
    dup2(terminal, STDOUT_FILENO);
    close(terminal);
  }

  ~OnTerminal() {
    dup2(before_, STDOUT_FILENO);
    close(before_);
    close(main_);
  }

  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

 private:
  int before_, main_ = -1;
};

TEST(Launcher, TheWidthOfTheTerminalIsWhatTheLauncherSays) {
  const Variable no_launcher("OMPI_COMM_WORLD_SIZE", nullptr), told("FLOW_TERMINAL_WIDTH", "33");
  EXPECT_EQ(env::terminal_width(), 33);
  const OnTerminal terminal(120);
  EXPECT_EQ(env::terminal_width(), 33);
  const Variable none("FLOW_TERMINAL_WIDTH", "0");
  EXPECT_EQ(env::terminal_width(), 0);
  const Variable wrong("FLOW_TERMINAL_WIDTH", "wide");
  EXPECT_THROW(env::terminal_width(), InvalidArgument);
}

TEST(Launcher, WithoutALauncherItIsThatOfStandardOutput) {
  const Variable no_launcher("OMPI_COMM_WORLD_SIZE", nullptr),
      untold("FLOW_TERMINAL_WIDTH", nullptr);
  int64_t width = 0, unknown = 0, under_mpirun = -1;
  {
    const OnTerminal terminal(120);
    width = env::terminal_width();
    const Variable launched("OMPI_COMM_WORLD_SIZE", "1");
    under_mpirun = env::terminal_width();
  }
  {
    const OnTerminal terminal(0);
    unknown = env::terminal_width();
  }
  EXPECT_EQ(width, 120);
  EXPECT_EQ(unknown, 80);
  EXPECT_EQ(under_mpirun, 0);  // it gives its ranks a terminal although a file may follow
}

}  // namespace
}  // namespace flow
