// Passes on small graphs given as text.
#include <string>

#include <gtest/gtest.h>

#include "graph/ir/ir_text.h"
#include "graph/passes/common_subexpressions.h"
#include "graph/passes/copies.h"
#include "graph/passes/dead_nodes.h"
#include "graph/passes/identities.h"
#include "graph/passes/overlap_redistributions.h"
#include "graph/passes/pass.h"
#include "graph/passes/recompute_activations.h"
#include "graph/passes/redistributions.h"
#include "graph/trace/tracer.h"
#include "nn/flow.h"

namespace flow::graph {
namespace {

// The text after a pass and the removal of dead nodes.
std::string after(int64_t (*pass)(Graph&), const std::string& text, int64_t want_changes) {
  Graph graph = parse_graph(text, op_table());
  verify(graph);
  EXPECT_EQ(pass(graph), want_changes) << text;
  verify(graph);
  eliminate_dead_nodes(graph);
  return to_string(graph);
}

TEST(Passes, EqualNodesAreMerged) {
  EXPECT_EQ(after(merge_common_subexpressions,
                  "input %0 : (2,) float32 cpu\n"
                  "%1 = relu(%0) {} : (2,) float32 cpu @F0 a.cpp:1\n"
                  "%2 = relu(%0) {} : (2,) float32 cpu @F0 a.cpp:2\n"
                  "%3 = exp(%1) {} : (2,) float32 cpu @F0 a.cpp:3\n"
                  "%4 = exp(%2) {} : (2,) float32 cpu @F0 a.cpp:4\n"
                  "return %3, %4\n",
                  2),
            "input %0 : (2,) float32 cpu\n"
            "%1 = relu(%0) {} : (2,) float32 cpu @F0 a.cpp:1\n"
            "%2 = exp(%1) {} : (2,) float32 cpu @F0 a.cpp:3\n"
            "return %2, %2\n");
}

TEST(Passes, LargeActivationsAreComputedAgain) {
  const auto text = [](const char* shape, const char* in_backward, const char* read) {
    return str("input %0 : ", shape, " float32 cpu\n", "%1 = exp(%0) {} : ", shape,
               " float32 cpu @F0 a.cpp:1\n", "%2 = gelu(%1) {} : ", shape,
               " float32 cpu @F0 a.cpp:2\n", "%3 = exp(%2) {} : ", shape,
               " float32 cpu @F0 a.cpp:3\n", in_backward, "%5 = mul(%3, ", read, ") {} : ", shape,
               " float32 cpu @B0 a.cpp:3\n", "%6 = gelu_grad(%5, %1) {} : ", shape,
               " float32 cpu @B0 a.cpp:2\n", "return %6\n");
  };
  const std::string large = "(1024, 2048)";
  const std::string again =
      str("%7 = gelu(%1) {} : ", large, " float32 cpu @B0 transient a.cpp:2\n");
  const std::string before = text(large.c_str(), "", "%2");
  EXPECT_EQ(after(recompute_activations, before, 1), text(large.c_str(), again.c_str(), "%7"));
  const std::string small = text("(1024, 2047)", "", "%2");
  Graph untouched = parse_graph(small, op_table());
  EXPECT_EQ(recompute_activations(untouched), 0) << "less than 8 MiB";
}

// A redistribution of %input among two ranks, of (64, 64) float32.
std::string moved(const char* output, const char* input, const char* sbp, const std::string& end) {
  return str(output, " = redistribute(", input, ") {placement=cpu:(0, 1), nd_sbp=", sbp,
             ", grad_sbp=none} : (64, 64) float32 [", sbp, " on cpu:(0, 1)] @", end, "\n");
}

// The text of the graph after its redistributions were overlapped with work.
std::string overlapped(const std::string& text, const OverlapOptions& options, int64_t want) {
  Graph graph = parse_graph(text, op_table());
  verify(graph);
  EXPECT_EQ(overlap_redistributions(graph, options), want);
  verify(graph);
  return to_string(graph);
}

TEST(Passes, SumsOfGradientsMoveToWhereTheirAddendsAre) {
  const std::string partial = "(64, 64) float32 [P on cpu:(0, 1)]",
                    whole = "(64, 64) float32 [B on cpu:(0, 1)]";
  const std::string inputs = str("input %0 : ", partial, "\ninput %1 : ", whole, "\n");
  const std::string first = str("%2 = neg(%0) {} : ", partial, " @B0 a.cpp:1\n"),
                    second = str("%3 = neg(%2) {} : ", partial, " @B0 a.cpp:2\n"),
                    third = str("%4 = neg(%3) {} : ", partial, " @B0 a.cpp:3\n");
  const std::string updates =
      str("%8 = add(%1, %5) {alpha=1.0} : ", whole, " @U0 a.cpp:7\n",
          "%9 = add(%8, %6) {alpha=1.0} : ", whole, " @U0 a.cpp:8\n",
          "%10 = add(%9, %7) {alpha=1.0} : ", whole, " @U0 a.cpp:9\n", "return %10\n");
  const auto text = [&](const char* ends, const std::vector<int>& order) {
    const std::vector<std::string> nodes = {first,
                                            second,
                                            third,
                                            moved("%5", "%2", "B", "B0 a.cpp:4"),
                                            moved("%6", "%3", "B", str("B0 ", ends, "a.cpp:5")),
                                            moved("%7", "%4", "B", "B0 a.cpp:6")};
    std::string all = inputs;
    for (const int i : order)
      all += nodes[static_cast<size_t>(i)];
    return all + updates;
  };
  // The first two are 32 KiB, which is the size of the first bucket.
  EXPECT_EQ(overlapped(text("", {0, 1, 2, 3, 4, 5}), {.first_bucket_mb = 1.0 / 32}, 3),
            text("with_bucket ", {0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(overlapped(text("", {0, 1, 2, 3, 4, 5}), {}, 3), text("", {0, 3, 1, 4, 2, 5}))
      << "less than a bucket";
  EXPECT_EQ(overlapped(text("", {0, 1, 2, 3, 4, 5}), {.enabled = false}, 0),
            text("", {0, 1, 2, 3, 4, 5}));
}

TEST(Passes, OtherRedistributionsOverlapIfThereIsWork) {
  const std::string partial = "(64, 64) float32 [P on cpu:(0, 1)]",
                    whole = "(64, 64) float32 [B on cpu:(0, 1)]";
  const auto text = [&](const char* transfer, bool is_early) {
    const std::string made = str("%1 = neg(%0) {} : ", partial, " @B0 a.cpp:1\n"),
                      other = str("%2 = matmul(%9, %9) {} : ", whole, " @B0 a.cpp:2\n"),
                      sum = moved("%3", "%1", "B", str("B0 ", transfer, "a.cpp:3"));
    return str("input %0 : ", partial, "\ninput %9 : ", whole, "\n", made,
               is_early ? sum + other : other + sum, "%4 = mul(%3, %2) {} : ", whole,
               " @B0 a.cpp:4\nreturn %4\n");
  };
  const OverlapOptions any{.least_kb = 16, .least_hidden_us = 1};
  EXPECT_EQ(overlapped(text("", false), any, 1), text("background ", true));
  EXPECT_EQ(overlapped(text("", false), {.least_kb = 17, .least_hidden_us = 1}, 0), text("", false))
      << "too few bytes";
  EXPECT_EQ(overlapped(text("", false), {.least_kb = 16, .least_hidden_us = 1e6}, 0),
            text("", false))
      << "too little work";
}

TEST(Passes, WorkThatATransferDoesNotNeedRunsWhileItDoes) {
  const std::string partial = "(64, 64) float32 [P on cpu:(0, 1)]",
                    whole = "(64, 64) float32 [B on cpu:(0, 1)]";
  const std::string inputs = str("input %0 : ", partial, "\ninput %9 : ", whole, "\n"),
                    made = str("%1 = neg(%0) {} : ", partial, " @B0 a.cpp:1\n"),
                    reader = str("%4 = neg(%3) {} : ", whole, " @B0 a.cpp:4\n");
  const auto sum = [](const char* transfer) {
    return moved("%3", "%1", "B", str("B0 ", transfer, "a.cpp:3"));
  };
  const OverlapOptions any{.least_kb = 16, .least_hidden_us = 1};

  const std::string weight = str("%2 = matmul(%9, %9) {} : ", whole, " @B0 a.cpp:2\n"),
                    end = str("%5 = mul(%4, %2) {} : ", whole, " @B0 a.cpp:5\nreturn %5\n");
  EXPECT_EQ(overlapped(inputs + weight + made + sum("") + reader + end, any, 2),
            inputs + made + sum("background ") + weight + reader + end);

  const std::string forward = str("%2 = matmul(%9, %9) {} : ", whole, " @F0 a.cpp:2\n");
  EXPECT_EQ(overlapped(inputs + forward + made + sum("") + reader + end, any, 0),
            inputs + forward + made + sum("") + reader + end)
      << "backward does not wait with forward";

  const std::string read = str("%6 = neg(%2) {} : ", whole, " @B0 a.cpp:6\n"),
                    both = str("%7 = add(%6, %3) {alpha=1.0} : ", whole, " @B0 a.cpp:7\n"),
                    last = str("%5 = mul(%7, %2) {} : ", whole, " @B0 a.cpp:5\nreturn %5\n");
  EXPECT_EQ(overlapped(inputs + weight + read + made + sum("") + both + last, any, 3),
            inputs + made + sum("background ") + weight + read + both + last)
      << "a node waits with its reader";

  const std::string addend = str("%2 = exp(%0) {} : ", partial, " @B0 a.cpp:2\n"),
                    bucket = moved("%6", "%2", "B", "B0 a.cpp:6"),
                    results = str("%7 = neg(%6) {} : ", whole, " @U0 a.cpp:7\nreturn %4, %7\n");
  EXPECT_EQ(overlapped(inputs + addend + made + bucket + sum("") + reader + results, any, 1),
            inputs + addend + bucket + made + sum("") + reader + results)
      << "the sum of a weight's gradient does not wait";

  // Keeping %8 until the transfer runs would raise the peak from two tensors to three.
  const std::string scalar = "() float32 [B on cpu:(0, 1)]",
                    large = str("%8 = exp(%9) {} : ", whole, " @F0 a.cpp:8\n",
                                "%2 = sum(%8) {dims=[0, 1], keepdim=false} : ", scalar,
                                " @B0 a.cpp:2\n");
  EXPECT_EQ(overlapped(inputs + large + made + sum("") + reader + end, any, 0),
            inputs + large + made + sum("") + reader + end);
}

TEST(Passes, NodesOfAnotherPhaseAreKept) {
  const std::string text =
      "input %0 : (2,) float32 cpu\n"
      "%1 = relu(%0) {} : (2,) float32 cpu @F0 a.cpp:1\n"
      "%2 = relu(%0) {} : (2,) float32 cpu @B0 a.cpp:1\n"
      "return %1, %2\n";
  EXPECT_EQ(after(merge_common_subexpressions, text, 0), text);
}

TEST(Passes, NodesWithAnEffectAreNeitherMergedNorRemoved) {
  const std::string text =
      "input %0 : (2,) float32 cpu\n"
      "%1 = graph_print(%0) {name='a%20b', module=''} : (2,) float32 cpu @F0 a.cpp:1\n"
      "%2 = graph_print(%0) {name='a%20b', module=''} : (2,) float32 cpu @F0 a.cpp:1\n"
      "return %0\n";
  EXPECT_EQ(after(merge_common_subexpressions, text, 0), text);
}

TEST(Passes, TransientNodesAreKeptApart) {
  const std::string text =
      "input %0 : (2,) float32 cpu\n"
      "%1 = relu(%0) {} : (2,) float32 cpu @F0 transient a.cpp:1\n"
      "%2 = relu(%0) {} : (2,) float32 cpu @F0 transient a.cpp:1\n"
      "return %1, %2\n";
  EXPECT_EQ(after(merge_common_subexpressions, text, 0), text);
}

TEST(Passes, ValuesThatAreWrittenInPlaceAreKeptApart) {
  Graph graph;
  {
    Trace trace;
    const Tensor x = trace.add_input(zeros({4, 2}));
    const Tensor mean = zeros({2}), var = zeros({2});
    batch_norm(x, mean, var, {.training = true});
    graph = trace.finish({mean, var}).graph;
  }
  EXPECT_EQ(merge_common_subexpressions(graph), 0);
}

TEST(Passes, DrawsAreKeptApart) {
  Graph graph;
  {
    Trace trace;
    const Tensor x = trace.add_input(zeros({2}));
    graph = trace.finish({rand({2}) + x, rand({2}) + x}).graph;
  }
  EXPECT_EQ(merge_common_subexpressions(graph), 0);
}

TEST(Passes, APermutationAndItsInverseGo) {
  EXPECT_EQ(after(remove_identities,
                  "input %0 : (2, 3) float32 cpu\n"
                  "%1 = permute(%0) {dims=[1, 0]} : (3, 2) float32 cpu @F0 a.cpp:1\n"
                  "%2 = permute(%1) {dims=[1, 0]} : (2, 3) float32 cpu @F0 a.cpp:2\n"
                  "%3 = relu(%2) {} : (2, 3) float32 cpu @F0 a.cpp:3\n"
                  "return %3\n",
                  1),
            "input %0 : (2, 3) float32 cpu\n"
            "%1 = relu(%0) {} : (2, 3) float32 cpu @F0 a.cpp:3\n"
            "return %1\n");
}

TEST(Passes, APermutationOfEqualSizesIsKept) {
  const std::string text =
      "input %0 : (2, 2) float32 cpu\n"
      "%1 = permute(%0) {dims=[1, 0]} : (2, 2) float32 cpu @F0 a.cpp:1\n"
      "return %1\n";
  EXPECT_EQ(after(remove_identities, text, 0), text);
}

TEST(Passes, ACastToAWiderDtypeAndBackGoes) {
  EXPECT_EQ(after(remove_identities,
                  "input %0 : (2,) bfloat16 cpu\n"
                  "%1 = cast(%0) {dtype=float32} : (2,) float32 cpu @F0 a.cpp:1\n"
                  "%2 = cast(%1) {dtype=bfloat16} : (2,) bfloat16 cpu @F0 a.cpp:2\n"
                  "%3 = relu(%2) {} : (2,) bfloat16 cpu @F0 a.cpp:3\n"
                  "return %3\n",
                  1),
            "input %0 : (2,) bfloat16 cpu\n"
            "%1 = relu(%0) {} : (2,) bfloat16 cpu @F0 a.cpp:3\n"
            "return %1\n");
  const std::string rounds =
      "input %0 : (2,) float32 cpu\n"
      "%1 = cast(%0) {dtype=bfloat16} : (2,) bfloat16 cpu @F0 a.cpp:1\n"
      "%2 = cast(%1) {dtype=float32} : (2,) float32 cpu @F0 a.cpp:2\n"
      "return %2\n";
  EXPECT_EQ(after(remove_identities, rounds, 0), rounds);
}

TEST(Passes, RedistributionsThatFollowEachOtherAreJoined) {
  const PlanningWorld world(2);
  const Placement pair("cpu", {0, 1});
  Graph graph;
  {
    Trace trace;
    const Tensor x = trace.add_input(zeros({4, 4}, {.placement = pair, .sbp = sbp::split(0)}));
    const Tensor there = x.to_global({.sbp = sbp::broadcast});
    const Tensor back = there.to_global({.sbp = sbp::split(0)});
    const Tensor on = x.to_global({.sbp = sbp::broadcast}).to_global({.sbp = sbp::split(1)});
    graph = trace.finish({relu(back), relu(on)}).graph;
  }
  EXPECT_EQ(join_redistributions(graph), 2);
  eliminate_dead_nodes(graph);
  verify(graph);
  EXPECT_EQ(graph.nodes.size(), 3U) << to_string(graph);
  EXPECT_EQ(graph.nodes[0].op->name, std::string("redistribute"));
  EXPECT_EQ(graph.nodes[0].inputs[0], graph.inputs[0]);
  EXPECT_EQ(graph.nodes[1].inputs[0], graph.inputs[0]);
}

TEST(Passes, GradientsAreNotCopied) {
  EXPECT_EQ(after(remove_gradient_copies,
                  "input %0 : (2,) float32 cpu\n"
                  "%1 = clone(%0) {} : (2,) float32 cpu @F0 a.cpp:1\n"
                  "%2 = relu(%1) {} : (2,) float32 cpu @B0 a.cpp:1\n"
                  "%3 = clone(%2) {} : (2,) float32 cpu @B0 a.cpp:1\n"
                  "return %3\n",
                  1),
            "input %0 : (2,) float32 cpu\n"
            "%1 = clone(%0) {} : (2,) float32 cpu @F0 a.cpp:1\n"
            "%2 = relu(%1) {} : (2,) float32 cpu @B0 a.cpp:1\n"
            "return %2\n");
}

TEST(Passes, WrittenGradientsThatAreExpandedStayCopied) {
  const std::string text =
      "input %0 : (1,) float32 cpu\n"
      "%1 = expand(%0) {shape=[2]} : (2,) float32 cpu @B0 a.cpp:1\n"
      "%2 = clone(%1) {} : (2,) float32 cpu @B0 a.cpp:1\n"
      "%3 = relu(%2) {} : (2,) float32 cpu @F0 a.cpp:1\n"
      "%4 = copy_(%2, %3) {} : (2,) float32 cpu @F0 a.cpp:1\n"
      "return %4\n";

  EXPECT_EQ(after(remove_gradient_copies, text, 0), text);
}

TEST(Passes, ExactOnesAloneRunWhereAsked) {
  UnloweredStep step{parse_graph("input %0 : (2,) float32 cpu\nreturn %0\n", op_table())};
  const std::vector<PassResult> exact = run_passes(step, optimizing_passes(PassSet::kExact));
  ASSERT_EQ(exact.size(), 11U);
  EXPECT_EQ(exact[1].name, std::string("merge_common_subexpressions"));
  EXPECT_EQ(run_passes(step, optimizing_passes()).size(), 16U);
}

}  // namespace
}  // namespace flow::graph
