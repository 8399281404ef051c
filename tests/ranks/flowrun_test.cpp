// Tests of the launcher: how jobs start and end, with process ranks and thread ranks, and how each
// fault of a rank is reported. Each job runs in a separate box (tests/support/job.h).
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"
#include "tests/ranks/flowrun_job.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

struct Fault {
  std::string name;
  int exit_code;
  double limit_s;                       // seconds from the start of the job to its end
  std::vector<std::string> report;      // texts that must occur in report.json
  std::vector<std::string> sites = {};  // texts that must occur in report.json and in the output
};

// In googletest's messages.
std::ostream& operator<<(std::ostream& out, const Fault& fault) {
  return out << fault.name;
}

// The seconds that starting and ending may take on a busy machine; an idle one needs half a second.
constexpr double kStart = 5;
const std::string kRightCall = "rank_fault.cpp:109";

std::vector<Fault> faults_of_any_ranks() {
  return {
      {"return3", 3, kStart + 2, {R"("cause": "error")", R"("rank": 1)", "main returned 3"}},
      {"return0", 72, kStart + 2, {R"("cause": "rank_lost")", R"("rank": 0)", "has ended"}},
      {"exit1", 1, kStart + 2, {R"("cause": "error")", R"("rank": 1)", "exit(1)"}},
      {"exit0", 72, kStart + 2, {R"("cause": "rank_lost")"}},
      {"exit200", 63, kStart + 2, {R"("rank": 1)", "exit(200)"}},
      {"_exit0",
       72,
       kStart + 2,
       {R"("cause": "rank_lost")", "exited with code 0 before the job was over"}},
      {"throw", 72, kStart + 2, {R"("rank": 1)", "a planted exception"}},
      {"argument", 1, kStart + 2, {R"("rank": 1)", "a planted argument"}},
      {"module",
       1,
       kStart + 2,
       {R"("cause": "error")", R"("rank": 1)", R"("module": "inner.fc")", "[linear]"},
       {"rank_fault.cpp:146"}},
      {"memory", 73, kStart + 2, {R"("rank": 1)", "bad_alloc"}},
      {"io", 74, kStart + 2, {R"("rank": 1)", "a planted file"}},
      {"folder", 74, kStart + 2, {R"("rank": 1)", "/no/such/folder"}},
      {"damaged", 65, kStart + 2, {R"("rank": 1)", "a planted damage"}},
      {"segv", 72, kStart + 2, {R"("signal": 11)", R"("last_calls": [)", R"("state": "met")"}},
      {"abort", 72, kStart + 2, {R"("signal": 6)"}},
      {"kill",
       72,
       kStart + 2,
       {R"("signal": 9)", R"("last_calls": [)", "sum of 1 float32 (all_reduce)"}},
      {"stop", 71, kStart + 5, {R"("cause": "stopped")"}},
      {"kill_busy", 72, kStart + 2, {R"("signal": 9)", "sum of 3145728 float32"}},
      {"stop_busy", 71, kStart + 5, {R"("cause": "stopped")", "sum of 3145728 float32"}},
      {"missing", 71, kStart + 5, {R"("cause": "timeout")", R"("missing_ranks": [)", kRightCall}},
      {"op",
       70,
       kStart + 1,
       {R"("cause": "mismatch")", "barrier"},
       {kRightCall, "rank_fault.cpp:75"}},
      {"count",
       70,
       kStart + 1,
       {R"("cause": "mismatch")", "sum of 1001 float32", "sum of 1000"},
       {kRightCall, "rank_fault.cpp:76"}},
      {"dtype",
       70,
       kStart + 1,
       {R"("cause": "mismatch")", "float64", "float32"},
       {kRightCall, "rank_fault.cpp:77"}},
      {"shape",
       70,
       kStart + 1,
       {R"("cause": "mismatch")", "(2, 8)", "(4, 4)", R"("seq": 2)"},
       {"rank_fault.cpp:78", "rank_fault.cpp:101"}},
      {"order",
       70,
       kStart + 1,
       {R"("cause": "mismatch")", "first of 1000", "second of 1000", R"("seq": 2)"},
       {"rank_fault.cpp:80", "rank_fault.cpp:105"}},
      {"layout",
       70,
       kStart + 1,
       {R"("cause": "mismatch")", "to S(1)", "to B", R"("seq": 2)"},
       {"rank_fault.cpp:88", "rank_fault.cpp:97"}},
  };
}

