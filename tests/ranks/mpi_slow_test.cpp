// Tests of process ranks, started with mpirun, that stop responding or are busy for a long time.
#include <gtest/gtest.h>

#include "tests/support/job.h"

namespace flow {
namespace {

const std::string kPrograms = FLOW_PROGRAMS;

// The other rank hangs outside of flow, so that no rank waits in a call.
TEST(SlowMpiRanks, AStoppedOneIsFoundByItsHeartbeats) {
  const JobResult job = run_job(mpirun(2, {kPrograms + "/rank_fault", "stop_alone"}),
                                {.environment = {"FLOW_TIMEOUT_S=2"}});

  EXPECT_EQ(job.exit_code, 71) << job.output;
  EXPECT_NE(job.output.find("rank 0 received no sign of life from rank 1 for 4 s; its process is "
                            "stopped"),
            std::string::npos)
      << job.output;
  expect_nothing_remains(job);
}

TEST(SlowMpiRanks, OneThatComputesForLongIsNoFault) {
  const JobResult job = run_job(mpirun(2, {kPrograms + "/rank_fault", "busy"}),
                                {.environment = {"FLOW_TIMEOUT_S=30"}});

  EXPECT_EQ(job.exit_code, 0) << job.output;
}

// Half of the jobs have process ranks and half thread ranks; four run at a time.
TEST(SlowMpiRanks, ShortJobsOnABusyHostEndWithoutAnError) {
  const JobResult job = run_job(
      {"sh", "-c",
       "for i in $(seq 16); do while :; do :; done & busy=\"$busy $!\"; done\n"
       "one() { for round in $(seq 25); do\n"
       "  $BIN/flowrun --report /dev/null $1 $BIN/rank_fault none || echo \"failed with $?\"\n"
       "done > $2 2>&1; }\n"
       "folder=$(mktemp -d)\n"
       "for i in 1 2 3 4; do\n"
       "  { one --ranks=2 $folder/p$i; one --ranks=threads:2 $folder/t$i; } & jobs=\"$jobs $!\"\n"
       "done\n"
       "wait $jobs; kill $busy; cat $folder/*; rm -r $folder"},
      {.environment = {"BIN=" + kPrograms}, .limit_s = 3600});

  EXPECT_EQ(job.exit_code, 0) << job.output;
  EXPECT_EQ(job.output.find("failed"), std::string::npos) << job.output;
  size_t num_results = 0;
  for (size_t at = 0; (at = job.output.find("result S(0)", at)) != std::string::npos; ++at)
    ++num_results;
  EXPECT_EQ(num_results, 400U) << job.output;
}

// Through shared memory, by messages, and between threads.
TEST(SlowMpiRanks, MoveAndReduceMoreThanTwoGibibytes) {
  // To fill and to check the bytes of one rank takes seconds, in which the other rank waits.
  const JobOptions options = {.environment = {"FLOW_TIMEOUT_S=60"}, .limit_s = 600};
  const JobResult processes = run_job(mpirun(2, {kPrograms + "/rank_large"}), options);
  EXPECT_EQ(processes.exit_code, 0) << processes.output;
  expect_nothing_remains(processes);

  const JobResult threads = run_job({kPrograms + "/rank_large", "2"}, options);
  EXPECT_EQ(threads.exit_code, 0) << threads.output;
}

}  // namespace
}  // namespace flow
