// Ranks that are processes, with a device each or one for all: jobs of rank_devices.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/job.h"

namespace flow {

namespace {

JobResult run_ranks_of(const std::string& name, const std::vector<std::string>& environment = {}) {
  const std::string programs = FLOW_PROGRAMS;
  return run_job({programs + "/flowrun", "-n", "2", programs + "/rank_devices", name},
                 {.environment = environment, .limit_s = 120});
}

void expect_lines(const JobResult& job, const std::string& how) {
  EXPECT_EQ(job.exit_code, 0) << job.output;
  for (const std::string rank : {"rank 0: ", "rank 1: "})
    EXPECT_NE(job.output.find(rank + how), std::string::npos) << job.output;
  expect_nothing_remains(job);
}

TEST(CudaProcesses, ExchangeByNcclWithTheBitsOfHostMemory) {
  expect_lines(run_ranks_of("collectives", {"CUDA_EMULATOR_MISSING="}), "same, with NCCL");
}

TEST(CudaProcesses, AddByNcclIfAllowed) {
  expect_lines(run_ranks_of("sums", {"CUDA_EMULATOR_MISSING=", "FLOW_FAST_REDUCE=1"}),
               "same, with NCCL");
}

TEST(CudaProcesses, ExchangeWithoutNccl) {
  expect_lines(run_ranks_of("collectives", {"CUDA_EMULATOR_MISSING=libnccl"}),
               "same, without NCCL");
}

TEST(CudaProcesses, OfOneDeviceReadEachOthersMemory) {
  expect_lines(run_ranks_of("one_device", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"}),
               "same, without NCCL, by pointers");
}

// As in containers that are kept apart, and for slices of a GPU.
TEST(CudaProcesses, OfOneDeviceUseHostMemoryWhereTheyCannotShare) {
  const JobResult job =
      run_ranks_of("one_device", {"CUDA_EMULATOR_MISSING=", "CUDA_EMULATOR_IPC=0"});
  expect_lines(job, "same, without NCCL");
  EXPECT_EQ(job.output.find("by pointers"), std::string::npos) << job.output;
}

TEST(CudaProcesses, OfOneDeviceUseHostMemoryIfNothingIsCached) {
  const JobResult job = run_ranks_of("one_device", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=0"});
  expect_lines(job, "same, without NCCL");
  EXPECT_EQ(job.output.find("by pointers"), std::string::npos) << job.output;
}

TEST(CudaProcesses, OfOneDeviceGatherAnEmptyPart) {
  expect_lines(run_ranks_of("empty_part", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"}),
               "same, without NCCL, by pointers");
}

// Both ranks learn that they call different collectives.
TEST(CudaProcesses, OfOneDeviceFindCallsThatDiffer) {
  const JobResult job =
      run_ranks_of("different_calls", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"});

  EXPECT_NE(job.exit_code, 0) << job.output;
  EXPECT_NE(job.output.find("ranks disagree"), std::string::npos) << job.output;
  EXPECT_LT(job.seconds, 60);
  expect_nothing_remains(job);
}

TEST(CudaProcesses, SendMessagesByNccl) {
  expect_lines(run_ranks_of("messages", {"CUDA_EMULATOR_MISSING="}), "same, with NCCL");
}

TEST(CudaProcesses, SendMessagesWithoutNccl) {
  expect_lines(run_ranks_of("messages", {"CUDA_EMULATOR_MISSING=libnccl"}), "same, without NCCL");
}

// As between slices of one GPU.
TEST(CudaProcesses, SendMessagesThroughHostMemoryWhereNcclCannotConnect) {
  for (const std::string name : {"messages", "collectives"}) {
    SCOPED_TRACE(name);
    expect_lines(run_ranks_of(name, {"CUDA_EMULATOR_MISSING=", "CUDA_EMULATOR_CONNECT=0"}),
                 "same, without NCCL");
  }
}

// It has one group of calls of a thread in progress at most, which is enough for collectives.
TEST(CudaProcesses, SendMessagesThroughHostMemoryWhereNcclIsOld) {
  const std::vector<std::string> old = {"CUDA_EMULATOR_MISSING=",
                                        "CUDA_EMULATOR_NCCL_VERSION=22605"};
  expect_lines(run_ranks_of("messages", old), "same, without NCCL");
  expect_lines(run_ranks_of("collectives", old), "same, with NCCL");
}

// As between hosts.
TEST(CudaProcesses, KeepTheHostMemoryOfAReceiveThatIsDropped) {
  expect_lines(run_ranks_of("dropped_receive", {"CUDA_EMULATOR_MISSING=libnccl"}), "same");
}

// The other side would wait for it.
TEST(CudaProcesses, UseHostMemoryWhereNcclRefusesOneSide) {
  for (const std::string name :
       {"messages_without_senders", "messages_without_receivers", "collectives_without_a_member"}) {
    SCOPED_TRACE(name);
    const JobResult job = run_ranks_of(name, {"CUDA_EMULATOR_MISSING="});
    expect_lines(job, "same, without NCCL");
    EXPECT_LT(job.seconds, 60);
  }
}

TEST(CudaProcesses, OfOneDeviceSendMessagesByPointers) {
  for (const std::string name : {"messages_one_device", "messages_by_pointers"}) {
    SCOPED_TRACE(name);
    expect_lines(run_ranks_of(name, {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"}),
                 "same, without NCCL, by pointers");
  }
}

TEST(CudaProcesses, OfOneDevicePassEdgesOfPipelinesByPointers) {
  expect_lines(
      run_ranks_of("pipelines_by_pointers", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"}),
      "same, without NCCL, by pointers");
}

// The second one shares no memory, the first one's handles are not opened.
TEST(CudaProcesses, OfOneDeviceSendMessagesThroughHostMemoryWhereTheyCannotShare) {
  for (const std::string why : {"CUDA_EMULATOR_IPC=0", "FLOW_CUDA_CACHE=0"}) {
    const JobResult job = run_ranks_of("messages_one_device", {"CUDA_EMULATOR_MISSING=", why});
    expect_lines(job, "same, without NCCL");
    EXPECT_EQ(job.output.find("by pointers"), std::string::npos) << job.output;
  }
}

TEST(CudaProcesses, NameARankThatIsKilledBeforeItsMessage) {
  const JobResult job =
      run_ranks_of("killed_in_message", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"});

  EXPECT_EQ(job.exit_code, 72) << job.output;
  EXPECT_NE(job.output.find("rank 1 was ended by signal 9"), std::string::npos) << job.output;
  EXPECT_LT(job.seconds, 60);
  expect_nothing_remains(job);
}

TEST(CudaProcesses, OfOneDeviceFindMessagesOfTheWrongSize) {
  const JobResult job =
      run_ranks_of("message_of_wrong_size", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"});

  EXPECT_NE(job.exit_code, 0) << job.output;
  for (const std::string bytes : {"120000", "119996"})
    EXPECT_NE(job.output.find(bytes), std::string::npos) << job.output;
  EXPECT_LT(job.seconds, 60);
  expect_nothing_remains(job);
}

TEST(CudaProcesses, PassEdgesOfPipelinesByNccl) {
  expect_lines(run_ranks_of("pipeline", {"CUDA_EMULATOR_MISSING="}), "same, with NCCL");
}

TEST(CudaProcesses, MoveDataByNcclWhileAStepComputes) {
  expect_lines(run_ranks_of("transfers", {"CUDA_EMULATOR_MISSING="}), "same, with NCCL");
}

TEST(CudaProcesses, MoveDataThroughHostMemoryWhileAStepComputes) {
  expect_lines(run_ranks_of("transfers", {"CUDA_EMULATOR_MISSING=libnccl"}), "same, without NCCL");
}

TEST(CudaProcesses, OfOneDeviceMoveDataWhileAStepComputes) {
  expect_lines(
      run_ranks_of("transfers_one_device", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"}),
      "same, without NCCL, by pointers");
}

TEST(CudaProcesses, NameARankThatIsKilledDuringATransfer) {
  const JobResult job =
      run_ranks_of("killed_in_transfer", {"CUDA_EMULATOR_MISSING=", "FLOW_CUDA_CACHE=1"});

  EXPECT_EQ(job.exit_code, 72) << job.output;
  EXPECT_NE(job.output.find("rank 1 was ended by signal 9"), std::string::npos) << job.output;
  EXPECT_LT(job.seconds, 60);
  expect_nothing_remains(job);
}

// Neither rank pairs with a message of another tag.
TEST(CudaProcesses, NameTheMessageThatDoesNotCome) {
  for (const std::string name : {"lost_message", "lost_message_one_device"}) {
    const JobResult job = run_ranks_of(name, {"CUDA_EMULATOR_MISSING=", "FLOW_TIMEOUT_S=2"});

    EXPECT_NE(job.exit_code, 0) << job.output;
    EXPECT_NE(job.output.find("received nothing for 2 s"), std::string::npos) << job.output;
    EXPECT_NE(job.output.find("comm::"), std::string::npos) << job.output;
    EXPECT_LT(job.seconds, 60);
    expect_nothing_remains(job);
  }
}

// The memory of device 0 would be lost to each rank.
TEST(CudaProcesses, MakeNoContextOnTheDeviceOfAnotherRank) {
  expect_lines(run_ranks_of("asked_on_another_thread"), "same");
  expect_lines(run_ranks_of("freed_on_another_thread", {"FLOW_CUDA_CACHE=0"}), "same");
}

TEST(CudaProcesses, EndWhenNcclFailsInAMessage) {
  const JobResult job = run_ranks_of("message_failure", {"CUDA_EMULATOR_MISSING="});

  EXPECT_NE(job.exit_code, 0) << job.output;
  EXPECT_EQ(job.output.find("a context on a second device"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("NCCL failed: system error"), std::string::npos) << job.output;
  EXPECT_LT(job.seconds, 60);
  expect_nothing_remains(job);
}

// The device of rank 0 would wait forever, and the host for the device.
TEST(CudaProcesses, EndWhenNcclFailsInQueuedWork) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"failure_of_queued_work", "in queued work of ranks 0, 1, in comm::all_gather of 24 float32"},
      {"failure_of_queued_message", "in a queued message from rank 0 to rank 1"}};
  for (const auto& [name, call] : cases) {
    const JobResult job = run_ranks_of(name, {"CUDA_EMULATOR_MISSING="});

    EXPECT_NE(job.exit_code, 0) << job.output;
    for (const std::string& text : {"NCCL failed on rank 0 " + call, std::string("system error")})
      EXPECT_NE(job.output.find(text), std::string::npos) << job.output;
    EXPECT_EQ(job.output.find("rank 0: same"), std::string::npos) << job.output;  // it has read
    EXPECT_LT(job.seconds, 15);
    expect_nothing_remains(job);
  }
}

// Rank 0 would wait forever for the data of rank 1.
TEST(CudaProcesses, EndWhenNcclFailsOnOne) {
  const JobResult job = run_ranks_of("failure", {"CUDA_EMULATOR_MISSING="});

  EXPECT_NE(job.exit_code, 0) << job.output;
  EXPECT_EQ(job.output.find("a context on a second device"), std::string::npos) << job.output;
  EXPECT_NE(job.output.find("NCCL failed: system error"), std::string::npos) << job.output;
  EXPECT_LT(job.seconds, 60);
  expect_nothing_remains(job);
}

}  // namespace

}  // namespace flow