class FlowrunFault : public testing::TestWithParam<Fault> {
 protected:
  static void run_with(const std::vector<std::string>& options,
                       const std::string& shared_memory = "1") {
    const Fault& fault = GetParam();

    const JobResult job =
        run_job(flowrun(options, {kPrograms + "/rank_fault", fault.name}),
                {.environment = {"FLOW_TIMEOUT_S=2", "FLOW_SHARED_MEMORY=" + shared_memory}});

    EXPECT_EQ(job.exit_code, fault.exit_code) << job.output;
    EXPECT_LT(job.seconds, fault.limit_s) << job.output;
    expect_nothing_remains(job);
    const std::string report = read_report();
    expect_words(report, fault.report);
    expect_words(report, fault.sites);
    expect_words(job.output, fault.sites);
  }
};

TEST_P(FlowrunFault, OfAProcessEndsTheJobAndIsReported) {
  run_with({"-n", "2"});
}

TEST_P(FlowrunFault, OfAProcessThatSendsMessagesEndsTheJobAndIsReported) {
  run_with({"-n", "2"}, "0");
}

TEST_P(FlowrunFault, OfAThreadEndsTheJobAndIsReported) {
  run_with({"--ranks=threads:2"});
}

INSTANTIATE_TEST_SUITE_P(All, FlowrunFault, testing::ValuesIn(faults_of_any_ranks()));

TEST(Job, WhatACommandLeavesIsSeen) {
  if (!jobs_are_boxed()) GTEST_SKIP() << "the system allows no namespaces";

  const JobResult job =
      run_job({"sh", "-c",
               "touch /dev/shm/left; sleep 100 & until grep -q sleep /proc/$!/comm; do :; done"},
              {.limit_s = 5});

  EXPECT_EQ(job.exit_code, 0);
  ASSERT_EQ(job.remains.size(), 2U);
  EXPECT_EQ(job.remains[0], "sleep 100 ");
  EXPECT_EQ(job.remains[1], "left");
}

// The lines that begin with "rank ". On a busy machine there are warnings of ranks that wait, too.
std::vector<std::string> digests_in(const std::string& output) {
  std::istringstream stream(output);
  std::vector<std::string> digests;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("rank ")) digests.push_back(line);
  }
  return digests;
}

TEST(Flowrun, ProgramsGiveTheSameOnThreadsAndProcesses) {
  const JobResult threads = run_job(flowrun({"--ranks=threads:3"}, {kPrograms + "/rank_digest"}));
  const JobResult processes =
      run_job(flowrun({"-n", "3", "--output", "plain"}, {kPrograms + "/rank_digest"}));

  EXPECT_EQ(threads.exit_code, 0) << threads.output;
  EXPECT_EQ(processes.exit_code, 0) << processes.output;
  EXPECT_EQ(digests_in(threads.output).size(), 3U) << threads.output;
  EXPECT_EQ(digests_in(processes.output), digests_in(threads.output));
  expect_nothing_remains(processes);
}

// The losses are those that OneFlow's documentation prints for this program.
TEST(Flowrun, DataParallelExampleGivesTheLossesOfItsReference) {
  for (const std::string ranks : {"--ranks=2", "--ranks=threads:2"}) {
    const JobResult job = run_job(flowrun({ranks}, {kPrograms + "/ddp"}));

    EXPECT_EQ(job.exit_code, 0) << job.output;
    expect_words(job.output,
                 {"50/500 loss:0.00025336415274068713\n", "50/500 loss:0.004111831542104483\n",
                  "500/500 loss:4.547473508864641e-12\n", "500/500 loss:6.184563972055912e-11\n"});
  }
}

