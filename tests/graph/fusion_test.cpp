// The passes that fuse nodes on small graphs: text before and after.
#include <array>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "graph/ir/ir_text.h"
#include "graph/passes/fuse_batch_norm.h"
#include "graph/passes/fuse_elementwise.h"
#include "graph/passes/fuse_gelu_products.h"
#include "graph/passes/fuse_norm_casts.h"
#include "graph/passes/join_bias_gradients.h"
#include "nn/flow.h"

namespace flow::graph {
namespace {

struct FuseElementwise : testing::Test {
  void SetUp() override { setenv("FLOW_FUSE_LEAST_ELEMENTS", "1024", 1); }

  void TearDown() override { unsetenv("FLOW_FUSE_LEAST_ELEMENTS"); }
};

std::string after(int64_t (*pass)(Graph&), const std::string& text, int64_t want_removed) {
  Graph graph = parse_graph(text, op_table());
  verify(graph);
  EXPECT_EQ(pass(graph), want_removed) << text;
  verify(graph);
  EXPECT_EQ(parse_graph(to_string(graph), op_table()), graph);
  return to_string(graph);
}

std::string fused(const std::string& text, int64_t want_removed) {
  return after(fuse_elementwise, text, want_removed);
}

void expect_untouched(const std::string& text) {
  EXPECT_EQ(fused(text, 0), text);
}

TEST_F(FuseElementwise, ALineOfNodesBecomesOne) {
  EXPECT_EQ(fused("input %0 : (64, 32) float32 cpu\n"
                  "capture %1 : (32,) float32 cpu\n"
                  "%2 = mul(%0, %1) {} : (64, 32) float32 cpu @F0 in a a.cpp:1\n"
                  "%3 = add(%2, %0) {alpha=0.5} : (64, 32) float32 cpu @F0 in a a.cpp:2\n"
                  "%4 = tanh(%3) {} : (64, 32) float32 cpu @F0 in b a.cpp:3\n"
                  "return %4\n",
                  2),
            "input %0 : (64, 32) float32 cpu\n"
            "capture %1 : (32,) float32 cpu\n"
            "%2 = fused_elementwise(%0, %1) {program=[t0 = mul(x0, x1), t1 = add(t0, x0, "
            "alpha=0.5), t2 = tanh(t1), return t2]} : (64, 32) float32 cpu @F0 in b a.cpp:3\n"
            "return %2\n");
}

TEST_F(FuseElementwise, ResultsThatOthersReadAreOutputs) {
  EXPECT_EQ(fused("input %0 : (64, 32) float32 cpu\n"
                  "%1 = exp(%0) {} : (64, 32) float32 cpu @F0 a.cpp:1\n"
                  "%2 = gt_scalar(%1) {value=1} : (64, 32) bool cpu @F0 a.cpp:2\n"
                  "%3 = cast(%2) {dtype=float32} : (64, 32) float32 cpu @F0 a.cpp:3\n"
                  "%4 = sum(%1) {dims=[0], keepdim=false} : (32,) float32 cpu @F0 "
                  "a.cpp:4\n"
                  "return %4, %3\n",
                  2),
            "input %0 : (64, 32) float32 cpu\n"
            "%1, %2 = fused_elementwise(%0) {program=[t0 = exp(x0), t1 = gt_scalar(t0, value=1), "
            "t2 = cast(t1, dtype=float32), return t0 t2]} : (64, 32) float32 cpu, (64, 32) float32 "
            "cpu @F0 a.cpp:3\n"
            "%3 = sum(%1) {dims=[0], keepdim=false} : (32,) float32 cpu @F0 a.cpp:4\n"
            "return %3, %2\n");
}

// A node of two makers joins both; what does not depend on the group stays where it is.
TEST_F(FuseElementwise, BranchesJoin) {
  EXPECT_EQ(fused("input %0 : (64, 32) float32 cpu\n"
                  "%1 = exp(%0) {} : (64, 32) float32 cpu @F0 a.cpp:1\n"
                  "%2 = sum(%0) {dims=[0], keepdim=false} : (32,) float32 cpu @F0 "
                  "a.cpp:2\n"
                  "%3 = neg(%0) {} : (64, 32) float32 cpu @F0 a.cpp:3\n"
                  "%4 = mul(%1, %3) {} : (64, 32) float32 cpu @F0 a.cpp:4\n"
                  "return %2, %4\n",
                  2),
            "input %0 : (64, 32) float32 cpu\n"
            "%1 = sum(%0) {dims=[0], keepdim=false} : (32,) float32 cpu @F0 a.cpp:2\n"
            "%2 = fused_elementwise(%0) {program=[t0 = exp(x0), t1 = neg(x0), t2 = mul(t0, t1), "
            "return t2]} : (64, 32) float32 cpu @F0 a.cpp:4\n"
            "return %1, %2\n");
}

// Two nodes that differ in the end of their lines.
std::string pair(const std::string& first, const std::string& second) {
  return "input %0 : (64, 32) float32 cpu\n"
         "input %1 : () bool cpu\n"
         "%2 = exp(%0) {} : (64, 32) float32 cpu " +
         first + " a.cpp:1\n%3 = neg(%2) {} : (64, 32) float32 cpu " + second +
         " a.cpp:2\nreturn %3, %1\n";
}

TEST_F(FuseElementwise, NodesOfAnotherKindStayApart) {
  EXPECT_NE(fused(pair("@F0", "@F0"), 1), pair("@F0", "@F0"));
  expect_untouched(pair("@F0", "@F1"));
  expect_untouched(pair("@F0", "@B0"));
  expect_untouched(pair("@F0", "@F0 transient"));
  expect_untouched(pair("@U0", "@U0 if 1"));
}

TEST_F(FuseElementwise, SmallTensorsStay) {
  expect_untouched(
      "input %0 : (31, 33) float32 cpu\n"
      "%1 = exp(%0) {} : (31, 33) float32 cpu @F0 a.cpp:1\n"
      "%2 = neg(%1) {} : (31, 33) float32 cpu @F0 a.cpp:2\n"
      "return %2\n");
}

TEST_F(FuseElementwise, ResultsOfOtherShapesStayApart) {
  expect_untouched(
      "input %0 : (1024,) float32 cpu\n"
      "input %1 : (2, 1024) float32 cpu\n"
      "%2 = exp(%0) {} : (1024,) float32 cpu @F0 a.cpp:1\n"
      "%3 = mul(%2, %1) {} : (2, 1024) float32 cpu @F0 a.cpp:2\n"
      "return %3\n");
}

// The sum needs %1 before %3 can be computed, so %1 cannot run where %3 does.
TEST_F(FuseElementwise, AGroupDoesNotWaitForItself) {
  expect_untouched(
      "input %0 : (64, 32) float32 cpu\n"
      "%1 = exp(%0) {} : (64, 32) float32 cpu @F0 a.cpp:1\n"
      "%2 = sum(%1) {dims=[0], keepdim=false} : (32,) float32 cpu @F0 a.cpp:2\n"
      "%3 = mul(%1, %2) {} : (64, 32) float32 cpu @F0 a.cpp:3\n"
      "return %3\n");
}

// What reads a tensor is not moved behind a write to it.
TEST_F(FuseElementwise, NoNodeMovesPastAWrite) {
  expect_untouched(
      "input %0 : (64, 32) float32 cpu\n"
      "capture %1 : (64, 32) float32 cpu\n"
      "%2 = exp(%1) {} : (64, 32) float32 cpu @F0 a.cpp:1\n"
      "%3 = copy_(%1, %0) {} : (64, 32) float32 cpu @F0 a.cpp:2\n"
      "%4 = neg(%2) {} : (64, 32) float32 cpu @F0 a.cpp:3\n"
      "write %1 <- %3\n"
      "return %4\n");
}

// Each exp frees its input before the next one. In one node, all would be in memory at once.
TEST_F(FuseElementwise, ThePeakOfMemoryDoesNotRise) {
  expect_untouched(
      "input %0 : (64, 32) float32 cpu\n"
      "%1 = clone(%0) {} : (64, 32) float32 cpu @F0 a.cpp:1\n"
      "%2 = exp(%1) {} : (64, 32) float32 cpu @F0 a.cpp:2\n"
      "%3 = exp(%2) {} : (64, 32) float32 cpu @F0 a.cpp:3\n"
      "return %2, %3\n");
}

TEST_F(FuseElementwise, TwelveNodesAreOneGroup) {
  std::string text = "input %0 : (64, 32) float32 cpu\n";
  for (int i = 0; i < 13; ++i)
    text += str("%", i + 1, " = relu(%", i, ") {} : (64, 32) float32 cpu @F0 a.cpp:1\n");
  Graph graph = parse_graph(text + "return %13\n", op_table());

  EXPECT_EQ(fuse_elementwise(graph), 11);
  ASSERT_EQ(graph.nodes.size(), 2U) << to_string(graph);
  verify(graph);
}

// Batch norm, hardtanh and their gradients; `bounds` are those of the gradient.
std::string norm_and_clamp(const std::string& bounds, const std::string& result) {
  return "input %0 : (2, 3, 4) float32 cpu\n"
         "input %1 : (2, 3, 4) float32 cpu\n"
         "%2, %3 = batch_norm(%0, none, none) {eps=1e-05, parts=1, samples=0} : (2, 3, 4) float32 "
         "cpu, (2, 3) float64 cpu @F0 a.cpp:1\n"
         "%4 = hardtanh(%2) {min_val=0.0, max_val=6.0} : (2, 3, 4) float32 cpu @F0 a.cpp:2\n"
         "%5 = hardtanh_grad(%1, %2) {" +
         bounds +
         "} : (2, 3, 4) float32 cpu @B0 a.cpp:2\n"
         "%6, %7, %8 = batch_norm_backward(%5, %0, %3, none) {eps=1e-05, parts=1, samples=0} : "
         "(2, 3, 4) float32 cpu, (3,) float32 cpu, (3,) float32 cpu @B0 a.cpp:1\n"
         "return %4, %6, %3" +
         result + "\n";
}

TEST(FuseBatchNorm, TheActivationAndTheGradientsJoin) {
  EXPECT_EQ(after(fuse_batch_norm, norm_and_clamp("min_val=0.0, max_val=6.0", ""), 2),
            "input %0 : (2, 3, 4) float32 cpu\n"
            "input %1 : (2, 3, 4) float32 cpu\n"
            "%2, %3 = batch_norm_hardtanh(%0, none, none) {eps=1e-05, min_val=0.0, max_val=6.0} : "
            "(2, 3, 4) float32 cpu, (2, 3) float64 cpu @F0 a.cpp:1\n"
            "%4, %5, %6 = batch_norm_hardtanh_backward(%1, %2, %0, %3, none) {eps=1e-05, "
            "min_val=0.0, max_val=6.0} : (2, 3, 4) float32 cpu, (3,) float32 cpu, (3,) float32 cpu "
            "@B0 a.cpp:1\n"
            "return %2, %4, %3\n");
}

TEST(FuseBatchNorm, AResultThatOthersReadStays) {
  for (const std::string& text : {norm_and_clamp("min_val=0.0, max_val=6.0", ", %2"),
                                  norm_and_clamp("min_val=0.0, max_val=6.0", ", %5"),
                                  norm_and_clamp("min_val=0.0, max_val=5.0", "")}) {
    EXPECT_EQ(after(fuse_batch_norm, text, 0), text);
  }
}

// layer_norm whose result is cast to `dtype`, and its gradient, which comes back as `dtype`.
std::string norm_and_casts(const std::string& device, const std::string& result) {
  const std::string x = "(8, 4) float32 " + device, half = "(8, 4) bfloat16 " + device;
  const std::string row = "(4,) float32 " + device;
  return "input %0 : " + x + "\ninput %1 : " + half + "\ncapture %2 : " + row +
         "\n%3 = layer_norm(%0, %2, none) {num_dims=1, eps=1e-05} : " + x +
         " @F0 a.cpp:1\n%4 = cast(%3) {dtype=bfloat16} : " + half +
         " @F0 a.cpp:2\n%5 = cast(%1) {dtype=float32} : " + x +
         " @B0 a.cpp:2\n%6, %7, %8 = layer_norm_backward(%5, %0, %2) {num_dims=1, eps=1e-05} : " +
         x + ", " + row + ", " + row + " @B0 a.cpp:1\nreturn %4, %6, %7" + result + "\n";
}

TEST(FuseNormCasts, CastsOfTheResultAndOfItsGradientJoin) {
  EXPECT_EQ(after(fuse_norm_casts, norm_and_casts("cuda", ""), 2),
            "input %0 : (8, 4) float32 cuda\n"
            "input %1 : (8, 4) bfloat16 cuda\n"
            "capture %2 : (4,) float32 cuda\n"
            "%3 = layer_norm_narrow(%0, %2, none) {num_dims=1, eps=1e-05, dtype=bfloat16} : (8, 4) "
            "bfloat16 cuda @F0 a.cpp:1\n"
            "%4, %5, %6 = layer_norm_narrow_backward(%1, %0, %2) {num_dims=1, eps=1e-05} : (8, 4) "
            "float32 cuda, (4,) float32 cuda, (4,) float32 cuda @B0 a.cpp:1\n"
            "return %3, %4, %5\n");
}

TEST(FuseNormCasts, ValuesThatOthersReadAndOtherDevicesStay) {
  for (const std::string& text : {norm_and_casts("cuda", ", %3, %5"), norm_and_casts("cpu", "")}) {
    EXPECT_EQ(after(fuse_norm_casts, text, 0), text);
  }
}

// The feed-forward branch of a transformer: x, the gradient of the result, weights and a bias.
struct FeedForward {
  const char* where = " float32 cuda";
  const char* result = "return %7, %9\n";
  const char* gelu = "gelu_tanh";

