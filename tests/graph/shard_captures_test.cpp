// Captured tensors that lie cut, on small graphs given as text.
#include "graph/passes/shard_captures.h"

#include <string>

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "graph/ir/ir_text.h"

namespace flow::graph {
namespace {

std::string cut(const std::string& text, const ShardOptions& options) {
  Graph graph = parse_graph(text, op_table());
  verify(graph);
  const ShardedCapture cut{0, sbp::split(0)};
  shard_captures(graph, {&cut, 1}, options);
  verify(graph);
  return to_string(graph);
}

constexpr const char* kStep =
    "input %0 : (4, 2) float32 [S(0) on cpu:(0, 1)]\n"
    "capture %1 : (4, 2) float32 [B on cpu:(0, 1)]\n"
    "%2 = cast(%1) {dtype=bfloat16} : (4, 2) bfloat16 [B on cpu:(0, 1)] @F0 a.cpp:1\n"
    "%3 = cast(%0) {dtype=bfloat16} : (4, 2) bfloat16 [S(0) on cpu:(0, 1)] @F0 a.cpp:1\n"
    "%4 = linear(%3, %2, none) {} : (4, 4) bfloat16 [S(0) on cpu:(0, 1)] @F0 a.cpp:1\n"
    "%5 = matmul(%4, %2) {} : (4, 2) bfloat16 [S(0) on cpu:(0, 1)] @B0 a.cpp:1\n"
    "return %5\n";

TEST(CutCaptures, CastsGoBeforeGathersThatEachPhaseHasOfItsOwn) {
  const std::string got = cut(kStep, {.by_phase = true});
  EXPECT_EQ(got,
            "input %0 : (4, 2) float32 [S(0) on cpu:(0, 1)]\n"
            "capture %1 : (4, 2) float32 [S(0) on cpu:(0, 1)]\n"
            "%2 = cast(%0) {dtype=bfloat16} : (4, 2) bfloat16 [S(0) on cpu:(0, 1)] @F0 a.cpp:1\n"
            "%3 = cast(%1) {dtype=bfloat16} : (4, 2) bfloat16 [S(0) on cpu:(0, 1)] @F0 transient "
            "a.cpp:1\n"
            "%4 = redistribute(%3) {placement=cpu:(0, 1), nd_sbp=B, grad_sbp=none} : (4, 2) "
            "bfloat16 [B on cpu:(0, 1)] @F0 transient a.cpp:1\n"
            "%5 = linear(%2, %4, none) {} : (4, 4) bfloat16 [S(0) on cpu:(0, 1)] @F0 a.cpp:1\n"
            "%6 = cast(%1) {dtype=bfloat16} : (4, 2) bfloat16 [S(0) on cpu:(0, 1)] @B0 transient "
            "a.cpp:1\n"
            "%7 = redistribute(%6) {placement=cpu:(0, 1), nd_sbp=B, grad_sbp=none} : (4, 2) "
            "bfloat16 [B on cpu:(0, 1)] @B0 transient a.cpp:1\n"
            "%8 = matmul(%5, %7) {} : (4, 2) bfloat16 [S(0) on cpu:(0, 1)] @B0 a.cpp:1\n"
            "return %8\n");
}

TEST(CutCaptures, UsesWithNothingBetweenShareAGather) {
  const std::string got = cut(kStep, {});
  const size_t first = got.find("redistribute(");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(got.find("redistribute(", first + 1), std::string::npos) << got;
}

TEST(CutCaptures, OncePerStepKeepsTheGatheredTensor) {
  EXPECT_EQ(cut(kStep, {.once = true, .by_phase = true}).find("transient"), std::string::npos);
}

TEST(CutCaptures, AnUpdateKeepsItsPart) {
  const std::string got = cut(
      "input %0 : (4, 2) float32 [S(0) on cpu:(0, 1)]\n"
      "capture %1 : (4, 2) float32 [B on cpu:(0, 1)]\n"
      "%2 = redistribute(%1) {placement=cpu:(0, 1), nd_sbp=S(0), grad_sbp=none} : (4, 2) float32 "
      "[S(0) on cpu:(0, 1)] @U0 a.cpp:1\n"
      "%3 = add(%2, %0) {alpha=1} : (4, 2) float32 [S(0) on cpu:(0, 1)] @U0 a.cpp:1\n"
      "%4 = redistribute(%3) {placement=cpu:(0, 1), nd_sbp=B, grad_sbp=none} : (4, 2) float32 [B "
      "on cpu:(0, 1)] @U0 a.cpp:1\n"
      "%5 = copy_(%1, %4) {} : (4, 2) float32 [B on cpu:(0, 1)] @U0 a.cpp:1\n"
      "write %1 <- %5\n"
      "return %0\n",
      {});
  EXPECT_EQ(got,
            "input %0 : (4, 2) float32 [S(0) on cpu:(0, 1)]\n"
            "capture %1 : (4, 2) float32 [S(0) on cpu:(0, 1)]\n"
            "%2 = add(%1, %0) {alpha=1.0} : (4, 2) float32 [S(0) on cpu:(0, 1)] @U0 a.cpp:1\n"
            "write %1 <- %2\n"
            "return %0\n");
}

}  // namespace
}  // namespace flow::graph
