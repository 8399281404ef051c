// Elementwise nodes that write over an input: text before and after the pass, and their programs.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "graph/ir/ir_text.h"
#include "graph/passes/overwrite_inputs.h"
#include "graph/program/lower.h"
#include "graph/program/program.h"
#include "nn/flow.h"

namespace flow::graph {
namespace {

const std::string kMeta = "(4, 4) float32 cpu";
const std::string kBegin = "input %0 : " + kMeta + "\ncapture %1 : " + kMeta + "\n";

std::string product(const char* result, const char* a, const char* b) {
  return str(result, " = matmul(", a, ", ", b, ") {} : ", kMeta, " @F0 a.cpp:1\n");
}

std::string sum(const char* result, const char* a, const char* b, const char* over = "") {
  return str(result, " = add(", a, ", ", b, ") {alpha=1.0} : ", kMeta, " @F0 ", over, "a.cpp:2\n");
}

std::string after(const std::string& text, int64_t want_changes) {
  Graph graph = parse_graph(text, op_table());
  verify(graph);
  EXPECT_EQ(overwrite_inputs(graph), want_changes) << text;
  verify(graph);
  return to_string(graph);
}

void expect_untouched(const std::string& text) {
  EXPECT_EQ(after(text, 0), text);
}

TEST(OverwriteInputs, TheFirstThatNothingReadsLaterIsWrittenOver) {
  const std::string begin = kBegin + product("%2", "%0", "%1") + product("%3", "%2", "%1");
  const std::string end = product("%5", "%4", "%1") + "return %5\n";
  EXPECT_EQ(after(begin + sum("%4", "%2", "%3") + end, 1),
            begin + sum("%4", "%2", "%3", "over 0 ") + end);
  const std::string reader = product("%5", "%4", "%2") + "return %5\n";
  EXPECT_EQ(after(begin + sum("%4", "%2", "%3") + reader, 1),
            begin + sum("%4", "%2", "%3", "over 1 ") + reader);
}

TEST(OverwriteInputs, InputsCapturesAndResultsStay) {
  expect_untouched(kBegin + sum("%2", "%0", "%1") + "return %2\n");
  expect_untouched(kBegin + product("%2", "%0", "%1") + sum("%3", "%2", "%1") + "return %3, %2\n");
  expect_untouched(kBegin + product("%2", "%0", "%1") + sum("%3", "%2", "%1") +
                   "write %1 <- %2\nreturn %3\n");
}

TEST(OverwriteInputs, WhatHasViewsStays) {
  const std::string view = "%3 = permute(%2) {dims=[1, 0]} : " + kMeta + " @F0 a.cpp:1\n";
  expect_untouched(kBegin + product("%2", "%0", "%1") + view + sum("%4", "%2", "%1") +
                   product("%5", "%4", "%3") + "return %5\n");
  expect_untouched(kBegin + product("%2", "%0", "%1") + view + sum("%4", "%3", "%1") +
                   product("%5", "%4", "%2") + "return %5\n");
}

TEST(OverwriteInputs, OtherShapesAndDTypesStay) {
  expect_untouched(kBegin + product("%2", "%0", "%1") + "%3 = cast(%2) {dtype=float64} : (4, 4) " +
                   "float64 cpu @F0 a.cpp:2\nreturn %3\n");
  expect_untouched(
      "input %0 : (4, 4) float32 cpu\n"
      "capture %1 : (4, 1) float32 cpu\n"
      "%2 = matmul(%0, %1) {} : (4, 1) float32 cpu @F0 a.cpp:1\n" +
      sum("%3", "%0", "%2") + "return %3\n");
}

// A result that is not the last is written before later instructions read the inputs.
TEST(OverwriteInputs, AFusedNodeMayReadAfterItsFirstResult) {
  const std::string begin = kBegin + product("%2", "%0", "%1");
  const auto line = [&](const std::string& outputs, const std::string& returned,
                        const std::string& metas, const std::string& over) {
    return outputs + " = fused_elementwise(%2, %1) {program=[t0 = exp(x0), t1 = mul(t0, x1), " +
           "return " + returned + "]} : " + metas + " @F0 " + over + "a.cpp:2\n";
  };
  const std::string end = product("%4", "%3", "%1") + "return %4\n";
  EXPECT_EQ(after(begin + line("%3", "t1", kMeta, "") + end, 1),
            begin + line("%3", "t1", kMeta, "over 0 ") + end);
  expect_untouched(begin + line("%3", "t0", kMeta, "") + end);
  expect_untouched(begin + line("%3, %4", "t0 t1", kMeta + ", " + kMeta, "") + "return %3, %4\n");
}

// Whether the program's sum writes over one of its inputs.
bool overwrites(const std::string& text) {
  const Graph graph = parse_graph(text, op_table());
  verify(graph);
  const Program program = lower(graph, plain_order(graph), 0, kernel_table());
  const auto step = std::find_if(program.steps.begin(), program.steps.end(), [](const Step& it) {
    const auto* kernel = it.as<KernelStep>();
    return kernel != nullptr && kernel->op_call.op == op_table().find("add");
  });
  return std::find(step->inputs.begin(), step->inputs.end(), step->outputs[0]) !=
         step->inputs.end();
}

TEST(OverwriteInputs, AProgramUsesTheMemoryOfTheInput) {
  const std::string begin = kBegin + product("%2", "%0", "%1");
  const std::string end = product("%4", "%3", "%1") + "return %4\n";
  EXPECT_FALSE(overwrites(begin + sum("%3", "%2", "%1") + end));
  EXPECT_TRUE(overwrites(begin + sum("%3", "%2", "%1", "over 0 ") + end));
  // What the step must keep is not written over, whatever the text says.
  EXPECT_FALSE(overwrites(begin + sum("%3", "%2", "%1", "over 1 ") + end));
  EXPECT_FALSE(overwrites(begin + sum("%3", "%2", "%1", "over 0 ") + product("%4", "%3", "%2") +
                          "return %4\n"));
}

TEST(OverwriteInputs, OnlyWhatIsLikeTheResultCanBe) {
  const Graph graph = parse_graph(
      kBegin + product("%2", "%0", "%1") + sum("%3", "%2", "%1", "over 2 ") + "return %3\n",
      op_table());
  EXPECT_THROW(verify(graph), InternalError);
}

}  // namespace
}  // namespace flow::graph
