// Tests of jobs on two hosts that take long: all collectives, and hosts that stop responding, which
// only the heartbeats between nodes can detect.
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
  expect_nothing_remains(job);
}

TEST(SlowHosts, AJobIsStartedAgainOnTheSameNodes) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      "start_b $BIN/rank_train $PWD/run 7; start_a --max-restarts 1 $BIN/rank_train $PWD/run 7",
      {kJobSecret});

  expect_words(job.output, {"a ended with 0:\n", "b ended with 0:\n", "flowrun: restart 1 of 1",
                            "step 11: loss", R"("attempts": [)"});
  expect_nothing_remains(job);
}

TEST(SlowHosts, ACutCableEndsBothSides) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts("ip link set va down");

  expect_words(job.output, {"a ended with 72:\n", "b ended with 72:\n", R"("cause": "node_lost")",
                            "node 1 (host-b, 10.77.5.2) is lost: it sent nothing for 30 s",
                            "node 0 (10.77.5.1) is lost: it sent nothing for 30 s"});
  expect_nothing_remains(job);
}

TEST(SlowHosts, AStoppedNodeIsLost) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts(
      "p=$(pid_on_b 'flowrun --node_rank 1'); kill -STOP $p; wait $of_a; kill -CONT $p");

  expect_words(job.output, {"a ended with 72:\n", "b ended with 72:\n",
                            "node 1 (host-b, 10.77.5.2) is lost: it sent nothing for 30 s"});
  expect_nothing_remains(job);
}

// Part of a script: after a job was restarted because a lost host is back, asks it to stop.
const std::string kRestarted =
    "until_in a.out 'restart 1 of 1'; until_times a.out ready 8\n"
    "kill -TERM $of_a; wait $of_a\n";
const std::string kUntilTimes =
    "until_times() { until [ $(grep -c \"$2\" \"$1\") -ge $3 ]; do sleep 0.02; done; }\n"
    "words=\"--nproc_per_node 2 --max-restarts 1 $BIN/rank_fault until_asked\"\n";

TEST(SlowHosts, AJobGoesOnWhenItsCableIsMended) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      kUntilTimes +
          "start_b $words; start_a $words; until_times a.out ready 4\n"
          "ip link set va down; until_in b.out 'waiting for it'; ip link set va up\n" +
          kRestarted,
      {kJobSecret});

  expect_words(job.output, {"a ended with 0:\n", "b ended with 0:\n", "asked to stop",
                            "node 0 (10.77.5.1) is lost: it sent nothing for 30 s; waiting",
                            R"("attempts": [)", R"("cause": "node_lost")"});
  expect_nothing_remains(job);
}

TEST(SlowHosts, AJobGoesOnWhenItsNodeIsStartedAgainByHand) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job =
      run_on_two_hosts(kUntilTimes +
                           "start_b $words; start_a $words; until_times a.out ready 4\n"
                           "kill -KILL $of_b $(pid_on_b 'flowrun --node_rank 1'); wait $of_b\n"
                           "until_in a.out 'is lost'; start_b $words\n" +
                           kRestarted,
                       {kJobSecret});

  expect_words(job.output, {"a ended with 0:\n", "b ended with 0:\n", "asked to stop"});
}

TEST(SlowHosts, AJobStartsItsLostNodeAgain) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      kUntilTimes +
          "printf '#!/bin/sh\nshift; exec nsenter -t %s -n -u sh -c \"$*\"\n' $b > agent\n"
          "chmod +x agent\n"
          "$BIN/flowrun --hosts 10.77.5.1:2,10.77.5.2:2 --rsh-agent ./agent --max-restarts 1 "
          "$BIN/rank_fault until_asked > a.out 2>&1 & of_a=$!\n"
          "until_times a.out ready 4; kill -KILL $(pid_on_b 'flowrun --nnodes 2 --node-rank 1')\n" +
          kRestarted,
      {});

  expect_words(job.output, {"a ended with 0:\n", "asked to stop"});
}

TEST(SlowHosts, AJobEndsWhenItsLostNodeDoesNotComeBack) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      kUntilTimes +
          "start_b $words; start_a --join-timeout 2 $words; until_times a.out ready 4\n"
          "kill -KILL $of_b $(pid_on_b 'flowrun --node_rank 1'); wait $of_b; of_b=\n",
      {kJobSecret});

  expect_words(job.output, {"a ended with 75:\n",
                            "is lost: it closed the connection; the job was not restarted because "
                            "node 1 did not connect to 10.77.5.1:29500 within 2 s",
                            R"("not_restarted": "node 1 did not connect)", R"("exit_code": 75)"});
}

}  // namespace
}  // namespace flow