TEST(Flowrun, ASlowRankIsNoFault) {
  const std::vector<std::string> slow = {kPrograms + "/rank_fault", "slow"};
  const JobOptions soon{.environment = {"FLOW_TIMEOUT_S=2"}};

  const JobResult processes = run_job(flowrun({"-n", "2"}, slow), soon);
  const JobResult threads = run_job(flowrun({"--ranks=threads:2"}, slow), soon);

  EXPECT_EQ(processes.exit_code, 0) << processes.output;
  EXPECT_EQ(threads.exit_code, 0) << threads.output;
  expect_words(processes.output, {"[0] done", "[1] done", "waiting for rank 1"});
  expect_words(threads.output, {"done", "waiting for rank 1"});
}

// The cores in a list such as "0-2,5".
std::set<int> cores_of(const std::string& list) {
  std::set<int> cores;
  std::istringstream ranges(list);
  for (std::string range; std::getline(ranges, range, ',');) {
    const size_t dash = range.find('-');
    const int first = std::stoi(range);
    const int last = dash == std::string::npos ? first : std::stoi(range.substr(dash + 1));
    for (int core = first; core <= last; ++core)
      cores.insert(core);
  }
  return cores;
}

TEST(Flowrun, RanksAreBoundToCoresOfTheirOwnUnlessAskedNotTo) {
  const std::vector<std::string> own_cores = {"sed", "-n", "s/^Cpus_allowed_list:[^0-9]*/cores /p",
                                              "/proc/self/status"};
  // What ranks 0 and 1 print, indexed by rank.
  const auto cores_with = [&](const std::vector<std::string>& options) {
    const JobResult job = run_job(flowrun(options, own_cores));
    EXPECT_EQ(job.exit_code, 0) << job.output;
    std::vector<std::set<int>> cores(2);
    std::istringstream lines(job.output);
    for (std::string line; std::getline(lines, line);) {
      for (size_t rank = 0; rank < 2; ++rank) {
        const std::string start = "[" + std::to_string(rank) + "] cores ";
        if (line.starts_with(start)) cores[rank] = cores_of(line.substr(start.size()));
      }
    }
    return cores;
  };

  const auto free = cores_with({"-n", "2", "--bind", "none"});
  const auto bound = cores_with({"-n", "2", "--bind", "cores"});
  const auto crowded = cores_with({"-n", std::to_string(free[0].size() + 1)});

  ASSERT_FALSE(free[0].empty());
  EXPECT_EQ(free[0], free[1]);
  EXPECT_EQ(crowded, free);  // if there are more ranks than cores, no rank gets a core for itself
  if (free[0].size() < 2) GTEST_SKIP() << "needs two cores";
  EXPECT_EQ(bound[0].size(), free[0].size() / 2);
  EXPECT_EQ(bound[1].size(), free[0].size() / 2);
  EXPECT_NE(bound[0], bound[1]);
  EXPECT_EQ(cores_with({"-n", "2"}), bound);
}

TEST(Flowrun, SharedMemoryMayBeSmall) {
  if (!jobs_are_boxed()) GTEST_SKIP() << "the system allows no file systems of one's own";

  const JobResult job =
      run_job({"sh", "-c",
               "mount -t tmpfs -o size=6m tmpfs /dev/shm && mkdir /dev/shm/tmp && "
               "TMPDIR=/tmp exec " +
                   kPrograms + "/flowrun -n 2 " + kPrograms + "/rank_digest"});

  EXPECT_EQ(job.exit_code, 0) << job.output;
  expect_words(job.output, {"[0] rank 1: "});
  expect_nothing_remains(job);
}

