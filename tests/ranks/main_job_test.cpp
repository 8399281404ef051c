// The main job (examples/train_gpt.cpp, tools/quickstart): results do not depend on ranks, what is
// wrong ends the program, and what a user sees.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/error.h"
#include "support/run_checks.h"
#include "support/run_folder.h"
#include "tests/support/job.h"

namespace flow {
namespace {

namespace fs = std::filesystem;

const std::string kPrograms = FLOW_PROGRAMS;

// A folder for the runs of one test.
class MainJob : public testing::Test {
 protected:
  MainJob() { fs::create_directories(folder_); }

  ~MainJob() override { fs::remove_all(folder_); }

  std::string run_folder(const std::string& name) const { return folder_ / name; }

  // The command line of a training under the launcher.
  std::string command(const std::string& ranks, const std::string& options,
                      const std::string& run) const {
    return kPrograms + "/flowrun --report " + folder_.string() + "/report.json --ranks=" + ranks +
           ' ' + kPrograms + "/train_gpt --data " FLOW_SOURCES "/examples --run " +
           run_folder(run) + ' ' + options;
  }

  static JobResult run(const std::string& command) {
    return run_job({"sh", "-c", command}, {.environment = {"FLOW_TIMEOUT_S=60"}, .limit_s = 300});
  }

  JobResult train(const std::string& ranks, const std::string& options,
                  const std::string& run_name) const {
    JobResult job = run(command(ranks, options, run_name));
    EXPECT_EQ(job.exit_code, 0) << job.output;
    return job;
  }

  std::string read(const std::string& run, const std::string& file) const {
    std::stringstream text;
    text << std::ifstream(folder_ / run / file).rdbuf();
    return text.str();
  }

  // The log without the only numbers that are measured.
  std::vector<nlohmann::json> steps(const std::string& run) const {
    std::vector<nlohmann::json> steps;
    std::istringstream lines(read(run, "steps.jsonl"));
    for (std::string line; std::getline(lines, line);) {
      steps.push_back(nlohmann::json::parse(line));
      EXPECT_GT(steps.back().at("tokens_per_s"), 0);
      steps.back().erase("tokens_per_s");
    }
    return steps;
  }