  std::string type(const char* shape) const { return str(shape, where); }

  std::string begin() const {
    return str("input %0 : ", type("(4, 8)"), "\ninput %1 : ", type("(4, 8)"),
               "\ncapture %2 : ", type("(16, 8)"), "\ncapture %3 : ", type("(16,)"),
               "\ncapture %4 : ", type("(8, 16)"), "\n");
  }

  std::string text() const {
    return str(begin(), "%5 = linear(%0, %2, %3) {} : ", type("(4, 16)"),
               " @F0 a.cpp:1\n%6 = ", gelu, "(%5) {} : ", type("(4, 16)"),
               " @F0 a.cpp:2\n%7 = linear(%6, %4, none) {} : ", type("(4, 8)"),
               " @F0 a.cpp:3\n%8 = matmul(%1, %4) {} : ", type("(4, 16)"),
               " @B0 a.cpp:3\n%9 = ", gelu, "_grad(%8, %5) {} : ", type("(4, 16)"),
               " @B0 a.cpp:2\n", result);
  }

  std::string joined() const {
    return str(begin(), "%5, %6 = linear_gelu_tanh(%0, %2, %3) {} : ", type("(4, 16)"), ", ",
               type("(4, 16)"), " @F0 a.cpp:1\n%7 = linear(%5, %4, none) {} : ", type("(4, 8)"),
               " @F0 a.cpp:3\n%8 = matmul_gelu_tanh_grad(%1, %4, %6) {} : ", type("(4, 16)"),
               " @B0 a.cpp:2\nreturn %7, %8\n");
  }
};

TEST(FuseGeluProducts, BothProductsComputeGelu) {
  for (const char* where :
       {" float32 cuda", " bfloat16 cuda", " float16 cuda", " float32 [B on cuda:(0, 1)]"}) {
    const FeedForward branch{.where = where};
    EXPECT_EQ(after(fuse_gelu_products, branch.text(), 2), branch.joined());
  }
}

TEST(FuseGeluProducts, OtherFormsDevicesAndTypesStay) {
  for (const FeedForward& branch :
       {FeedForward{.where = " float32 cpu"}, FeedForward{.where = " float64 cuda"},
        FeedForward{.gelu = "gelu"}}) {
    EXPECT_EQ(after(fuse_gelu_products, branch.text(), 0), branch.text());
  }
}

// The product that is joined with the gradient is not stored.
TEST(FuseGeluProducts, AProductThatOthersReadStays) {
  const FeedForward branch{.result = "return %7, %9, %8\n"};
  const std::string joined = after(fuse_gelu_products, branch.text(), 1);
  EXPECT_NE(joined.find("linear_gelu_tanh"), std::string::npos) << joined;
  EXPECT_NE(joined.find("gelu_tanh_grad(%8, %6)"), std::string::npos) << joined;
}

TEST(FuseGeluProducts, WhatCanBeFusedWithItsReadersStays) {
  const std::string text =
      "input %0 : (4, 8) float32 cuda\n"
      "input %1 : (4, 16) float32 cuda\n"
      "capture %2 : (16, 8) float32 cuda\n"
      "%3 = linear(%0, %2, none) {} : (4, 16) float32 cuda @F0 a.cpp:1\n"
      "%4 = gelu_tanh(%3) {} : (4, 16) float32 cuda @F0 a.cpp:2\n"
      "%5 = mul(%4, %1) {} : (4, 16) float32 cuda @F0 a.cpp:3\n"
      "return %5\n";
  EXPECT_EQ(after(fuse_gelu_products, text, 0), text);
}

// dy, x, the gradients of a weight (4, 3) and of its bias, and their updates by neg.
struct LayerGradients {
  const char* where = " float32 cuda";
  const char* product_place = "@B0 a.cpp:1";
  const char* sum = "%3 = sum_to(%0) {shape=[4]}";
  const char* end = "return %4, %5\n";