TEST(Flowrun, RanksThatGetNoSharedMemorySendMessages) {
  // The limit is enough for the files that MPI creates.
  const JobResult job = run_job(
      {"sh", "-c",
       "ulimit -f 100000; exec " + kPrograms + "/flowrun -n 2 " + kPrograms + "/rank_digest"});

  EXPECT_EQ(job.exit_code, 0) << job.output;
  expect_words(job.output, {"cannot share memory (the limit on file sizes", "[0] rank 1: "});
}

TEST(Flowrun, RanksGetTheirShareOfTheCores) {
  const JobResult job =
      run_job(flowrun({"-n", "64"}, {"sh", "-c", "echo $FLOW_NUM_THREADS $OMP_WAIT_POLICY"}));

  EXPECT_EQ(job.exit_code, 0) << job.output;
  expect_words(job.output, {"[63] 1 passive\n"});
}

TEST(Flowrun, ProgramsOfAnyKindMayBeStarted) {
  const JobResult good = run_job(flowrun({"-n", "2"}, {"true"}));
  const JobResult bad = run_job(flowrun({"-n", "2"}, {"sh", "-c", "exit 7"}));

  EXPECT_EQ(good.exit_code, 0) << good.output;
  EXPECT_EQ(bad.exit_code, 7) << bad.output;
}

TEST(Flowrun, ProgramsGetTheirWordsUnchanged) {
  for (const std::string ranks : {"--ranks=1", "--ranks=threads:1"}) {
    const JobResult job =
        run_job(flowrun({ranks, "--"}, {"printf", "<%s>", "a", ":", "b", "", "--", "=", "-n"}));

    EXPECT_EQ(job.exit_code, 0) << job.output;
    expect_words(job.output, {"<a><:><b><><--><=><-n>"});
  }
}

TEST(Flowrun, OneHostMustBeThisHost) {
  const JobResult here = run_job(flowrun({"--hosts=localhost:2"}, {"echo", "started"}));
  const JobResult elsewhere = run_job(flowrun({"--hosts=192.0.2.7:2"}, {"echo", "started"}));

  EXPECT_EQ(here.exit_code, 0) << here.output;
  expect_words(here.output, {"[0] started", "[1] started"});
  EXPECT_EQ(elsewhere.exit_code, 64) << elsewhere.output;
  EXPECT_EQ(elsewhere.output.find("started"), std::string::npos) << elsewhere.output;
}

TEST(Flowrun, WrongCommandLinesAreRefused) {
  for (const std::vector<std::string>& options : {std::vector<std::string>{"-n", "0"},
                                                  {"-n", "two"},
                                                  {"--ranks=threads:"},
                                                  {"--bogus"},
                                                  {"-n", "1000000000"},
                                                  {"--ranks=threads:1000000000"},
                                                  {"--nnodes=1000000000"},
                                                  {"--nnodes=2", "--nproc-per-node=1000000000"},
                                                  {"--hosts=a:1,b:1000000000000000000"},
                                                  {"--hosts=a;b,c"},
                                                  {"--hosts=a,b", "-n", "2"},
                                                  {"--timeout=10000000000"},
                                                  {"--nnodes=2", "--join-timeout=10000000000"},
                                                  {"--nnodes=2", "-n", "2"},
                                                  {"--nnodes=2", "--node_rank=2"},
                                                  {"--nnodes=2", "--master_port=0"},
                                                  {"--max-restarts=-1"},
                                                  {"--output=loud"}}) {
    const JobResult job = run_job(flowrun(options, {"true"}));
    EXPECT_EQ(job.exit_code, 64) << options[0] << '\n' << job.output;
  }
  for (const auto& [program, why] : std::vector<std::pair<std::string, std::string>>{
           {"./no_such_program", "cannot find the program ./no_such_program"},
           {"no_such_program", "cannot find the program no_such_program in PATH"},
           {"/tmp", "/tmp is a folder, not a program"},
           {"/etc/passwd", "the file /etc/passwd is not executable"}}) {
    const JobResult job = run_job(flowrun({"-n", "2"}, {program}));
    EXPECT_EQ(job.exit_code, 64) << job.output;
    EXPECT_NE(job.output.find(why), std::string::npos) << job.output;
  }
  EXPECT_EQ(run_job(flowrun({}, {"--help"})).exit_code, 0);
}

