// Certificates: programs that end are certified, and what would go wrong is named.
#include "graph/program/certificate.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/planner.h"
#include "boxing/redistribute_op.h"
#include "core/error.h"
#include "graph/program/memory_plan.h"
#include "graph/program/program.h"

namespace flow::graph {
namespace {

// Programs by hand, of steps on buffers of `kCount` floats.
constexpr int64_t kCount = 100;
const Placement kPair("cpu", {0, 1});

struct Hand {
  Program program;

  explicit Hand(int64_t rank) { program.rank = rank; }

  BufferId buffer(int64_t count = kCount) {
    program.buffers.push_back({.meta = local_meta({count}, float32, DeviceType::kCpu)});
    return static_cast<BufferId>(program.buffers.size() - 1);
  }

  Hand& send(int64_t to, int64_t tag, int64_t count = kCount) {
    program.steps.push_back({.body = SendStep{.peer = to, .tag = tag},
                             .inputs = {buffer(count)},
                             .file = "user.cpp",
                             .line = static_cast<uint32_t>(tag)});
    return *this;
  }

  // Starts a receive and waits for it.
  Hand& recv(int64_t from, int64_t tag, int64_t count = kCount) {
    return start_recv(from, tag, count).wait(program.steps.size() - 1);
  }

  Hand& start_recv(int64_t from, int64_t tag, int64_t count = kCount) {
    program.steps.push_back({.body = ReceiveStep{.peer = from, .tag = tag},
                             .outputs = {buffer(count)},
                             .file = "user.cpp",
                             .line = static_cast<uint32_t>(tag)});
    return *this;
  }

  // For what step `step` started.
  Hand& wait(size_t step) {
    program.steps.push_back({.body = WaitStep{.started = step},
                             .inputs = program.steps[step].inputs,
                             .outputs = program.steps[step].outputs});
    return *this;
  }

  // Like all_reduce, in the background.
  Hand& start_all_reduce(int64_t count, uint32_t line) {
    all_reduce(count, line);
    program.steps.back().in_background = true;
    return *this;
  }

