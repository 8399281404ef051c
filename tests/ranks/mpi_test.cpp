// Ranks as processes, started as a user would: with mpirun.
#include <gtest/gtest.h>

#include "tests/support/job.h"

namespace flow {
namespace {

const std::string kPrograms = FLOW_PROGRAMS;

TEST(MpiRanks, GiveTheBitsOfThreadRanks) {
  for (const int ranks : {2, 3}) {
    const JobResult threads = run_job({kPrograms + "/rank_digest", std::to_string(ranks)});
    const JobResult processes = run_job(mpirun(ranks, {kPrograms + "/rank_digest"}));

    EXPECT_EQ(threads.exit_code, 0) << threads.output;
    EXPECT_EQ(processes.exit_code, 0) << processes.output;
    EXPECT_EQ(processes.output, threads.output);
    EXPECT_NE(threads.output.find("rank 1: "), std::string::npos) << threads.output;
    EXPECT_EQ(processes.remains, std::vector<std::string>{});
  }
}

TEST(MpiRanks, AnyLayoutBecomesAnyOther) {
  const JobResult job = run_job(mpirun(4, {kPrograms + "/rank_redistribute", "500"}));

  EXPECT_EQ(job.exit_code, 0) << job.output;
  EXPECT_NE(job.output.find("500 cases on 4 ranks"), std::string::npos) << job.output;
  EXPECT_EQ(job.remains, std::vector<std::string>{});
}

TEST(MpiRanks, AProgramWithoutALauncherNeverStartsMpi) {
  // With this setting MPI cannot be initialised.
  const JobOptions no_mpi{.environment = {"OMPI_MCA_btl=does_not_exist"}};

  const JobResult alone = run_job({kPrograms + "/rank_digest"}, no_mpi);
  const JobResult launched = run_job(mpirun(1, {kPrograms + "/rank_digest"}), no_mpi);

  EXPECT_EQ(alone.exit_code, 0) << alone.output;
  EXPECT_NE(launched.exit_code, 0) << launched.output;
}

TEST(MpiRanks, DifferentSettingsAreRefusedAtTheStart) {
  std::vector<std::string> command = mpirun(1, {"env", "FLOW_CHECK=1", kPrograms + "/rank_digest"});
  for (const std::string word : {":", "-n", "1"})
    command.push_back(word);
  command.push_back(kPrograms + "/rank_digest");

  const JobResult job = run_job(command);

  EXPECT_NE(job.exit_code, 0);
  EXPECT_NE(job.output.find("rank 1 and rank 0 differ in FLOW_CHECK"), std::string::npos)
      << job.output;
}

// Both ranks hang outside flow, one after it has caught the error of a rank that never came.
TEST(MpiRanks, ThatHangAfterAFailureAreEnded) {
  const JobResult job = run_job(mpirun(2, {kPrograms + "/rank_fault", "caught"}),
                                {.environment = {"FLOW_TIMEOUT_S=2"}});

  EXPECT_EQ(job.exit_code, 71) << job.output;
  EXPECT_NE(job.output.find("caught"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("is ended, as it went on for 2 s after the ranks had failed"),
            std::string::npos)
      << job.output;
  EXPECT_NE(job.output.find("waits for rank 0 in sum of 1000 float32"), std::string::npos)
      << job.output;
  EXPECT_EQ(job.remains, std::vector<std::string>{});
}

TEST(MpiRanks, ASignalBeforeTheFirstQuestionIsKept) {
  const JobResult job = run_job(mpirun(2, {kPrograms + "/rank_fault", "asked_early"}));

  EXPECT_EQ(job.exit_code, 0) << job.output;
}

}  // namespace
}  // namespace flow