// The ranks receive different arguments for the arrangement of ranks.
TEST(Flowrun, ATrainingExampleEndsWithTheCodeOfItsError) {
  const JobResult job =
      run_job(flowrun({"-n", "2"}, {"sh", "-c",
                                    "exec " + kPrograms +
                                        "/train_gpt --data " FLOW_SOURCES
                                        "/core --steps 1 --dp $((1 + OMPI_COMM_WORLD_RANK))"
                                        " --tp $((2 - OMPI_COMM_WORLD_RANK))"}));

  EXPECT_EQ(job.exit_code, 70) << job.output;
  expect_words(read_report(), {R"("cause": "mismatch")", R"("other_site")"});
}

// Trains until the first step is done, then asks the job to stop.
TEST(Flowrun, TheMainExampleSavesAndStopsWhenAskedTo) {
  for (const std::string launcher : {"", "flowrun --ranks=threads:2 "}) {
    const std::string train = kPrograms + "/" + launcher + kPrograms + "/train_gpt";
    const std::string command = (launcher.empty() ? kPrograms + "/train_gpt" : train + " --dp 2") +
                                " --data " FLOW_SOURCES "/examples --run $folder/saved";
    const JobResult job =
        run_job({"sh", "-c",
                 "folder=$(mktemp -d)\n" + command +
                     " > $folder/out 2>&1 & pid=$!\n"
                     "until grep -q 'step 1/' $folder/out; do sleep 0.05; done\n"
                     "kill -TERM $pid; wait $pid; status=$?\n"
                     "cat $folder/out; ls $folder/saved/checkpoints; rm -r $folder; exit $status"},
                {.limit_s = 300});

    EXPECT_EQ(job.exit_code, 0) << job.output;
    expect_words(job.output, {"stopped at step ", "\nstep-0000"});
    EXPECT_EQ(job.output.find("validation loss"), std::string::npos) << job.output;
  }
}

TEST(Flowrun, ExamplesRefuseADeviceThatIsLacking) {
  const std::string folder = FLOW_SOURCES "/core";
  const JobResult job = run_job({kPrograms + "/train_gpt", "--device", "cuda", "--data", folder});

  EXPECT_EQ(job.exit_code, 1) << job.output;
  expect_words(job.output, {"--device cuda: ", "; leave it out, or give cpu"});
}

// A file with the given bytes that exists for the duration of a test.
class ShortFile {
 public:
  explicit ShortFile(const std::string& bytes) { std::ofstream(name_) << bytes; }

  ~ShortFile() { std::remove(name_.c_str()); }

  ShortFile(const ShortFile&) = delete;
  ShortFile& operator=(const ShortFile&) = delete;

  const std::string& name() const { return name_; }

 private:
  std::string name_ = testing::TempDir() + "flowrun_file_" + std::to_string(getpid());
};

TEST(Flowrun, ExamplesEndWith65ForADamagedFileAndWith74ForAMissingOne) {
  const ShortFile damaged("no weights");
  const std::vector<std::string> train = {kPrograms + "/train_gpt", "--data", FLOW_SOURCES "/core",
                                          "--init"};
  for (const auto& [file, code] : {std::pair(damaged.name(), 65), {"/no/such/file", 74}}) {
    std::vector<std::string> command = train;
    command.push_back(file);
    const JobResult alone = run_job(command);
    EXPECT_EQ(alone.exit_code, code) << alone.output;
    expect_words(alone.output, {file});

    command.insert(command.end(), {"--dp", "2"});
    for (const std::string ranks : {"-n2", "--ranks=threads:2"}) {
      const JobResult job = run_job(flowrun({ranks}, command));
      EXPECT_EQ(job.exit_code, code) << ranks << '\n' << job.output;
      expect_words(read_report(), {R"("cause": "error")", file});
    }
  }
}