  std::string type(const char* shape) const { return str(shape, where); }

  std::string inputs() const {
    return str("input %0 : ", type("(2, 8, 4)"), "\ninput %1 : ", type("(2, 8, 3)"), "\n");
  }

  std::string updates() const {
    return str("%4 = neg(%2) {} : ", type("(4, 3)"),
               " @B0 a.cpp:2\n%5 = neg(%3) {} : ", type("(4,)"), " @B0 a.cpp:2\n", end);
  }

  std::string text() const {
    return str(inputs(), "%2 = contract_leading(%0, %1) {} : ", type("(4, 3)"), " ", product_place,
               "\n", sum, " : ", type("(4,)"), " @B0 a.cpp:1\n", updates());
  }

  std::string joined() const {
    return str(inputs(), "%2, %3 = contract_leading_and_sum(%0, %1) {operand=0} : ", type("(4, 3)"),
               ", ", type("(4,)"), " ", product_place, "\n", updates());
  }
};

TEST(JoinBiasGradients, TheProductSumsItsOperand) {
  for (const char* sum :
       {"%3 = sum_to(%0) {shape=[4]}", "%3 = sum(%0) {dims=[0, 1], keepdim=false}"}) {
    for (const char* where : {" float32 cuda", " bfloat16 cuda", " float16 cuda"}) {
      const LayerGradients gradients{.where = where, .sum = sum};
      EXPECT_EQ(after(join_bias_gradients, gradients.text(), 1), gradients.joined());
    }
  }
}

TEST(JoinBiasGradients, TheSecondOperandMayBeSummed) {
  const std::string begin =
      "input %0 : (8, 3) float32 cuda\n"
      "input %1 : (8, 4) float32 cuda\n";
  EXPECT_EQ(after(join_bias_gradients,
                  begin + "%2 = sum_to(%1) {shape=[4]} : (4,) float32 cuda @B0 a.cpp:2\n"
                          "%3 = contract_leading(%0, %1) {} : (3, 4) float32 cuda @B0 a.cpp:1\n"
                          "return %2, %3\n",
                  1),
            begin +
                "%2, %3 = contract_leading_and_sum(%0, %1) {operand=1} : (3, 4) float32 cuda, "
                "(4,) float32 cuda @B0 a.cpp:1\n"
                "return %3, %2\n");
}

// Of layers whose samples are split both results are sums over ranks; of those whose features are,
// both are split.
TEST(JoinBiasGradients, BothResultsKeepTheirLayouts) {
  const auto text = [](const char* dy, const char* x, const char* product, const char* sum,
                       bool is_joined) {
    const std::string begin = str("input %0 : (8, 4) float32 [", dy,
                                  " on cuda:(0, 1)]\n"
                                  "input %1 : (8, 2) float32 [",
                                  x, " on cuda:(0, 1)]\n");
    const std::string weight = str("(4, 2) float32 [", product, " on cuda:(0, 1)]");
    const std::string bias = str("(4,) float32 [", sum, " on cuda:(0, 1)]");
    return is_joined
               ? str(begin, "%2, %3 = contract_leading_and_sum(%0, %1) {operand=0} : ", weight,
                     ", ", bias, " @B0 a.cpp:1\nreturn %2, %3\n")
               : str(begin, "%2 = contract_leading(%0, %1) {} : ", weight,
                     " @B0 a.cpp:1\n%3 = sum_to(%0) {shape=[4]} : ", bias,
                     " @B0 a.cpp:1\nreturn %2, %3\n");
  };
  for (const auto& [dy, x, product, sum] :
       {std::array{"S(0)", "S(0)", "P", "P"}, std::array{"S(1)", "B", "S(0)", "S(0)"},
        std::array{"B", "S(1)", "S(1)", "B"}}) {
    EXPECT_EQ(after(join_bias_gradients, text(dy, x, product, sum, false), 1),
              text(dy, x, product, sum, true));
  }
}

TEST(JoinBiasGradients, OtherSumsDevicesAndTypesStay) {
  for (const LayerGradients& gradients :
       {LayerGradients{.where = " float32 cpu"}, LayerGradients{.where = " float64 cuda"},
        LayerGradients{.product_place = "@F0 a.cpp:1"},
        LayerGradients{.product_place = "@B1 a.cpp:1"}}) {
    const std::string text = gradients.text();
    EXPECT_EQ(after(join_bias_gradients, text, 0), text);
  }
  const std::string square =
      "input %0 : (4, 4) float32 cuda\n"
      "input %1 : (4, 4) float32 cuda\n"
      "%2 = contract_leading(%0, %1) {} : (4, 4) float32 cuda @B0 a.cpp:1\n"
      "%3 = sum(%0) {dims=[1], keepdim=false} : (4,) float32 cuda @B0 a.cpp:1\n"
      "return %2, %3\n";
  EXPECT_EQ(after(join_bias_gradients, square, 0), square);
  const std::string read_before =
      "input %0 : (8, 4) float32 cuda\n"
      "input %1 : (8, 4) float32 cuda\n"
      "%2 = sum_to(%0) {shape=[4]} : (4,) float32 cuda @B0 a.cpp:1\n"
      "%3 = mul(%1, %2) {} : (8, 4) float32 cuda @B0 a.cpp:1\n"
      "%4 = contract_leading(%0, %3) {} : (4, 4) float32 cuda @B0 a.cpp:1\n"
      "return %4\n";
  EXPECT_EQ(after(join_bias_gradients, read_before, 0), read_before);
}

}  // namespace
}  // namespace flow::graph
