// Tests of jobs in which the process of a rank misbehaves before its first flow call, after its
// last, or by what it does with forks and file descriptors. Each job runs in a separate box
// (tests/support/job.h).
#include <cstdio>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/job.h"

namespace flow {
namespace {

const std::string kPrograms = FLOW_PROGRAMS;
const std::string kReport =
    testing::TempDir() + "process_fault_" + std::to_string(getpid()) + ".json";

struct Outcome {
  JobResult job;
  std::string report;
};

Outcome run_fault(const std::vector<std::string>& launcher, const std::string& fault,
                  const std::string& timeout = "2") {
  std::vector<std::string> command = launcher;
  command.insert(command.end(), {kPrograms + "/rank_process_fault", fault});
  Outcome outcome{.job = run_job(command, {.environment = {"FLOW_TIMEOUT_S=" + timeout}}),
                  .report = ""};
  std::stringstream text;
  text << std::ifstream(kReport).rdbuf();
  std::remove(kReport.c_str());
  outcome.report = text.str();
  return outcome;
}

std::vector<std::string> flowrun(const std::string& ranks) {
  return {kPrograms + "/flowrun", "--report", kReport, "--ranks", ranks};
}

void expect_end(const Outcome& outcome, int exit_code, const std::vector<std::string>& report) {
  EXPECT_EQ(outcome.job.exit_code, exit_code) << outcome.job.output;
  expect_nothing_remains(outcome.job);
  for (const std::string& word : report) {
    EXPECT_NE(outcome.report.find(word), std::string::npos)
        << "missing: " << word << "\nin: " << outcome.report << '\n'
        << outcome.job.output;
  }
}

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words)
    EXPECT_NE(text.find(word), std::string::npos) << "missing: " << word << "\nin: " << text;
}

TEST(Start, ARankThatEndsBeforeItsFirstCallIsNamedAtOnce) {
  const Outcome outcome = run_fault(flowrun("3"), "early_exit", "300");

  expect_end(outcome, 72,
             {R"("cause": "rank_lost")", R"("op": "start")", "rank 2 has ended before its first"});
}

TEST(Start, ARankThatNeverCallsFlowIsNamedAfterTheTimeLimit) {
  for (const std::string fault : {"early_sleep", "early_loop"}) {
    const Outcome outcome = run_fault(flowrun("3"), fault);

    expect_end(outcome, 71,
               {R"("cause": "timeout")", R"("op": "start")", "could not connect with rank 2"});
    expect_words(outcome.job.output, {"warning: waiting for rank 2 to connect"});
  }
}

TEST(Start, MpirunAloneEndsToo) {
  const std::string flows_words = "rank 0 could not connect with rank 1 within 2 s";

  const Outcome sleeping = run_fault(mpirun(2, {}), "early_sleep");
  expect_end(sleeping, 71, {});
  expect_words(sleeping.job.output, {flows_words});

  // mpirun itself ends the job if another rank was in MPI_Init when this one ended.
  const Outcome ended = run_fault(mpirun(2, {}), "early_exit");
  const bool is_of_mpirun =
      ended.job.output.find("mpirun has exited due to process rank 1") != std::string::npos;
  expect_end(ended, is_of_mpirun ? 1 : 71, {});
  if (!is_of_mpirun) expect_words(ended.job.output, {flows_words});
}

TEST(Exit, AHandlerThatHangsIsEnded) {
  for (const std::string fault : {"atexit_sleep", "atexit_sleep_first"}) {
    const Outcome outcome = run_fault(flowrun("2"), fault);

    expect_end(outcome, 71, {R"("cause": "timeout")", R"("rank": 1)", "did not end within 2 s"});
    expect_words(outcome.job.output, {"[rank 1] warning: the program left main"});
  }
  const Outcome threads = run_fault(flowrun("threads:2"), "atexit_sleep");
  expect_end(threads, 71, {R"("cause": "timeout")", R"("rank": "unknown")", "did not end within"});
}

TEST(Descriptors, OfMpiMustNotBeClosed) {
  const Outcome outcome = run_fault(flowrun("2"), "close_all", "60");

  expect_end(outcome, 1, {R"("rank": 1)", "the program closed file descriptor"});
  EXPECT_LT(outcome.job.output.size(), size_t{4} << 20);
}

TEST(Descriptors, OfTheProgramMayBeClosed) {
  const Outcome outcome = run_fault(flowrun("2"), "close_own", "20");

  expect_end(outcome, 0, {});
  expect_words(outcome.job.output, {"done"});
}

TEST(ThreadRanks, ThatCrashAreNamed) {
  for (const std::string fault : {"overflow", "null"}) {
    const Outcome outcome = run_fault(flowrun("threads:3"), fault);

    expect_end(outcome, 72,
               {R"("cause": "rank_lost")", R"("rank": 2)", R"("signal": 11)",
                "rank 2 was ended by signal 11"});
  }
}

TEST(ThreadRanks, ThatExitAreNamed) {
  const Outcome outcome = run_fault(flowrun("threads:3"), "exit0");

  expect_end(outcome, 72,
             {R"("cause": "rank_lost")", R"("rank": 2)",
              "the program called exit(0) before the job was over"});
}