TEST(Flowrun, AFullDiskEndsAJobWith74) {
  const JobResult alone = run_job({kPrograms + "/ddp", "--log", "/dev/full"});
  EXPECT_EQ(alone.exit_code, 74) << alone.output;
  if (!jobs_are_boxed()) GTEST_SKIP() << "the system allows no file systems of one's own";

  const JobResult job =
      run_job({"sh", "-c",
               "mount -t tmpfs -o size=16k tmpfs /mnt && exec " + kPrograms + "/flowrun --report " +
                   report_file() + " -n 2 " + kPrograms + "/ddp --log /mnt/log"});
  EXPECT_EQ(job.exit_code, 74) << job.output;
  expect_words(read_report(), {R"("cause": "error")", "is the disk full?"});
}

TEST(Flowrun, AJobThatTakesTooLongIsEnded) {
  const JobResult job = run_job(flowrun({"-n", "2", "--timeout", "1"}, {"sleep", "100"}));

  EXPECT_EQ(job.exit_code, 71) << job.output;
  EXPECT_LT(job.seconds, 8);
  expect_nothing_remains(job);
}

// The last line of output about each step, indexed by step.
std::map<std::string, std::string> losses_of(const std::string& output) {
  std::map<std::string, std::string> losses;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": loss ");
    if (colon != std::string::npos) losses[line.substr(0, colon)] = line.substr(colon);
  }
  return losses;
}

TEST(Flowrun, ARestartedJobTrainsAsIfNothingHadHappened) {
  const TempFolder folder;
  const std::string program = kPrograms + "/rank_train";

  const JobResult whole = run_job(flowrun({"-n", "2"}, {program, folder.file("whole")}));
  const JobResult restarted =
      run_job(flowrun({"-n", "2", "--max-restarts", "2"}, {program, folder.file("broken"), "7"}));
  const std::string report = read_report();

  EXPECT_EQ(whole.exit_code, 0) << whole.output;
  EXPECT_EQ(restarted.exit_code, 0) << restarted.output;
  EXPECT_EQ(losses_of(whole.output).size(), 12U) << whole.output;
  EXPECT_EQ(losses_of(restarted.output), losses_of(whole.output));
  expect_words(restarted.output, {"ended by signal 9", "flowrun: restart 1 of 2"});
  expect_words(report, {R"("attempts": [)", R"("signal": 9)", R"("cause": "none")"});
  expect_nothing_remains(restarted);
}