  // A partial sum of so many elements becomes broadcast.
  Hand& all_reduce(int64_t count, uint32_t line) {
    const auto add = [&](const NdSbp& sbp) {
      program.buffers.push_back({.meta = global_meta({count}, float32, kPair, sbp, program.rank)});
      return static_cast<BufferId>(program.buffers.size() - 1);
    };
    const boxing::RedistributeAttrs attrs{.placement = kPair, .nd_sbp = sbp::broadcast};
    const auto* bytes = reinterpret_cast<const std::byte*>(&attrs);
    const boxing::Route route =
        boxing::find_route({count}, float32, {kPair, sbp::partial_sum}, {kPair, sbp::broadcast});
    program.steps.push_back(
        {.body = CollectiveStep{.op_call = {.op = &boxing::kRedistribute,
                                            .attrs = {bytes, bytes + sizeof(attrs)}},
                                .route = std::make_shared<const boxing::Route>(route)},
         .inputs = {add(sbp::partial_sum)},
         .outputs = {add(sbp::broadcast)},
         .file = "user.cpp",
         .line = line});
    return *this;
  }
};

std::string refusal(const Hand& a, const Hand& b) {
  const std::vector<Program> programs = {a.program, b.program};
  try {
    certify(programs);
  } catch (const InternalError& error) {
    return error.what();
  }
  return "certified";
}

bool has(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

TEST(Certificate, CountsWhatRanksDoTogether) {
  const std::vector<Program> programs = {
      Hand(0).send(1, 1).send(1, 2).all_reduce(8, 3).wait(0).wait(1).program,
      Hand(1).recv(0, 1).recv(0, 2).all_reduce(8, 3).program};
  const Certificate certificate = certify(programs);
  ASSERT_EQ(certificate.ranks.size(), 2U);
  EXPECT_EQ(certificate.ranks[0].num_messages, 2);
  EXPECT_EQ(certificate.ranks[0].num_collectives, 1);
  EXPECT_EQ(certificate.ranks[1].longest_queue, 2);
}

TEST(Certificate, NamesSwappedSends) {
  const std::string error = refusal(Hand(0).send(1, 2).send(1, 1), Hand(1).recv(0, 1).recv(0, 2));
  EXPECT_TRUE(has(error, "another order")) << error;
  EXPECT_TRUE(has(error, "rank 0 step 0: send to rank 1 of 400 bytes under tag 2 at user.cpp:2"))
      << error;
}

TEST(Certificate, NamesAMissingReceive) {
  const std::string waits = refusal(Hand(0).send(1, 1).wait(0), Hand(1));
  EXPECT_TRUE(has(waits, "ranks wait for ever: rank 0 step 1: wait for its send to rank 1"))
      << waits;
  const std::string lost = refusal(Hand(0).send(1, 1), Hand(1));
  EXPECT_TRUE(has(lost, "1 messages from rank 0 to rank 1 are never received")) << lost;
}

TEST(Certificate, NamesAMissingSend) {
  const std::string error = refusal(Hand(0), Hand(1).recv(0, 7));
  EXPECT_TRUE(has(error, "rank 1 step 1: receive from rank 0 of 400 bytes under tag 7")) << error;
}

TEST(Certificate, LetsReceivesStartBeforeTheirMessages) {
  const Hand sender = Hand(0).all_reduce(8, 3).send(1, 1).send(1, 2).wait(1).wait(2);
  const Hand early = Hand(1).start_recv(0, 1).start_recv(0, 2).all_reduce(8, 3).wait(0).wait(1);
  EXPECT_EQ(refusal(sender, early), "certified");
  EXPECT_NE(refusal(sender, Hand(1).recv(0, 1).all_reduce(8, 3).recv(0, 2)), "certified")
      << "the wait in front of the sum comes before the send";
  const std::string crossed =
      refusal(sender, Hand(1).start_recv(0, 1).start_recv(0, 2).all_reduce(8, 3).wait(1).wait(0));
  EXPECT_TRUE(has(crossed,
                  "receives end in another order than they start: rank 1 step 3: "
                  "receive from rank 0 of 400 bytes under tag 2"))
      << crossed;
  const std::string endless = refusal(Hand(0), Hand(1).start_recv(0, 1));
  EXPECT_TRUE(has(endless, "rank 1 starts 1 receives from rank 0 for which it never waits"))
      << endless;
}

// A transport may move a message only while its receiver waits for it.
TEST(Certificate, CountsAMessageAsReceivedOnceItsReceiverWaits) {
  const std::string error = refusal(Hand(0).send(1, 1).wait(0).all_reduce(8, 3),
                                    Hand(1).start_recv(0, 1).all_reduce(8, 3).wait(0));
  EXPECT_TRUE(has(error, "ranks wait for ever: rank 0 step 1: wait for its send to rank 1"))
      << error;
}

TEST(Certificate, NamesAnotherSize) {
  const std::string error = refusal(Hand(0).send(1, 1, 10), Hand(1).recv(0, 1, 11));
  EXPECT_TRUE(has(error, "of 44 bytes")) << error;
  EXPECT_TRUE(has(error, "of 40 bytes")) << error;
}

TEST(Certificate, NamesReorderedCollectives) {
  const std::string error =
      refusal(Hand(0).all_reduce(8, 3).all_reduce(9, 4), Hand(1).all_reduce(9, 4).all_reduce(8, 3));
  EXPECT_TRUE(has(error, "members of a group differ")) << error;
  EXPECT_TRUE(has(error, "user.cpp:3")) << error;
  EXPECT_TRUE(has(error, "user.cpp:4")) << error;
}

TEST(Certificate, NamesACollectiveThatOneRankLeavesOut) {
  const std::string error = refusal(Hand(0).all_reduce(8, 3), Hand(1));
  EXPECT_TRUE(has(error, "wait for ever: rank 0 step 0: all_reduce of float32 (8,)")) << error;
}

TEST(Certificate, NamesRanksThatWaitForEachOther) {
  const std::string error = refusal(Hand(0).recv(1, 1).send(1, 2), Hand(1).recv(0, 2).send(0, 1));
  EXPECT_TRUE(has(error, "rank 0 step 1: receive")) << error;
  EXPECT_TRUE(has(error, "rank 1 step 1: receive")) << error;
}

TEST(Certificate, CountsSendsAsUnbuffered) {
  const std::string error =
      refusal(Hand(0).send(1, 1).wait(0).recv(1, 2), Hand(1).send(0, 2).wait(0).recv(0, 1));
  EXPECT_TRUE(has(error, "ranks wait for ever")) << error;
}

TEST(Certificate, NamesTheOpThatSetsThePeak) {
  Hand hand(0);
  const BufferId a = hand.buffer(10), b = hand.buffer(20), c = hand.buffer(5);
  hand.program.steps = {
      {.body = ConvertStep{}, .outputs = {a}},
      {.body = ConvertStep{}, .inputs = {a}, .outputs = {b}, .file = "user.cpp", .line = 12},
      {.body = ConvertStep{}, .inputs = {b}, .outputs = {c}},
  };
  plan_memory(hand.program);
  const Certificate certificate = certify({&hand.program, 1});
  EXPECT_EQ(certificate.ranks[0].peak_bytes, 120);
  EXPECT_EQ(certificate.ranks[0].peak_at, "a copy user.cpp:12");
  EXPECT_EQ(certificate.ranks[0].arena_bytes, hand.program.arena_bytes);
}

TEST(Certificate, NamesAStepThatOnlyOneRankMaySkip) {
  const auto guarded = [](Hand hand, const NdSbp& sbp) {
    const BufferId guard = static_cast<BufferId>(hand.program.buffers.size());
    hand.program.buffers.push_back(
        {.meta = global_meta({}, bool_, kPair, sbp, hand.program.rank), .external = 0});
    for (Step& step : hand.program.steps)
      step.guard = guard;
    return hand;
  };
  const Hand a = Hand(0).all_reduce(8, 3), b = Hand(1).all_reduce(8, 3);
  EXPECT_EQ(refusal(guarded(a, sbp::broadcast), guarded(b, sbp::broadcast)), "certified");
  const std::string skips = refusal(guarded(a, sbp::broadcast), b);
  EXPECT_TRUE(has(skips, "one member of a group may skip")) << skips;
  const std::string partial = refusal(guarded(a, sbp::partial_max), guarded(b, sbp::partial_max));
  EXPECT_TRUE(has(partial, "may differ between ranks")) << partial;
  const Hand from = Hand(0).send(1, 1).wait(0), to = Hand(1).recv(0, 1);
  EXPECT_EQ(refusal(guarded(from, sbp::broadcast), guarded(to, sbp::broadcast)), "certified");
  const std::string message = refusal(guarded(from, sbp::broadcast), to);
  EXPECT_TRUE(has(message, "one side of a message may skip it")) << message;
}

TEST(Certificate, FollowsWhatRunsInTheBackground) {
  const Hand first = Hand(0).start_all_reduce(8, 1).all_reduce(4, 2).wait(0);
  const Hand second = Hand(1).all_reduce(4, 2).start_all_reduce(8, 1).wait(1);
  EXPECT_EQ(refusal(first, second), "certified")
      << "the two threads of a rank have separate orders";
  const std::vector<Program> programs = {first.program, second.program};
  EXPECT_EQ(certify(programs).ranks[1].num_collectives, 2);

  const std::string swapped =
      refusal(Hand(0).start_all_reduce(8, 1).start_all_reduce(4, 2).wait(0).wait(1),
              Hand(1).start_all_reduce(4, 2).start_all_reduce(8, 1).wait(0).wait(1));
  EXPECT_TRUE(has(swapped, "members of a group differ: rank ")) << swapped;
  EXPECT_TRUE(has(swapped, "in the background at user.cpp:1")) << swapped;

  const std::string alone =
      refusal(Hand(0).start_all_reduce(8, 1).wait(0), Hand(1).all_reduce(8, 1));
  EXPECT_TRUE(has(alone,
                  "ranks wait for ever: rank 0 step 0: wait for its end at user.cpp:1; "
                  "rank 1 step 0: all_reduce"))
      << alone;
}

// A gradient is made, summed in the background, and read.
struct SumInBackground : Hand {
  explicit SumInBackground(int64_t rank) : Hand(rank) {
    start_all_reduce(8, 1);
    const Step start = program.steps[0];
    const BufferId read = buffer(8);
    program.steps = {
        {.body = ConvertStep{}, .outputs = {start.inputs[0]}},
        start,
        {.body = ConvertStep{}, .inputs = {start.inputs[0]}, .outputs = {read}},
        {.body = WaitStep{.started = 1}, .inputs = start.inputs, .outputs = start.outputs},
        {.body = ConvertStep{}, .inputs = {start.outputs[0]}, .outputs = {read}}};
  }
};

std::string refusal_of_change(const std::function<void(Program&)>& change) {
  SumInBackground a(0), b(1);
  for (Hand* hand : {static_cast<Hand*>(&a), static_cast<Hand*>(&b)}) {
    change(hand->program);
    plan_memory(hand->program);
  }
  return refusal(a, b);
}

TEST(Certificate, NamesBuffersThatAreUsedWhileTheyMove) {
  EXPECT_EQ(refusal_of_change([](Program&) {}), "certified");
  const std::string read = refusal_of_change(
      [](Program& program) { program.steps[2].inputs[0] = program.steps[1].outputs[0]; });
  EXPECT_TRUE(has(read,
                  "step 2 (to_strided) uses a buffer before step 1 (redistribute) at "
                  "user.cpp:1 has ended"))
      << read;
  const std::string written = refusal_of_change(
      [](Program& program) { program.steps[2].outputs[0] = program.steps[1].inputs[0]; });
  EXPECT_TRUE(has(written, "uses a buffer before step 1")) << written;
  const std::string endless = refusal_of_change([](Program& program) {
    program.steps.erase(program.steps.begin() + 3, program.steps.end());
  });
  EXPECT_TRUE(has(endless, "no step waits for the end of step 1 (redistribute)")) << endless;
  const std::string early = refusal_of_change([](Program& program) {
    std::swap(program.steps[1], program.steps[3]);
    program.steps[1].body = WaitStep{.started = 3};
  });
  EXPECT_FALSE(early == "certified") << early;
}

// Writes a, computes b of a, c of b, and sends c to itself.
struct Chain : Hand {
  BufferId a = buffer(10), b = buffer(20), c = buffer(5), d = buffer(5);

  Chain() : Hand(0) {
    program.steps = {{.body = ConvertStep{}, .outputs = {a}},
                     {.body = ConvertStep{}, .inputs = {a}, .outputs = {b}},
                     {.body = ConvertStep{}, .inputs = {b}, .outputs = {c}},
                     {.body = SendStep{.peer = 0}, .inputs = {c}},
                     {.body = ReceiveStep{.peer = 0}, .outputs = {d}},
                     {.body = WaitStep{.started = 4}, .outputs = {d}},
                     {.body = WaitStep{.started = 3}, .inputs = {c}}};
    plan_memory(program);
  }

  std::string problem() const {
    try {
      certify({&program, 1});
    } catch (const InternalError& error) {
      return error.what();
    }
    return "certified";
  }
};

TEST(Certificate, NamesMemoryThatIsUsedWrongly) {
  EXPECT_EQ(Chain().problem(), "certified");
  Chain overlap;
  overlap.program.buffer(overlap.b).arena_offset = overlap.program.buffer(overlap.a).arena_offset;
  EXPECT_TRUE(has(overlap.problem(), "overlaps buffer")) << overlap.problem();
  Chain outside;
  outside.program.buffer(outside.c).arena_offset = outside.program.arena_bytes;
  EXPECT_TRUE(has(outside.problem(), "buffer 2 of step 2")) << outside.problem();
  Chain odd;
  odd.program.buffer(odd.c).arena_offset += 4;
  EXPECT_TRUE(has(odd.problem(), "buffer 2 of step 2")) << odd.problem();
  Chain early;
  early.program.steps[1].inputs = {early.c};
  plan_memory(early.program);
  EXPECT_TRUE(has(early.problem(), "reads buffer 2, which no step has written")) << early.problem();
  Chain lost;
  lost.program.steps.pop_back();
  plan_memory(lost.program);
  EXPECT_TRUE(has(lost.problem(), "no step waits for the end of step 3")) << lost.problem();
}

// Adds up two gradients, each of which is made in its place in the bucket.
struct InBucket : Hand {
  explicit InBucket(int64_t rank) : Hand(rank) {
    all_reduce(2 * kCount, 1);
    const auto route = program.steps[0].as<CollectiveStep>()->route;
    const BufferId memory = buffer(2 * kCount);
    Step bucket{.body = BucketStep{route}};
    program.steps.clear();
    for (int64_t i = 0; i < 2; ++i) {
      for (std::vector<BufferId>* ids : {&bucket.inputs, &bucket.outputs}) {
        ids->push_back(buffer());
        program.buffer(ids->back()).base = memory;
        program.buffer(ids->back()).offset = i * kCount;
      }
      program.steps.push_back({.body = ConvertStep{}, .outputs = {bucket.inputs.back()}});
    }
    program.steps.push_back(bucket);
  }
};

TEST(Certificate, NamesAnAddendThatIsOverwritten) {
  InBucket a(0), b(1);
  for (Hand* hand : {static_cast<Hand*>(&a), static_cast<Hand*>(&b)})
    plan_memory(hand->program);
  EXPECT_EQ(refusal(a, b), "certified");
  for (Hand* hand : {static_cast<Hand*>(&a), static_cast<Hand*>(&b)}) {
    std::vector<BufferId>& addends = hand->program.steps.back().inputs;
    addends[1] = addends[0];
    plan_memory(hand->program);
  }
  const std::string twice = refusal(a, b);
  EXPECT_TRUE(has(twice, "step 2 (sum_bucket) writes sum 0 over addend 1")) << twice;
}

TEST(Certificate, NamesMemoryThatIsUsedWhileAMessageArrives) {
  // While d arrives, b is computed of a, and c of `read`.
  const auto problem = [](BufferId Chain::*read, bool shares_memory) {
    Chain it;
    it.program.steps = {{.body = ConvertStep{}, .outputs = {it.a}},
                        {.body = ReceiveStep{.peer = 0}, .outputs = {it.d}},
                        {.body = ConvertStep{}, .inputs = {it.a}, .outputs = {it.b}},
                        {.body = ConvertStep{}, .inputs = {it.*read}, .outputs = {it.c}},
                        {.body = SendStep{.peer = 0}, .inputs = {it.c}},
                        {.body = WaitStep{.started = 1}, .outputs = {it.d}},
                        {.body = WaitStep{.started = 4}, .inputs = {it.c}}};
    plan_memory(it.program);
    if (shares_memory) it.program.buffer(it.d).arena_offset = it.program.buffer(it.a).arena_offset;
    return it.problem();
  };
  EXPECT_EQ(problem(&Chain::b, false), "certified");
  const std::string early = problem(&Chain::d, false);
  EXPECT_TRUE(has(early, "step 3 (to_strided) uses a buffer before step 1 (recv) has ended"))
      << early;
  const std::string shared = problem(&Chain::b, true);
  EXPECT_TRUE(has(shared,
                  "buffer 3, used from step 1 (recv) on, overlaps buffer 0, used until "
                  "step 2 (to_strided)"))
      << shared;
}

}  // namespace
}  // namespace flow::graph