TEST(ThreadRanks, MayAllExitWithoutAnError) {
  expect_end(run_fault(flowrun("threads:3"), "all_exit"), 0, {});
}

TEST(Exit, ComesAfterTheCallsThatRunInTheBackground) {
  for (const std::string ranks : {"2", "threads:2"})
    expect_end(run_fault(flowrun(ranks), "exit_in_call"), 0, {});
}

TEST(Exit, MayLeaveCallsInStaticObjects) {
  for (const std::string shared_memory : {"1", "0"}) {
    std::vector<std::string> launcher = flowrun("2");
    launcher.insert(launcher.begin(), {"/usr/bin/env", "FLOW_SHARED_MEMORY=" + shared_memory});
    expect_end(run_fault(launcher, "static_call"), 0, {});
  }
}

TEST(ProcessRanks, DoNotCommunicateForRanksThatTheyPlan) {
  const Outcome outcome = run_fault(flowrun("2"), "planning");

  expect_end(outcome, 0, {});
  expect_words(outcome.job.output, {"rank 0 of 2 exists for planning only"});
}

TEST(WrongUsage, IsANumberOfThreadsThatCannotBeMeant) {
  const JobResult job = run_job({kPrograms + "/rank_process_fault", "none"},
                                {.environment = {"FLOW_RANKS=threads:1000000000"}});

  EXPECT_EQ(job.exit_code, 64) << job.output;
  expect_words(job.output, {"[run_ranks] needs 1 to 65536 ranks"});
}

TEST(WrongUsage, HasTheSameCodeForAllRanks) {
  for (const std::string ranks : {"2", "threads:2"})
    expect_end(run_fault(flowrun(ranks), "usage"), 64, {R"("cause": "error")"});
}

TEST(ThreadRanks, AnEndThatCannotBeAttributedIsUnknown) {
  const Outcome outcome = run_fault(flowrun("threads:3"), "_exit0");

  expect_end(outcome, 72, {R"("cause": "rank_lost")", R"("rank": "unknown")"});
}

TEST(ProcessRanks, ThatCrashAreNamed) {
  for (const std::string fault : {"overflow", "null"})
    expect_end(run_fault(flowrun("3"), fault), 72, {R"("rank": 2)", R"("signal": 11)"});
}

TEST(Forks, TheEndOfAChildIsNoEndOfItsRank) {
  for (const std::string ranks : {"2", "threads:2"}) {
    for (const std::string fault : {"fork_exit", "fork_exit_5", "fork_throw"}) {
      const Outcome outcome = run_fault(flowrun(ranks), fault, "20");

      expect_end(outcome, 0, {});
      expect_words(outcome.job.output, {"done"});
    }
  }
}

TEST(Forks, TheEndOfAChildFromBeforeTheFirstCallIsNoEndOfItsRank) {
  const Outcome outcome = run_fault(flowrun("2"), "fork_early_exit_5", "20");

  expect_end(outcome, 0, {});
  expect_words(outcome.job.output, {"done"});
}

TEST(Forks, AChildMayNotCallFlow) {
  for (const std::string ranks : {"2", "threads:2"}) {
    const Outcome outcome = run_fault(flowrun(ranks), "fork_call", "20");

    expect_end(outcome, 0, {});
    expect_words(outcome.job.output, {"done", "[fork] a rank made this process with fork()"});
    EXPECT_EQ(outcome.job.output.find("the child called flow"), std::string::npos);
  }
}

TEST(Forks, AChildOfAnEndedRankIsEnded) {
  for (const std::string ranks : {"2", "threads:2"})
    expect_end(run_fault(flowrun(ranks), "fork_stay", "20"), 0, {});
}

TEST(Limits, ThatAreTooLowAreNamed) {
  struct Case {
    std::string limit, named;
  };

  for (const auto& [limit, named] :
       {Case{"-n 24", "open files (ulimit -n)"}, Case{"-v 60000", "address space (ulimit -v)"},
        Case{"-f 1000", "of each file (ulimit -f)"}}) {
    const JobResult job =
        run_job({"sh", "-c",
                 "ulimit " + limit + "; exec " + kPrograms + "/flowrun --report /dev/null -n 2 " +
                     kPrograms + "/rank_process_fault none"});

    EXPECT_NE(job.exit_code, 0) << limit << '\n' << job.output;
    expect_words(job.output, {named});
  }
}

TEST(Secrets, DoNotReachTheRanks) {
  for (const std::string ranks : {"2", "threads:2"}) {
    std::vector<std::string> command = flowrun(ranks);
    command.insert(command.end(), {"sh", "-c", "echo secret: $FLOW_JOB_SECRET."});
    const JobResult job =
        run_job(command, {.environment = {"FLOW_JOB_SECRET=0123456789abcdef0123456789abcdef"}});

    EXPECT_EQ(job.exit_code, 0) << job.output;
    expect_words(job.output, {"secret: ."});
  }
}

}  // namespace
}  // namespace flow
