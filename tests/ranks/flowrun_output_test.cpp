// The output of ranks and the report of a job, and what flowrun says if they cannot be written.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "tests/ranks/flowrun_job.h"

namespace flow {
namespace {

TEST(FlowrunOutput, OfEveryRankCanHaveFilesOfItsOwn) {
  const JobResult job =
      run_job({"sh", "-c",
               "folder=$(mktemp -d) && " + kPrograms +
                   "/flowrun -n 2 --output-dir $folder/new sh -c 'echo out; echo err >&2'\n"
                   "cd $folder/new && head -n 5 * | tr '\\n' ' '; rm -r $folder"});

  EXPECT_EQ(job.exit_code, 0) << job.output;
  expect_words(job.output, {"rank_0.err <== err", "rank_0.out <== out", "rank_1.out <== out"});
}

TEST(FlowrunOutput, ThatIsLostEndsTheJobWith74) {
  for (const std::string ranks : {"--ranks=2", "--ranks=threads:2"}) {
    const JobResult job =
        run_job({"sh", "-c",
                 "folder=$(mktemp -d) && ln -s /dev/full $folder/rank_0.out && " + kPrograms +
                     "/flowrun " + ranks + " --report " + report_file() +
                     " --output-dir $folder sh -c 'echo out; echo out'\n"
                     "status=$?; rm -r $folder; exit $status"});

    EXPECT_EQ(job.exit_code, 74) << job.output;
    expect_words(job.output, {"cannot be written: No space left on device"});
    expect_words(read_report(), {R"("cause": "error")", "has lost output", "No space left"});
  }
}

// The failure of another rank is what the user has to know first.
TEST(FlowrunOutput, ThatIsLostIsNotTheCauseOfAFailure) {
  const JobResult job =
      run_job({"sh", "-c",
               "folder=$(mktemp -d) && ln -s /dev/full $folder/rank_0.out && " + kPrograms +
                   "/flowrun -n 2 --report " + report_file() +
                   " --output-dir $folder sh -c 'echo out; exit $((3 * OMPI_COMM_WORLD_RANK))'\n"
                   "status=$?; rm -r $folder; exit $status"});

  EXPECT_EQ(job.exit_code, 3) << job.output;
  expect_words(read_report(), {R"("message": "rank 1 ended with exit code 3")"});
}

// dd makes the pipe non-blocking for all that write to it.
TEST(FlowrunOutput, ArrivesWholeAtASlowReaderOfANonBlockingPipe) {
  const JobResult job =
      run_job({"sh", "-c",
               "(dd if=/dev/null oflag=nonblock status=none; exec " + kPrograms +
                   "/flowrun --ranks=threads:1 seq 300000) | (sleep 0.5; wc -l)"});

  EXPECT_EQ(job.exit_code, 0) << job.output;
  EXPECT_EQ(job.output, "300000\n");
}

TEST(FlowrunOutput, AReportThatCannotBeWrittenIsSaid) {
  for (const auto& [file, why] :
       {std::pair("/dev/full", "No space left"), {"/no/such/folder/report", "No such file"}}) {
    const JobResult job =
        run_job({kPrograms + "/flowrun", "--report", file, "-n", "1", "sh", "-c", "exit 3"});

    EXPECT_EQ(job.exit_code, 3) << job.output;
    expect_words(job.output, {"exit code 3; the report cannot be written to ", file, why});
  }
}

TEST(FlowrunOutput, AReportOfAnEarlierJobIsRemoved) {
  run_job(flowrun({"-n", "1"}, {"false"}));
  ASSERT_TRUE(std::filesystem::exists(report_file()));

  run_job(flowrun({"-n", "1"}, {"true"}));

  EXPECT_FALSE(std::filesystem::exists(report_file()));
}

}  // namespace
}  // namespace flow
