// Jobs on two hosts that take long: all collectives, and hosts that fall silent, which only the
// heartbeats between nodes can find.
#include <gtest/gtest.h>

#include "tests/ranks/two_hosts.h"

namespace flow {
namespace {

TEST(SlowHosts, GiveTheBitsOfThreads) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult threads = run_job({FLOW_PROGRAMS "/rank_digest", "3"});

  const JobResult job = run_on_two_hosts(
      "start_b $BIN/rank_digest; start_a --output plain --nproc_per_node 2 $BIN/rank_digest",
      {kJobSecret});

  expect_words(job.output, {"a ended with 0:\n" + threads.output, "b ended with 0:\n"});
  EXPECT_EQ(job.remains, std::vector<std::string>{});
}

TEST(SlowHosts, AJobIsStartedAgainOnTheSameNodes) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      "start_b $BIN/rank_train $PWD/run 7; start_a --max-restarts 1 $BIN/rank_train $PWD/run 7",
      {kJobSecret});

  expect_words(job.output, {"a ended with 0:\n", "b ended with 0:\n", "flowrun: restart 1 of 1",
                            "step 11: loss", R"("attempts": [)"});
  EXPECT_EQ(job.remains, std::vector<std::string>{});
}

TEST(SlowHosts, ACutCableEndsBothSides) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts("ip link set va down");

  expect_words(job.output, {"a ended with 72:\n", "b ended with 72:\n", R"("cause": "node_lost")",
                            "node 1 (host-b, 10.77.5.2) is lost: it was not heard of for 5 s",
                            "node 0 (10.77.5.1) is lost: it was not heard of for 5 s"});
  EXPECT_EQ(job.remains, std::vector<std::string>{});
}

TEST(SlowHosts, AStoppedNodeIsLost) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts(
      "p=$(pid_on_b 'flowrun --node_rank 1'); kill -STOP $p; wait $of_a; kill -CONT $p");

  expect_words(job.output, {"a ended with 72:\n", "b ended with 72:\n",
                            "node 1 (host-b, 10.77.5.2) is lost: it was not heard of for 5 s"});
  EXPECT_EQ(job.remains, std::vector<std::string>{});
}

}  // namespace
}  // namespace flow
