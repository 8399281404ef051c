// Signals to flowrun: which of them the ranks receive, and which of them end a job.
#include <string>

#include <gtest/gtest.h>

#include "tests/ranks/flowrun_job.h"

namespace flow {
namespace {

// Starts a job that loops until it is asked to stop, then runs `action` with the launcher's process
// id in $pid. `wrapper` starts flowrun with other dispositions of signals; a shell without job
// control starts it with SIGINT ignored.
JobResult interrupt(const std::string& options, const std::string& action,
                    const std::string& wrapper = "") {
  return run_job({"sh", "-c",
                  "out=$(mktemp)\n" + wrapper + kPrograms + "/flowrun --report " + report_file() +
                      " " + options + " " + kPrograms +
                      "/rank_fault until_asked > $out 2>&1 & pid=$!\n"
                      "until grep -q ready $out; do sleep 0.05; done\n" +
                      action + "\nwait $pid; status=$?; cat $out; rm $out; exit $status"},
                 {.environment = {"FLOW_TIMEOUT_S=20"}});
}

TEST(FlowrunSignals, AskTheRanksToStop) {
  for (const std::string options : {"-n 2", "--ranks=threads:2"}) {
    for (const std::string signal : {"TERM", "USR1"}) {
      const JobResult job = interrupt(options, "kill -" + signal + " $pid");

      EXPECT_EQ(job.exit_code, 0) << job.output;
      expect_words(job.output, {"asked to stop"});
    }
  }
}

TEST(FlowrunSignals, ASecondOneEndsTheJob) {
  const JobResult job =
      interrupt("-n 2", "kill -INT $pid; sleep 0.2; kill -INT $pid", "env --default-signal=INT ");

  EXPECT_EQ(job.exit_code, 72) << job.output;
  expect_nothing_remains(job);
}

TEST(FlowrunSignals, ThatEndTheRanksDoNotRestartTheJob) {
  for (const std::string signal : {"HUP", "USR2"}) {
    const JobResult job = interrupt("-n 2 --max-restarts 2", "kill -" + signal + " $pid");

    EXPECT_EQ(job.exit_code, 72) << job.output;
    EXPECT_EQ(job.output.find("restart"), std::string::npos) << job.output;
    expect_nothing_remains(job);
  }
}

// A closed terminal must not end the job. SIGHUP comes before SIGTERM to a rank that gets both.
TEST(FlowrunSignals, UnderNohupAHangupIsNoSignal) {
  for (const std::string options : {"-n 2", "--ranks=threads:2"}) {
    const JobResult job = interrupt(options, "kill -HUP $pid; kill -TERM $pid", "nohup ");

    EXPECT_EQ(job.exit_code, 0) << job.output;
    expect_words(job.output, {"asked to stop"});
  }
}

TEST(FlowrunSignals, ThatFlowrunIgnoresAreIgnoredByItsRanks) {
  for (const std::string ranks : {"--ranks=2", "--ranks=threads:2"}) {
    const std::vector<std::string> hang_up = {"sh", "-c", "kill -HUP $$; echo alive"};
    std::vector<std::string> command = flowrun({ranks}, hang_up);
    const JobResult ended = run_job(command);
    command.insert(command.begin(), "nohup");
    const JobResult job = run_job(command);

    EXPECT_EQ(ended.exit_code, 72) << ended.output;
    EXPECT_EQ(job.exit_code, 0) << job.output;
    expect_words(job.output, {"alive"});
  }
}

// The shell starts flowrun with SIGINT ignored.
TEST(FlowrunSignals, OfTheKeyboardDoNotReachAJobInTheBackground) {
  const JobResult job = interrupt("-n 2", "kill -INT $pid; kill -INT $pid; kill -TERM $pid");

  EXPECT_EQ(job.exit_code, 0) << job.output;
  expect_words(job.output, {"asked to stop"});
}

TEST(FlowrunSignals, RanksDoNotOutliveALostLauncher) {
  const JobResult mpirun_lost =
      interrupt("-n 2", "kill -KILL $(cat /proc/$pid/task/$pid/children)");

  EXPECT_EQ(mpirun_lost.exit_code, 72) << mpirun_lost.output;
  expect_nothing_remains(mpirun_lost);
}

}  // namespace
}  // namespace flow
