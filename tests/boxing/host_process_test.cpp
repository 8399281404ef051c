// What the system says about processes of this host.
#include "boxing/comm/host_process.h"

#include <array>
#include <csignal>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace flow::boxing {
namespace {

TEST(HostProcess, AStoppedOneIsToldFromARunningOne) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    const HostProcess self = own_process();
    static_cast<void>(write(ends[1], &self, sizeof(self)) == 0);
    for (;;)
      pause();
  }
  HostProcess process;
  ASSERT_EQ(read(ends[0], &process, sizeof(process)), ssize_t{sizeof(process)});
  int status = 0;

  EXPECT_EQ(process.id, child);
  EXPECT_EQ(state_of(process), ProcessState::kRunning);
  kill(child, SIGSTOP);
  waitpid(child, &status, WUNTRACED);
  EXPECT_EQ(state_of(process), ProcessState::kStopped);
  kill(child, SIGCONT);
  waitpid(child, &status, WCONTINUED);
  EXPECT_EQ(state_of(process), ProcessState::kRunning);
  const HostProcess another{process.id, process.start_time + 1};
  EXPECT_EQ(state_of(another), ProcessState::kUnknown);

  kill(child, SIGKILL);
  siginfo_t info{};
  waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT);
  EXPECT_EQ(state_of(process), ProcessState::kEnded);
  waitpid(child, &status, 0);
  EXPECT_EQ(state_of(process), ProcessState::kUnknown);
  EXPECT_EQ(state_of({}), ProcessState::kUnknown);
}

}  // namespace
}  // namespace flow::boxing
