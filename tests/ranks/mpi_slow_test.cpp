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
  EXPECT_NE(job.output.find("rank 0 received no sign of life from rank 1 for 4.5 s"),
            std::string::npos)
      << job.output;
  EXPECT_EQ(job.remains, std::vector<std::string>{});
}

TEST(SlowMpiRanks, OneThatComputesForLongIsNoFault) {
  const JobResult job = run_job(mpirun(2, {kPrograms + "/rank_fault", "busy"}),
                                {.environment = {"FLOW_TIMEOUT_S=30"}});

  EXPECT_EQ(job.exit_code, 0) << job.output;
}

// Through shared memory, by messages, and between threads.
TEST(SlowMpiRanks, MoveAndReduceMoreThanTwoGibibytes) {
  const JobOptions options = {.limit_s = 600};
  const JobResult processes = run_job(mpirun(2, {kPrograms + "/rank_large"}), options);
  EXPECT_EQ(processes.exit_code, 0) << processes.output;
  EXPECT_EQ(processes.remains, std::vector<std::string>{});

  const JobResult threads = run_job({kPrograms + "/rank_large", "2"}, options);
  EXPECT_EQ(threads.exit_code, 0) << threads.output;
}

}  // namespace
}  // namespace flow
