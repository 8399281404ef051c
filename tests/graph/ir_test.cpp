#include "graph/ir/ir.h"

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "graph/ir/ir_text.h"
#include "graph/trace/tracer.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"

namespace flow::graph {
namespace {

TracedStep small_step() {
  const Tensor x = ones({2, 3}), w = ones({3, 2});
  Trace trace;
  const Tensor tx = trace.add_input(x);
  const Tensor unused = relu(tx);
  return trace.finish({matmul(tx, w).sum({1}) * 2.0, rand({3})});
}

TEST(Ir, TextParsesBack) {
  const Graph graph = small_step().graph;
  const std::string text = to_string(graph);
  EXPECT_EQ(parse_graph(text, op_table()), graph);
  EXPECT_EQ(to_string(parse_graph(text, op_table())), text);
}

TEST(Ir, TextTellsTransientAndGuardedNodes) {
  const std::string text =
      "input %0 : (2,) float32 cpu\n"
      "input %1 : () bool cpu\n"
      "%2 = relu(%0) {} : (2,) float32 cpu @F0 transient a.cpp:1\n"
      "%3 = exp(%2) {} : (2,) float32 cpu @U0 if 1 a.cpp:2\n"
      "%4 = add(%2, %3) {alpha=1.0} : (2,) float32 cpu @B0 over 1 a.cpp:3\n"
      "return %3, %1, %4\n";
  const Graph graph = parse_graph(text, op_table());
  verify(graph);
  EXPECT_EQ(graph.nodes[2].overwrites, 1);
  EXPECT_TRUE(graph.nodes[0].is_transient);
  EXPECT_EQ(graph.nodes[1].guard, 1);
  EXPECT_EQ(to_string(graph), text);
}

TEST(Ir, BadTextNamesItsLine) {
  const std::string text = to_string(small_step().graph);
  const auto complaint = [](const std::string& bad) -> std::string {
    try {
      parse_graph(bad, op_table());
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint(text + "nonsense\n").find("line 9"), std::string::npos)
      << complaint(text + "nonsense\n");
  EXPECT_NE(complaint("%1 = no_such_op(%0) {} : (2,) float32 cpu @F0 a.cpp:1\n").find("no_such_op"),
            std::string::npos);
  for (const char* id : {"none", "%-5", "%13720368"}) {
    const std::string message = complaint(std::string("input ") + id + " : (2,) float32 cpu\n");
    EXPECT_NE(message.find("line 1: expected "), std::string::npos) << id << message;
  }
}

TEST(Ir, UnusedNodesAreRemoved) {
  for (const Node& node : small_step().graph.nodes)
    EXPECT_STRNE(node.op->name, "relu");
}

TEST(Ir, NodesKeepTheUsersLine) {
  const Graph graph = small_step().graph;
  ASSERT_FALSE(graph.nodes.empty());
  EXPECT_NE(graph.nodes[0].file.find("ir_test.cpp"), std::string::npos) << graph.nodes[0].file;
}

TEST(Verify, FindsWhatIsWrong) {
  const Graph good = small_step().graph;
  EXPECT_NO_THROW(verify(good));

  Graph graph = good;
  std::swap(graph.nodes.front(), graph.nodes.back());
  EXPECT_THROW(verify(graph), InternalError) << "used before made";
  graph = good;
  graph.nodes.push_back(graph.nodes.back());
  EXPECT_THROW(verify(graph), InternalError) << "made twice";
  graph = good;
  graph.nodes[0].inputs[0] = 1000;
  EXPECT_THROW(verify(graph), InternalError) << "out of range";
  graph = good;
  graph.nodes[0].inputs.pop_back();
  EXPECT_THROW(verify(graph), InternalError) << "number of inputs";
  graph = good;
  graph.values[static_cast<size_t>(graph.nodes[0].outputs[0])].shape = {7};
  EXPECT_THROW(verify(graph), InternalError) << "inferred shape";
}

}  // namespace
}  // namespace flow::graph
