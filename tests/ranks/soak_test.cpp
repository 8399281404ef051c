// A job of two processes that flowrun restarts whenever one of them is killed at a random time.
// What it holds of the system stays flat, and its losses are those of a job that is never killed.
//
// FLOW_TEST_SECONDS is its duration, FLOW_TEST_SEED chooses other times.
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/support/env_number.h"
#include "tests/support/job.h"
#include "tests/support/temp_folder.h"

namespace flow {
namespace {

const std::string kPrograms = FLOW_PROGRAMS;

// What a process holds.
struct Usage {
  int64_t pages = 0;
  int64_t descriptors = 0;
  int64_t threads = 0;
};

// A line of rank_soak's samples.
struct Sample {
  int64_t rank = 0, attempt = 0, step = 0;
  Usage own;
  int64_t files = 0;  // in /dev/shm
  Usage launcher;
};

std::string content_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::vector<Sample> read_samples(const std::string& path) {
  std::vector<Sample> samples;
  std::istringstream lines(content_of(path));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    Sample s;
    words >> s.rank >> s.attempt >> s.step >> s.own.pages >> s.own.descriptors >> s.own.threads >>
        s.files >> s.launcher.pages >> s.launcher.descriptors >> s.launcher.threads;
    if (words) samples.push_back(s);
  }
  return samples;
}

double mebibytes(int64_t pages) {
  return static_cast<double>(pages) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

// Every sample of a rank compared with the first sample of the same attempt, and that one with the
// first sample of the job.
void expect_flat_ranks(const std::vector<Sample>& samples) {
  constexpr double kMostMebibytes = 8;
  std::map<std::pair<int64_t, int64_t>, Sample> first;  // by rank and attempt
  for (const Sample& s : samples) {
    const Sample& start = first.try_emplace({s.rank, s.attempt}, s).first->second;
    const Sample& of_job = std::find_if(samples.begin(), samples.end(), [&](const Sample& other) {
      return other.rank == s.rank;
    })[0];
    for (const Sample* before : {&start, &of_job}) {
      const auto where = testing::Message()
                         << "rank " << s.rank << ", attempt " << s.attempt << ", step " << s.step;
      EXPECT_LE(mebibytes(s.own.pages - before->own.pages), kMostMebibytes) << where;
      EXPECT_EQ(s.own.descriptors, before->own.descriptors) << where;
      EXPECT_LE(s.own.threads, before->own.threads + 1) << where;  // the one that kills
    }
  }
}

// The launcher keeps a few hundred bytes of each attempt for its report. While it looks for records
// it has a folder and a file open for a moment.
void expect_flat_job(const std::vector<Sample>& samples) {
  constexpr double kMostMebibytes = 4;
  constexpr int64_t kMostOpenForAMoment = 2;
  const Sample& first = samples.front();
  for (const Sample& s : samples) {
    const auto where = testing::Message() << "attempt " << s.attempt << ", step " << s.step;
    EXPECT_LE(mebibytes(s.launcher.pages - first.launcher.pages), kMostMebibytes) << where;
    EXPECT_LE(s.launcher.descriptors, first.launcher.descriptors + kMostOpenForAMoment) << where;
    EXPECT_EQ(s.launcher.threads, first.launcher.threads) << where;
    EXPECT_TRUE(s.files == first.files || !jobs_are_boxed()) << s.files << where;
  }
}

TEST(Soak, AJobThatIsKilledAtRandomTimesStaysFlatAndGivesTheSameLosses) {
  constexpr int64_t kMostSteps = 100'000'000, kMostReference = 20'000;
  const auto seconds = static_cast<int64_t>(env_number("FLOW_TEST_SECONDS", 60));
  const TempFolder folder;
  const std::string killed = folder.file("killed"), whole = folder.file("whole");
  std::filesystem::create_directories(killed);
  std::filesystem::create_directories(whole);
  const std::string flowrun = kPrograms + "/flowrun", program = kPrograms + "/rank_soak";
  const auto end = static_cast<int64_t>(std::time(nullptr)) + seconds;

  const JobResult job =
      run_job({flowrun, "-n", "2", "--max-restarts", "1000000", "--report", folder.file("report"),
               program, killed, std::to_string(kMostSteps), std::to_string(end),
               std::to_string(env_number("FLOW_TEST_SEED", 1))},
              {.limit_s = static_cast<int>(seconds) + 120});

  const std::string losses = content_of(killed + "/losses");
  const auto num_steps = static_cast<int64_t>(losses.size() / sizeof(double));
  const int64_t compared = std::min(num_steps, kMostReference);
  const JobResult reference = run_job({flowrun, "-n", "2", "--report", folder.file("report"),
                                       program, whole, std::to_string(compared)},
                                      {.limit_s = 600});
  const std::vector<Sample> samples = read_samples(killed + "/samples");
  const std::string kills = content_of(killed + "/kills");
  const auto num_kills = std::count(kills.begin(), kills.end(), '\n');
  int64_t num_checkpoints = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(killed + "/saved"))
    ++num_checkpoints;
  const std::string expected = content_of(whole + "/losses");

  EXPECT_EQ(job.exit_code, 0) << job.output.substr(job.output.size() -
                                                   std::min<size_t>(job.output.size(), 5000));
  EXPECT_EQ(reference.exit_code, 0) << reference.output;
  EXPECT_GE(num_kills, seconds / 20);
  EXPECT_GE(num_steps, seconds * 10);
  EXPECT_TRUE(losses.substr(0, expected.size()) == expected) << "the losses differ";
  EXPECT_EQ(expected.size(), static_cast<size_t>(compared) * sizeof(double));
  EXPECT_LE(num_checkpoints, 5) << "in the folder of checkpoints, of which it keeps three";
  ASSERT_FALSE(samples.empty());
  expect_flat_ranks(samples);
  expect_flat_job(samples);
  std::cout << num_kills << " kills, " << num_steps << " steps, of which " << compared
            << " are compared, " << samples.size() << " samples; flowrun grew by "
            << mebibytes(samples.back().launcher.pages - samples.front().launcher.pages)
            << " MiB\n";
  expect_nothing_remains(job);
}

}  // namespace
}  // namespace flow