// The content of the timeline that `flowrun --timeline` writes, or of the one that ranks write
// themselves.
class FlowrunTimeline : public testing::Test {
 protected:
  std::string timeline() const {
    std::stringstream text;
    text << std::ifstream(folder_ + "/timeline.json").rdbuf();
    return text.str();
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.file("timeline");
};

TEST_F(FlowrunTimeline, OfProcessesAndThreadsHasAllRanks) {
  for (const std::string ranks : {"--ranks=2", "--ranks=threads:2"}) {
    const JobResult job = run_job(flowrun({ranks, "--timeline", folder_}, {kPrograms + "/ddp"}));

    EXPECT_EQ(job.exit_code, 0) << job.output;
    expect_words(job.output, {"flowrun: timeline of 2 ranks, ", folder_ + "/timeline.json"});
    expect_words(timeline(), {R"("rank":0)", R"("rank":1)", R"("has_ended":true)",
                              R"("cat":"collective")", R"("cat":"op")", "ddp.cpp:"});
  }
}

// A rank that compiles a pipeline plans the steps of the other ranks as well.
TEST_F(FlowrunTimeline, OfCompiledPipelinesHasTheEventsOfAllRanks) {
  const JobResult job =
      run_job(flowrun({"-n", "4", "--timeline", folder_}, {kPrograms + "/rank_graph"}),
              {.environment = {"FLOW_NUM_THREADS=1"}});

  EXPECT_EQ(job.exit_code, 0) << job.output;
  const std::string text = timeline();
  for (int rank = 0; rank < 4; ++rank)
    expect_words(text, {R"("rank":)" + std::to_string(rank) + ','});
  EXPECT_EQ(text.find(R"("events":0,)"), std::string::npos) << text.substr(0, 1000);
}

TEST_F(FlowrunTimeline, ADeadRankLeavesWhatItHad) {
  const JobResult job = run_job(
      flowrun({"-n", "2", "--timeline", folder_}, {kPrograms + "/rank_fault", "kill_busy"}));

  EXPECT_NE(job.exit_code, 0);
  expect_words(job.output, {"flowrun: timeline of 2 ranks, "});
  expect_words(timeline(), {R"("has_ended":false)", R"("unfinished":true)", "rank_fault.cpp:"});
}

TEST_F(FlowrunTimeline, OfRanksWithoutFlowrunIsMergedAtTheEnd) {
  const JobResult job = run_job(mpirun(2, {"env", "FLOW_TIMELINE=" + folder_, kPrograms + "/ddp"}));

  EXPECT_EQ(job.exit_code, 0) << job.output;
  expect_words(timeline(), {R"("rank":0)", R"("rank":1)", R"("cat":"collective")"});
}

TEST_F(FlowrunTimeline, OfAnEarlierRunIsRemoved) {
  run_job(flowrun({"--ranks=threads:3", "--timeline", folder_}, {kPrograms + "/rank_digest"}));
  expect_words(timeline(), {R"("rank":2)"});

  run_job(flowrun({"--ranks=threads:2", "--timeline", folder_}, {kPrograms + "/rank_digest"}));

  EXPECT_EQ(timeline().find(R"("rank":2)"), std::string::npos);
}

TEST_F(FlowrunTimeline, AFolderThatCannotBeMadeIsRefused) {
  std::ofstream(folder_) << "a file";
  const JobResult job =
      run_job(flowrun({"-n", "1", "--timeline", folder_ + "/in"}, {kPrograms + "/rank_digest"}));
  EXPECT_EQ(job.exit_code, 74) << job.output;
  expect_words(job.output, {"cannot make the folder ", "name a folder that can be written"});
}

TEST(Flowrun, RestartsEnd) {
  const JobResult job =
      run_job(flowrun({"-n", "1", "--max-restarts", "1"}, {"sh", "-c", "kill -KILL $$"}));

  EXPECT_EQ(job.exit_code, 75) << job.output;
  expect_words(read_report(), {R"("attempt": 1)", R"("exit_code": 75)", R"("signal": 9)"});
}

// A new build replaces flowrun while its job runs.
TEST(Flowrun, RestartsAfterItsFileWasReplaced) {
  const TempFolder temp;
  const std::string& folder = temp.path();
  const std::string own = temp.file("flowrun");
  std::filesystem::copy_file(kPrograms + "/flowrun", own);
  const std::string program =
      str("if [ -e ", folder, "/second ]; then exit 0; fi; touch ", folder, "/second; cp ", own,
          " ", folder, "/new; mv ", folder, "/new ", own, "; kill -KILL $$");

  const JobResult job = run_job(
      {own, "--report", report_file(), "-n", "1", "--max-restarts", "1", "sh", "-c", program});

  EXPECT_EQ(job.exit_code, 0) << job.output;
}

TEST(Flowrun, WhatWouldFailAgainIsNotRestarted) {
  const JobResult job =
      run_job(flowrun({"-n", "1", "--max-restarts", "5"}, {"sh", "-c", "exit 3"}));

  EXPECT_EQ(job.exit_code, 3) << job.output;
  EXPECT_EQ(job.output.find("restart"), std::string::npos) << job.output;
}

}  // namespace
}  // namespace flow
