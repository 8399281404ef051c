// Tests of process ranks, started with mpirun as a user would start them.
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "boxing/cost.h"
#include "core/error.h"
#include "ops/linear/cpu_table.h"
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
    expect_nothing_remains(processes);
  }
}

TEST(MpiRanks, AnyLayoutBecomesAnyOther) {
  const JobResult job = run_job(mpirun(4, {kPrograms + "/rank_redistribute", "500"}));

  EXPECT_EQ(job.exit_code, 0) << job.output;
  EXPECT_NE(job.output.find("500 cases on 4 ranks"), std::string::npos) << job.output;
  expect_nothing_remains(job);
}

TEST(MpiRanks, GraphsTakeTheMemoryAndCommunicateAsWasKnownBefore) {
  for (const char* shared_memory : {"1", "0"}) {
    const JobResult job =
        run_job(mpirun(4, {kPrograms + "/rank_graph"}),
                {.environment = {"FLOW_NUM_THREADS=1", str("FLOW_SHARED_MEMORY=", shared_memory)}});

    EXPECT_EQ(job.exit_code, 0) << job.output;
    EXPECT_NE(job.output.find("27 steps on 4 ranks"), std::string::npos) << job.output;
    EXPECT_EQ(job.remains, std::vector<std::string>{});
  }
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

// A folder for the files of a test.
struct Folder {
  std::string name = testing::TempDir() + "mpi_test_" + std::to_string(getpid());

  Folder() { std::filesystem::create_directory(name); }

  ~Folder() { std::filesystem::remove_all(name); }

  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  // Writes `text` to a file and returns FLOW_COST_TABLE=... with its name.
  std::string costs(const std::string& file, const std::string& text) const {
    std::ofstream(name + "/" + file) << text;
    return "FLOW_COST_TABLE=" + name + "/" + file;
  }
};

TEST(MpiRanks, ACostTableDecidesForThreadsAndProcesses) {
  const Folder folder;
  boxing::CostTable costs;
  costs.partial_use = 0;  // partial results look free, so addends stay
  const std::string other = folder.costs("other.json", boxing::to_string(costs));
  const std::vector<std::string> program = {kPrograms + "/rank_fault", "none"};
  std::vector<std::string> threads = {kPrograms + "/flowrun", "--ranks=threads:2"};
  threads.insert(threads.end(), program.begin(), program.end());

  for (const std::vector<std::string>& command : {threads, mpirun(2, program)}) {
    const JobResult committed = run_job(command);
    const JobResult named = run_job(command, {.environment = {other}});

    EXPECT_NE(committed.output.find("result S(0)"), std::string::npos) << committed.output;
    EXPECT_NE(named.output.find("result P"), std::string::npos) << named.output;
  }
}

TEST(MpiRanks, DifferentCostTablesAreRefusedAtTheStart) {
  const Folder folder;
  boxing::CostTable costs;
  const std::string same = folder.costs("same.json", boxing::to_string(costs));
  costs.peer_us = 0.4;
  const std::string other = folder.costs("other.json", boxing::to_string(costs));
  const auto run_with = [&](const std::string& setting) {
    std::vector<std::string> command = mpirun(1, {"env", setting, kPrograms + "/rank_digest"});
    for (const std::string word : {":", "-n", "1"})
      command.push_back(word);
    command.push_back(kPrograms + "/rank_digest");
    return run_job(command);
  };

  const JobResult equal = run_with(same);
  const JobResult job = run_with(other);

  EXPECT_EQ(equal.exit_code, 0) << equal.output;
  EXPECT_EQ(job.exit_code, 70) << job.output;
  EXPECT_NE(job.output.find("rank 1 and rank 0 differ in the cost table (FLOW_COST_TABLE)"),
            std::string::npos)
      << job.output;
}

TEST(MpiRanks, DifferentCpuTablesAreAWarning) {
  const Folder folder;
  ops::CpuTable table = ops::committed_cpu_table(ops::CpuIsa::kAvx2);
  table.cpu = ops::cpu_and_isa();
  table.libraries = ops::product_libraries();
  table.products = ops::GemmTable();  // own kernels for all shapes
  std::ofstream(folder.name + "/own.table") << to_string(table);
  const std::string setting = "FLOW_CPU_TABLE=" + folder.name + "/own.table";
  std::vector<std::string> command = mpirun(1, {"env", setting, kPrograms + "/rank_digest"});
  for (const std::string word : {":", "-n", "1"})
    command.push_back(word);
  command.push_back(kPrograms + "/rank_digest");

  const JobResult job = run_job(command);

  EXPECT_EQ(job.exit_code, 0) << job.output;
  EXPECT_NE(job.output.find("rank 1 and rank 0 use different tables of matrix products (" +
                            folder.name + "/own.table on rank 0"),
            std::string::npos)
      << job.output;
}

TEST(MpiRanks, ADamagedCostTableEndsTheJobWithTheCodeOfABadFile) {
  const Folder folder;
  const std::string damaged = folder.costs("damaged.json", "{\"meeting_us\": 1.5");

  const JobResult job =
      run_job(mpirun(2, {kPrograms + "/rank_fault", "none"}), {.environment = {damaged}});

  EXPECT_EQ(job.exit_code, 65) << job.output;
  EXPECT_NE(job.output.find("damaged.json is not a cost table"), std::string::npos) << job.output;
}

// Both ranks hang outside of flow, one of them after it has caught the error of a rank that never
// arrived.
TEST(MpiRanks, ThatHangAfterAFailureAreEnded) {
  const JobResult job = run_job(mpirun(2, {kPrograms + "/rank_fault", "caught"}),
                                {.environment = {"FLOW_TIMEOUT_S=2"}});

  EXPECT_EQ(job.exit_code, 71) << job.output;
  EXPECT_NE(job.output.find("caught"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("did not end within 2 s after the ranks failed"), std::string::npos)
      << job.output;
  EXPECT_NE(job.output.find("waits for rank 0 in sum of 1000 float32"), std::string::npos)
      << job.output;
  expect_nothing_remains(job);
}

TEST(MpiRanks, ASignalBeforeTheFirstQuestionIsKept) {
  const JobResult job = run_job(mpirun(2, {kPrograms + "/rank_fault", "asked_early"}));

  EXPECT_EQ(job.exit_code, 0) << job.output;
}

}  // namespace
}  // namespace flow
