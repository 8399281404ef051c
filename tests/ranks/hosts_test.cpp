// Tests of jobs on two hosts: how they start and end, and what is refused
// (tests/ranks/two_hosts.h).
#include <gtest/gtest.h>

#include "tests/ranks/two_hosts.h"

namespace flow {
namespace {

// The losses are those that OneFlow's documentation prints for this program.
TEST(Hosts, TrainTogether) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts("start_b $BIN/ddp; start_a $BIN/ddp", {kJobSecret});

  expect_words(job.output, {"a ended with 0:\n", "b ended with 0:\n",
                            "[0] 500/500 loss:4.547473508864641e-12\n",
                            "[1] 500/500 loss:6.184563972055912e-11\n"});
  expect_nothing_remains(job);
}

TEST(Hosts, MayBeOneHostUnderTwoNames) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      "job='--nnodes 2'; on_b() { \"$@\"; }\n"
      "start_b sh -c 'echo $(hostname)'; start_a --output plain sh -c 'echo $(hostname)'",
      {});

  expect_words(job.output, {"a ended with 0:\n", "host-a\n", "host-a-node1\n", "b ended with 0:"});
}

TEST(Hosts, AreNumberedAsNodes) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      "start_b --nproc_per_node 2 $BIN/rank_fault who\n"
      "start_a --nproc_per_node 2 $BIN/rank_fault who",
      {kJobSecret});

  expect_words(job.output, {"[0] rank 0: 0 on node 0\n", "[1] rank 1: 1 on node 0\n",
                            "[2] rank 2: 0 on node 1\n", "[3] rank 3: 1 on node 1\n"});
}

TEST(Hosts, AreStartedByARemoteShell) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      "printf '#!/bin/sh\\nshift; exec nsenter -t %s -n -u sh -c \"$*\"\\n' $b > agent\n"
      "chmod +x agent\n"
      "$BIN/flowrun --hosts 10.77.5.1:1,10.77.5.2:2 --rsh-agent ./agent "
      "sh -c 'echo \"$(hostname) has $1\"' sh \"a 'word' \\$b\" > a.out 2>&1 & of_a=$!",
      {});

  expect_words(job.output, {"a ended with 0:\n", "[0] host-a has a 'word' $b\n",
                            "[1] host-b has a 'word' $b\n", "[2] host-b has a 'word' $b\n"});
  expect_nothing_remains(job);
}

TEST(Hosts, NeedASecret) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts("start_b true; start_a true", {});

  expect_words(job.output, {"a ended with 64:\n", "b ended with 64:\n", "FLOW_JOB_SECRET"});
}

TEST(Hosts, NeedTheSameSecretAndCommand) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      "try_b() { start_b \"$@\"; wait $of_b; cat b.out; }\n"
      "echo another secret of sixteen > secret; chmod 600 secret\n"
      "start_a --join-timeout 2 true; try_b --secret-file secret true\n"
      "chmod 644 secret; try_b --secret-file secret true\n"
      "FLOW_JOB_SECRET=short try_b true\n"
      "try_b false",
      {kJobSecret});

  expect_words(job.output,
               {"it does not accept the secret of this node", "it does not know the secret",
                "can be accessed by other users", "the secret has 5 characters",
                "node 0 was started with another program", "a ended with 71:\n",
                "node 1 did not connect to 10.77.5.1:29500 within 2 s"});
}

// The job runs even if other programs connect to its port.
TEST(Hosts, AreNotDisturbedByGarbage) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = run_on_two_hosts(
      "start_a --nproc_per_node 2 echo well\n"
      "on_b bash -c 'until exec 3<> /dev/tcp/10.77.5.1/29500; do sleep 0.05; done\n"
      "head -c 100000 /dev/urandom > /dev/tcp/10.77.5.1/29500; exec sleep 100' 2>/dev/null & "
      "silent=$!\n"
      "until_in a.out 'refused a connection'; start_b echo well; wait $of_a; kill $silent",
      {kJobSecret});

  expect_words(job.output, {"a ended with 0:\n", "refused a connection from 10.77.5.2",
                            "[2] well\n", "b ended with 0:"});
}

TEST(Hosts, PassSignalsOn) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts("kill -TERM $of_a");

  expect_words(job.output, {"a ended with 0:\n", "[3] asked to stop\n", "b ended with 0:\n"});
  expect_nothing_remains(job);
}

TEST(Hosts, ALostRankIsReportedByItsNode) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts("kill -KILL $(pid_on_b '^[^ ]*rank_fault until')");

  expect_words(job.output, {"a ended with 72:\n", "b ended with 72:\n", R"("signal": 9)",
                            R"("last_calls": [)", R"("host": "host-b")"});
  expect_nothing_remains(job);
}

TEST(Hosts, ALostDaemonIsReported) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts("kill -KILL $(pid_on_b '^orted')");

  expect_words(job.output,
               {"a ended with 72:\n", "b ended with 72:\n", R"("cause": "node_lost")",
                "node 1 (host-b, 10.77.5.2) is lost: its daemon was ended by signal 9"});
  expect_nothing_remains(job);
}

TEST(Hosts, ALostNodeIsReported) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts("kill -KILL $(pid_on_b 'flowrun --node_rank 1')");

  expect_words(job.output,
               {"a ended with 72:\n", R"("cause": "node_lost")", "it closed the connection"});
}

TEST(Hosts, ALostHeadEndsTheOthers) {
  FLOW_SKIP_WITHOUT_TWO_HOSTS();
  const JobResult job = disturb_two_hosts("kill -KILL $of_a");

  expect_words(job.output, {"b ended with 72:\n", "node 0 (10.77.5.1) is lost", R"("node": 0)"});
}

}  // namespace
}  // namespace flow
