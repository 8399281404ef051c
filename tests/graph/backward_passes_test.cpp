// Passes that change the order in which a training step computes: text before and after.
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "graph/ir/ir_text.h"
#include "graph/passes/fuse_activation_grad.h"
#include "graph/passes/move_updates.h"
#include "graph/passes/pool_before_relu.h"
#include "graph/passes/save_slopes.h"
#include "nn/flow.h"

namespace flow::graph {
namespace {

std::string after(int64_t (*pass)(Graph&), const std::string& text, int64_t want_changes) {
  Graph graph = parse_graph(text, op_table());
  verify(graph);
  EXPECT_EQ(pass(graph), want_changes) << text;
  verify(graph);
  return to_string(graph);
}

void expect_untouched(int64_t (*pass)(Graph&), const std::string& text) {
  EXPECT_EQ(after(pass, text, 0), text);
}

// ---- move_updates

std::string update(const char* result, const char* parameter, const char* gradient,
                   const char* rate = "none", const char* end = "") {
  return str(result, " = sgd_update(", parameter, ", ", gradient, ", ", rate,
             ") {lr=0.1, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=false, "
             "maximize=false, is_first=false} : (8, 8) float32 cpu @U0",
             end, " a.cpp:9\n");
}

std::string product(const char* result, const char* a, const char* b, const char* end) {
  return str(result, " = mul(", a, ", ", b, ") {} : (8, 8) float32 cpu @", end, "\n");
}

const std::string kInputs =
    "input %0 : (8, 8) float32 cpu\n"
    "capture %1 : (8, 8) float32 cpu\n"
    "capture %2 : (8, 8) float32 cpu\n";
const std::string kForward =
    product("%3", "%0", "%1", "F0 a.cpp:1") + product("%4", "%3", "%2", "F0 a.cpp:2");
const std::string kResults = "write %1 <- %8\nwrite %2 <- %9\nreturn %4\n";
const std::string kGradientOfSecond = product("%5", "%4", "%3", "B0 a.cpp:2");
const std::string kGradientOfMiddle = product("%6", "%4", "%2", "B0 a.cpp:2");
const std::string kGradientOfFirst = product("%7", "%6", "%0", "B0 a.cpp:1");

// The second parameter is still read by the gradient of what comes before it.
TEST(MoveUpdates, UpdatesFollowTheLastReaderOfTheirParameter) {
  const std::string gradients = kGradientOfSecond + kGradientOfMiddle;
  const std::string first = update("%8", "%1", "%7"), second = update("%9", "%2", "%5");
  EXPECT_EQ(after(move_updates,
                  kInputs + kForward + gradients + kGradientOfFirst + first + second + kResults, 1),
            kInputs + kForward + gradients + second + kGradientOfFirst + first + kResults);
}

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// 16 MiB of gradients do not wait.
TEST(MoveUpdates, SmallUpdatesOnDevicesWaitForTheLast) {
  const auto on_device = [](const std::string& text, const char* shape) {
    return replace_all(replace_all(text, " cpu", " cuda"), "(8, 8)", shape);
  };
  const std::string begin = kInputs + kForward + kGradientOfSecond + kGradientOfMiddle;
  const std::string first = update("%8", "%1", "%7"), second = update("%9", "%2", "%5");
  const std::string text = begin + kGradientOfFirst + first + second + kResults;
  const std::string joined = begin + kGradientOfFirst + second + first + kResults;
  const std::string at_once = begin + second + kGradientOfFirst + first + kResults;
  for (const auto& [shape, expected] :
       {std::pair("(2048, 2047)", joined), std::pair("(2048, 2048)", at_once)}) {
    EXPECT_EQ(after(move_updates, on_device(text, shape), 1), on_device(expected, shape));
  }
}

TEST(MoveUpdates, UpdatesOfOneParameterKeepTheirOrder) {
  const std::string first = update("%7", "%2", "%5"), second = update("%8", "%7", "%5");
  const std::string end = "write %2 <- %8\nreturn %4, %6\n";
  const std::string last = product("%6", "%4", "%3", "B0 a.cpp:2");
  EXPECT_EQ(
      after(move_updates, kInputs + kForward + kGradientOfSecond + last + first + second + end, 2),
      kInputs + kForward + kGradientOfSecond + first + second + last + end);
}

TEST(MoveUpdates, ViewsOfAParameterCountAsReaders) {
  const std::string view = "%5 = permute(%2) {dims=[1, 0]} : (8, 8) float32 cpu @F0 a.cpp:2\n";
  const std::string backward = product("%6", "%4", "%3", "B0 a.cpp:2") +
                               product("%7", "%4", "%3", "B0 a.cpp:3") +
                               product("%8", "%4", "%5", "B0 a.cpp:2");
  const std::string end = update("%9", "%2", "%6") + "write %2 <- %9\nreturn %4, %8\n";
  expect_untouched(move_updates, kInputs + kForward + view + backward + end);
}

// Learning rates are views of an input. What takes memory stays.
TEST(MoveUpdates, ViewsMoveWithTheUpdatesThatReadThem) {
  const std::string begin = "input %10 : (3,) float64 cpu\n" + kInputs + kForward;
  const std::string view = "%7 = select(%10) {dim=0, index=1} : () float64 cpu @U0 a.cpp:9\n";
  const std::string sum = "%7 = sum(%10) {dims=[0], keepdim=false} : () float64 cpu @U0 a.cpp:9\n";
  const std::string other = product("%6", "%4", "%3", "B0 a.cpp:2");
  const std::string last = update("%8", "%2", "%5", "%7");
  const std::string end = "write %2 <- %8\nreturn %4, %6\n";
  EXPECT_EQ(after(move_updates, begin + kGradientOfSecond + other + view + last + end, 2),
            begin + view + kGradientOfSecond + last + other + end);
  expect_untouched(move_updates, begin + kGradientOfSecond + other + sum + last + end);
}

// A guard must be known, and what may throw must come first.
TEST(MoveUpdates, UpdatesComeAfterTheirGuardForwardAndEffects) {
  const auto text = [](const std::string& last) {
    return "input %10 : () bool cpu\n" + kInputs + kForward + kGradientOfSecond + last +
           update("%9", "%2", "%5", "none", " if 1") + "write %2 <- %9\n";
  };
  const std::string guard = "%11 = logical_not(%10) {} : () bool cpu @B0 a.cpp:4\n";
  const std::string later = product("%11", "%4", "%3", "F0 a.cpp:4");
  const std::string effect =
      "%11 = check_finite(%4) {name='h', module=''} : (8, 8) float32 cpu @B0 a.cpp:4\n";
  const std::string harmless = product("%11", "%4", "%3", "B0 a.cpp:4");
  expect_untouched(move_updates, text(guard) + "return %4, %11\n");
  expect_untouched(move_updates, text(later) + "return %11, %10\n");
  expect_untouched(move_updates, text(effect) + "return %11, %10\n");
  EXPECT_NE(after(move_updates, text(harmless) + "return %11, %10\n", 1),
            text(harmless) + "return %11, %10\n");
}

TEST(MoveUpdates, SumsOverRanksKeepTheirBuckets) {
  const std::string on_ranks = "[B on cpu:(0, 1)]";
  const std::string partial = "[P on cpu:(0, 1)]";
  expect_untouched(
      move_updates,
      "input %0 : (8, 8) float32 " + on_ranks + "\ncapture %1 : (8, 8) float32 " + on_ranks +
          "\n%2 = mul(%0, %1) {} : (8, 8) float32 " + on_ranks +
          " @F0 a.cpp:1\n%3 = redistribute(%2) {placement=cpu:(0, 1), nd_sbp=B, grad_sbp=none} : "
          "(8, 8) float32 " +
          on_ranks + " @B0 a.cpp:1\n%4 = mul(%2, %0) {} : (8, 8) float32 " + on_ranks +
          " @B0 a.cpp:1\n%5 = sgd_update(%1, %3, none) {lr=0.1, momentum=0.0, dampening=0.0, "
          "weight_decay=0.0, nesterov=false, maximize=false, is_first=false} : (8, 8) float32 " +
          on_ranks + " @U0 a.cpp:9\nwrite %1 <- %5\nreturn %4\n");
}

// ---- fuse_activation_grad

std::string activation(const char* result, const char* end) {
  return str(result, " = gelu(%2) {} : (8, 4) float32 cpu @", end, "\n");
}

const std::string kBeforeGelu =
    "input %0 : (8, 4) float32 cpu\n"
    "input %1 : (8, 4) float32 cpu\n"
    "%2 = exp(%0) {} : (8, 4) float32 cpu @F0 a.cpp:1\n" +
    activation("%3", "F0 a.cpp:2") + "%4 = exp(%1) {} : (8, 4) float32 cpu @B0 a.cpp:3\n";
const std::string kReader = "%6 = neg(%5) {} : (8, 4) float32 cpu @B0 a.cpp:3\n";
const std::string kGeluGrad = "%7 = gelu_grad(%4, %2) {} : (8, 4) float32 cpu @B0 a.cpp:2\n";

TEST(FuseActivationGrad, BothAreComputedInPlace) {
  EXPECT_EQ(after(fuse_activation_grad,
                  kBeforeGelu + activation("%5", "B0 transient a.cpp:2") + kReader + kGeluGrad +
                      "return %3, %6, %7\n",
                  1),
            kBeforeGelu +
                "%5, %6 = gelu_and_grad(%4, %2) {} : (8, 4) float32 cpu, (8, 4) float32 cpu @B0 "
                "a.cpp:2\n"
                "%7 = neg(%6) {} : (8, 4) float32 cpu @B0 a.cpp:3\n"
                "return %3, %7, %5\n");
}

TEST(FuseActivationGrad, ValuesThatOthersReadStay) {
  const std::string again = activation("%5", "B0 transient a.cpp:2");
  const auto text = [](const std::string& middle, const std::string& returned) {
    return kBeforeGelu + middle + "return %3, %6, %7" + returned + "\n";
  };
  expect_untouched(fuse_activation_grad, text(again + kReader + kGeluGrad, ", %2"));
  expect_untouched(fuse_activation_grad, text(again + kReader + kGeluGrad, ", %4"));
  expect_untouched(
      fuse_activation_grad,
      text(again + kReader + kGeluGrad + "%8 = exp(%2) {} : (8, 4) float32 cpu @B0 a.cpp:1\n",
           ", %8"));
  // One that is kept, not computed again.
  expect_untouched(fuse_activation_grad,
                   text(activation("%5", "B0 a.cpp:2") + kReader + kGeluGrad, ""));
}

// ---- save_slopes

const std::string kSquareInputs =
    "input %0 : (4, 4) float32 cpu\n"
    "capture %1 : (4, 4) float32 cpu\n";

std::string matrix_product(const char* result, const char* a, const char* b, const char* end) {
  return str(result, " = matmul(", a, ", ", b, ") {} : (4, 4) float32 cpu @", end, "\n");
}

const std::string kHidden = matrix_product("%2", "%0", "%1", "F0 a.cpp:1");
const std::string kActivated = "%3 = gelu(%2) {} : (4, 4) float32 cpu @F0 a.cpp:2\n";
const std::string kAfterGelu =
    matrix_product("%4", "%3", "%1", "F0 a.cpp:3") + matrix_product("%5", "%4", "%1", "B0 a.cpp:3");
const std::string kSlopeReader = "%6 = gelu_grad(%5, %2) {} : (4, 4) float32 cpu @B0 a.cpp:2\n";

TEST(SaveSlopes, TheGradientIsAProduct) {
  EXPECT_EQ(
      after(save_slopes,
            kSquareInputs + kHidden + kActivated + kAfterGelu + kSlopeReader + "return %4, %6\n",
            1),
      kSquareInputs + kHidden +
          "%3 = empty() {shape=[4, 4], dtype=float32, device=cpu, placement=local, sbp=none} : "
          "(4, 4) float32 cpu @F0 a.cpp:2\n"
          "%4, %5 = gelu_and_slope(%2, %3) {} : (4, 4) float32 cpu, (4, 4) float32 cpu @F0 "
          "a.cpp:2\n" +
          matrix_product("%6", "%5", "%1", "F0 a.cpp:3") +
          matrix_product("%7", "%6", "%1", "B0 a.cpp:3") +
          "%8 = mul(%7, %4) {} : (4, 4) float32 cpu @B0 a.cpp:2\n"
          "return %6, %8\n");
}

TEST(SaveSlopes, InputsThatOthersReadStay) {
  const auto text = [](const std::string& last, const std::string& returned) {
    return kSquareInputs + kHidden + kActivated + kAfterGelu + kSlopeReader + last + "return %4, " +
           returned + "\n";
  };
  expect_untouched(save_slopes, text("", "%6, %2"));
  expect_untouched(save_slopes, text(matrix_product("%7", "%6", "%2", "B0 a.cpp:1"), "%7"));
  // An input of the step cannot be written.
  expect_untouched(save_slopes, kSquareInputs +
                                    "%2 = gelu(%0) {} : (4, 4) float32 cpu @F0 a.cpp:2\n"
                                    "%3 = gelu_grad(%1, %0) {} : (4, 4) float32 cpu @B0 a.cpp:2\n"
                                    "return %2, %3\n");
}

TEST(SaveSlopes, WhatCanBeFusedStays) {
  const std::string sum = "%2 = exp(%0) {} : (4, 4) float32 cpu @F0 a.cpp:1\n";
  expect_untouched(save_slopes, kSquareInputs + sum + kActivated + kAfterGelu + kSlopeReader +
                                    "return %4, %6\n");
  expect_untouched(save_slopes, replace_all(kSquareInputs + kHidden + kActivated + kAfterGelu +
                                                kSlopeReader + "return %4, %6\n",
                                            "float32", "bfloat16"));
}

// ---- pool_before_relu

constexpr const char* kWindow =
    " {kernel=[2, 2, 1], stride=[2, 2, 1], padding=[0, 0, 0], dilation=[1, 1, 1], ceil_mode=false, "
    "adaptive=[-1, -1, -1]} : ";
constexpr const char* kPadded =
    " {kernel=[2, 2, 1], stride=[2, 2, 1], padding=[1, 1, 0], dilation=[1, 1, 1], ceil_mode=false, "
    "adaptive=[-1, -1, -1]} : ";
const std::string kLarge = "(2, 3, 4, 4) float32 cpu";
const std::string kSmall = "(2, 3, 2, 2) float32 cpu";

std::string pooled(const std::string& relu, const std::string& pool, const std::string& first,
                   const std::string& second, const std::string& end) {
  return "input %0 : " + kLarge + "\n" + relu + pool + "%3 = exp(%2) {} : " + kSmall +
         " @F0 a.cpp:3\n" + first + second + end;
}

const std::string kRelu = "%1 = relu(%0) {} : " + kLarge + " @F0 a.cpp:1\n";
const std::string kPool = "%2 = max_pool(%1)" + std::string(kWindow) + kSmall + " @F0 a.cpp:2\n";
const std::string kPoolBackward =
    "%4 = max_pool_backward(%1, %3)" + std::string(kWindow) + kLarge + " @B0 a.cpp:2\n";
const std::string kReluBackward = "%5 = relu_grad(%4, %1) {} : " + kLarge + " @B0 a.cpp:1\n";

TEST(PoolBeforeRelu, ReluWorksOnTheMaxima) {
  EXPECT_EQ(
      after(pool_before_relu, pooled(kRelu, kPool, kPoolBackward, kReluBackward, "return %5\n"), 1),
      "input %0 : " + kLarge + "\n%1 = max_pool(%0)" + kWindow + kSmall +
          " @F0 a.cpp:2\n%2 = relu(%1) {} : " + kSmall + " @F0 a.cpp:1\n%3 = exp(%2) {} : " +
          kSmall + " @F0 a.cpp:3\n%4 = relu_grad(%3, %2) {} : " + kSmall +
          " @B0 a.cpp:1\n%5 = max_pool_backward(%0, %4)" + kWindow + kLarge +
          " @B0 a.cpp:2\nreturn %5\n");
}

TEST(PoolBeforeRelu, ResultsThatOthersReadStay) {
  expect_untouched(pool_before_relu,
                   pooled(kRelu, kPool, kPoolBackward, kReluBackward, "return %5, %1\n"));
  expect_untouched(pool_before_relu,
                   pooled(kRelu, kPool, kPoolBackward, kReluBackward, "return %5, %4\n"));
  expect_untouched(pool_before_relu,
                   pooled(kRelu, kPool, kPoolBackward,
                          "%5 = mul(%4, %1) {} : " + kLarge + " @B0 a.cpp:1\n", "return %5\n"));
}

// A window may consist of padding alone, and then has no maximum.
TEST(PoolBeforeRelu, PaddedWindowsStay) {
  expect_untouched(pool_before_relu, "input %0 : " + kLarge + "\n" + kRelu + "%2 = max_pool(%1)" +
                                         kPadded +
                                         "(2, 3, 3, 3) float32 cpu @F0 a.cpp:2\nreturn %2\n");
}

}  // namespace
}  // namespace flow::graph