 private:
  fs::path folder_ = testing::TempDir() + "main_job_" + std::to_string(getpid());
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    lines.push_back(line);
  return lines;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(MainJob, ThreadAndProcessRanksWriteTheSameLog) {
  train("threads:4", "--pp 2 --dp 2 --steps 4", "threads");
  train("4", "--pp 2 --dp 2 --steps 4", "processes");

  ASSERT_EQ(steps("threads").size(), 4U);
  EXPECT_EQ(steps("threads"), steps("processes"));
}

TEST_F(MainJob, EveryLayoutTrainsAsOneRankDoes) {
  train("threads:1", "--steps 4", "alone");
  const std::vector<nlohmann::json> alone = steps("alone");
  ASSERT_EQ(alone.size(), 4U);
  for (const std::string layout :
       {"--pp 4", "--dp 4", "--tp 4", "--pp 2 --tp 2", "--dp 2 --tp 2", "--pp 2 --dp 2"}) {
    train("threads:4", layout + " --steps 4", "ranks");
    const std::vector<nlohmann::json> got = steps("ranks");
    ASSERT_EQ(got.size(), alone.size()) << layout;
    for (size_t i = 0; i < alone.size(); ++i) {
      for (const char* name : {"loss", "grad_norm", "lr", "validation_loss"}) {
        const double expected = alone[i].at(name);
        EXPECT_NEAR(got[i].at(name), expected, 1e-4 * expected) << layout << ", step " << i;
      }
    }
  }
}

// Each rank takes its part of the batch in an order that its own seed decides. The text consists of
// runs of one character each, so batches have different losses before the first step.
TEST_F(MainJob, AFirstLossOtherThanOneRanksEndsTheProgram) {
  fs::create_directories(run_folder("text"));
  {
    std::ofstream text(run_folder("text/runs.txt"));
    for (char character = 'A'; character <= 'z'; ++character)
      text << std::string(2000, character);
  }
  const JobResult job = run(kPrograms + "/flowrun -n 4 sh -c '" + kPrograms + "/train_gpt --data " +
                            run_folder("text") + " --pp 2 --dp 2 --run " + run_folder("seeds") +
                            " --steps 4 --seed $OMPI_COMM_WORLD_RANK'");

  EXPECT_EQ(job.exit_code, 1) << job.output;
  EXPECT_TRUE(has(job.output, "[check] the ranks do not compute what one rank computes"))
      << job.output;
}

TEST(RunChecks, RefuseAnotherFirstLoss) {
  EXPECT_NO_THROW(examples::check_first_loss(4.6, 4.6));
  EXPECT_NO_THROW(examples::check_first_loss(4.60001, 4.6));
  EXPECT_THROW(examples::check_first_loss(4.6001, 4.6), Error);
  EXPECT_THROW(examples::check_first_loss(4.5999, 4.6), Error);
  EXPECT_THROW(examples::check_first_loss(std::nan(""), 4.6), Error);
}

TEST(RunChecks, RefuseLossesThatDifferAfterACheckpoint) {
  const std::vector<double> losses = {3, 2, 1};
  EXPECT_NO_THROW(examples::check_resumed_losses(std::vector<double>{2, 1}, losses));
  const double next = std::nextafter(2, 3);
  EXPECT_THROW(examples::check_resumed_losses(std::vector<double>{next, 1}, losses), Error);
  EXPECT_THROW(examples::check_resumed_losses(std::vector<double>{3, 2}, losses), Error);
  EXPECT_THROW(examples::check_resumed_losses(std::vector<double>{4, 3, 2, 1}, losses), Error);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THROW(examples::check_resumed_losses(std::vector<double>{nan}, losses), Error);
}

TEST(RunChecks, SayThatALossIsNaN) {
  const std::vector<double> losses = {3, std::nan("")};
  try {
    examples::check_resumed_losses(losses, losses);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_TRUE(has(error.what(), "the loss of step 2 of 2 after a checkpoint is NaN"))
        << error.what();
  }
}

TEST(RunLog, ALossThatIsNaNIsReadAgain) {
  const std::string path = testing::TempDir() + str("run_log_", getpid(), ".jsonl");
  examples::RunLog(path, 0).add({.loss = std::nan(""), .grad_norm = HUGE_VAL});
  std::ifstream file(path);
  const nlohmann::json line = nlohmann::json::parse(file);

  const examples::RunLog log(path, 1);
  fs::remove(path);

  EXPECT_TRUE(line.at("loss").is_null());
  ASSERT_EQ(log.records().size(), 1U);
  EXPECT_TRUE(std::isnan(log.records()[0].loss));
  EXPECT_TRUE(std::isnan(log.records()[0].grad_norm));
}

// Stops a training after its first steps, goes on, and compares with one that was not stopped.
TEST_F(MainJob, AResumedTrainingWritesTheLogOfOneThatWasNotStopped) {
  const std::string options = "--pp 2 --dp 2 --steps 24";
  const JobResult stopped =
      run(command("threads:4", options, "parts") + " > " + run_folder("out") +
          " & pid=$!; until grep -q 'step 1/' " + run_folder("out") +
          "; do sleep 0.05; done; kill -TERM $pid; wait $pid; status=$?; cat " + run_folder("out") +
          "; exit $status");
  ASSERT_EQ(stopped.exit_code, 0) << stopped.output;
  ASSERT_TRUE(has(stopped.output, "stopped at step ")) << stopped.output;
  const size_t before = steps("parts").size();
  ASSERT_LT(before, 24U);
  const JobResult resumed = train("threads:4", options + " --resume", "parts");
  EXPECT_TRUE(has(resumed.output, "resumed at step " + std::to_string(before) + '\n'));
  train("4", options, "whole");

  EXPECT_EQ(steps("parts"), steps("whole"));
}

TEST_F(MainJob, AnEarlierRunIsKeptAndAStrangeFolderIsLeftAlone) {
  train("threads:1", "--steps 4", "run");
  const std::string first = read("run", "steps.jsonl");
  train("threads:1", "--steps 5", "run");
  EXPECT_EQ(read("run.1", "steps.jsonl"), first);
  EXPECT_EQ(steps("run").size(), 5U);

  fs::create_directories(run_folder("strange"));
  std::ofstream(run_folder("strange") + "/letter") << "dear reader";
  const JobResult job = run(command("threads:2", "--dp 2 --steps 4", "strange"));
  EXPECT_EQ(job.exit_code, 74) << job.output;
  EXPECT_TRUE(has(job.output, "is not the folder of a run")) << job.output;
  EXPECT_EQ(read("strange", "letter"), "dear reader");
}

TEST_F(MainJob, ItsFolderHoldsLogTimelinesCheckpointsAndASelfContainedReport) {
  const JobResult job = train("threads:4", "--pp 2 --dp 2 --steps 6", "run");
  EXPECT_TRUE(has(job.output, "report: " + run_folder("run") + "/report.html"));
  EXPECT_EQ(steps("run").size(), 6U);
  EXPECT_TRUE(fs::is_directory(run_folder("run") + "/checkpoints/step-000000006"));
  for (const char* file : {"timeline.json", "predicted.json"}) {
    const JobResult compared = run(kPrograms + "/flow-sim show " + run_folder("run") + '/' + file);
    EXPECT_EQ(compared.exit_code, 0) << compared.output;
    EXPECT_TRUE(has(compared.output, "1f1b, 2 stages, 8 micro-batches")) << compared.output;
  }

  std::string report = read("run", "report.html");
  const size_t sample = report.find("<pre class=\"text\">");
  ASSERT_NE(sample, std::string::npos);
  report.erase(sample, report.find("</pre>", sample) - sample);  // it may hold any text
  for (const char* part :
       {"http://", "https://", "src=", "url(", "@import", "<script", "<link", "../"}) {
    EXPECT_FALSE(has(report, part)) << part;
  }
  for (const char* part :
       {"prefers-color-scheme: dark", "Loss in nats per character", "counting characters",
        "counting triples", "Tokens per second", "Learning rate", "Measured: bubble ",
        "Predicted: bubble ", "Where ranks wait", "Memory by owner", "optimizer state",
        "Redistributions", "all_reduce", "train_gpt.cpp:", "Sample", "h.0.attn.c_q.weight",
        "no rank waits for ever", "examples/train_gpt.cpp:"}) {
    EXPECT_TRUE(has(report, part)) << part;
  }
  for (const char* missing : {"There is no timeline", "Nothing was recorded", "bubble -"})
    EXPECT_FALSE(has(report, missing)) << missing;
}

TEST_F(MainJob, PrintsFewLinesBeforeTheFirstStep) {
  for (const std::string ranks : {"threads:4", "4"}) {
    const std::vector<std::string> lines =
        lines_of(train(ranks, "--pp 2 --dp 2 --steps 2", "run").output);
    const auto first = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
      return has(line, "step 1/2  loss ");
    });
    ASSERT_NE(first, lines.end());
    EXPECT_LE(first - lines.begin(), 25);
    const auto count = [&](const char* start) {
      return std::count_if(lines.begin(), first,
                           [&](const std::string& line) { return has(line, start); });
    };
    EXPECT_EQ(count("certificate: 4 ranks, no rank waits for ever"), 1) << ranks;
    EXPECT_EQ(count("memory, predicted: ranks 0, 1: "), 1) << ranks;
  }
}

// script gives the launcher a terminal. What is drawn in place ends with \r and fits in a line.
TEST_F(MainJob, ProgressIsInPlaceOnATerminal) {
  for (const std::string ranks : {"threads:2", "2"}) {
    const JobResult job = run("script -qec 'stty cols 72; " +
                              command(ranks, "--pp 2 --steps 3", "run") + "' /dev/null");
    ASSERT_EQ(job.exit_code, 0) << job.output;
    size_t frames = 0;
    for (size_t at = job.output.find("/3  loss "); at != std::string::npos;
         at = job.output.find("/3  loss ", at + 1)) {
      const size_t end = job.output.find_first_of("\r\n", at);
      const size_t begin = job.output.find_last_of("\r\n", at) + 1;
      ASSERT_NE(end, std::string::npos);
      EXPECT_EQ(job.output[end], '\r');
      EXPECT_LT(end - begin, 72U) << job.output.substr(begin, end - begin);
      EXPECT_TRUE(has(job.output.substr(begin, end - begin), "#") || frames == 0);
      ++frames;
    }
    EXPECT_GE(frames, 2U) << ranks << '\n' << job.output;
    EXPECT_TRUE(has(job.output, "validation 1/")) << "the final validation takes long";
    EXPECT_TRUE(has(job.output, "replay 1/"));
    EXPECT_FALSE(has(job.output, "step 1/3")) << "plain lines are for files and pipes";
  }
}

}  // namespace
}  // namespace flow
