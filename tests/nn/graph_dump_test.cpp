// What a graph says of a plan: explain() and the files of dump().
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "eager/runtime.h"
#include "graph/ir/ir_text.h"
#include "graph/run/compiled_step.h"
#include "nn/file.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/temp_folder.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

namespace fs = std::filesystem;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer, int64_t micro_batches = 1,
        int64_t zero_stage = 0)
      : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(micro_batches).enable_zero({.stage = zero_stage});
  }

  static constexpr uint32_t kLineOfAddOptimizer = __LINE__ - 4;

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    return loss;
  }
};

// A folder for dumps, which the first one makes.
struct Folder {
  const TempFolder temp;
  const std::string path = temp.file("dump");

  std::set<std::string> names(const std::string& inner) const {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(path + "/" + inner))
      all.insert(entry.path().filename().string());
    return all;
  }
};

TEST(GraphExplain, ListsPassesAndRedistributionsWithLinesAndCosts) {
  run_ranks(2, [] {
    models::Mlp model({6, 8, 4});
    model.to_global(kPair, sbp::broadcast);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Train graph(model, optimizer);
    EXPECT_THROW(graph.explain(), InvalidArgument);
    EXPECT_EQ(message_of([&] { static_cast<void>(graph.summary()); }),
              "[graph] summary() needs a plan; call the graph or its compile() first");
    EXPECT_THROW(graph.dump("nowhere"), InvalidArgument);
    const TensorOptions rows{.placement = kPair, .sbp = sbp::split(0)};
    graph(randn({8, 6}, rows),
          randint(0, 4, {8}, {.dtype = int64, .placement = kPair, .sbp = sbp::split(0)}));
    const std::string text = graph.explain();
    for (const char* part :
         {"nodes of ", "  eliminate_dead_nodes: ", "redistributions of rank ",
          "graph_dump_test.cpp:", "P -> B on cpu:(0, 1)", "all_reduce, ", " bytes, predicted ",
          "the sums of 4 tensors", "instead of ", " in a run: "})
      EXPECT_TRUE(has(text, part)) << part << " is not in:\n" << text;
    EXPECT_FALSE(has(text, "flow:")) << "a line of the library:\n" << text;
  });
}

TEST(GraphExplain, SaysThatNothingIsRedistributed) {
  models::Mlp model({6, 8, 4});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer, 2);
  const nn::CompiledGraph& plan =
      graph.compile(randn({8, 6}), randint(0, 4, {8}, {.dtype = int64}));
  EXPECT_TRUE(has(plan.explain(), "rank 0 redistributes nothing"));
  EXPECT_TRUE(has(plan.explain(), "bubble")) << plan.explain();
  EXPECT_EQ(graph.summary(), plan.summary());
}

TEST(GraphExplain, TheUpdateHasTheLineOfAddOptimizer) {
  run_ranks(2, [] {
    models::Mlp model({6, 8, 4});
    model.to_global(kPair, sbp::broadcast);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1, .momentum = 0.9});
    Train graph(model, optimizer, 1, 1);
    const nn::CompiledGraph& compiled = graph.compile(
        randn({8, 6}, {.placement = kPair, .sbp = sbp::split(0)}),
        randint(0, 4, {8}, {.dtype = int64, .placement = kPair, .sbp = sbp::split(0)}));
    int64_t updates = 0;
    for (const graph::Node& node : compiled.plan().graph().nodes) {
      if (node.phase != Phase::kUpdate) continue;
      EXPECT_EQ(node.line, Train::kLineOfAddOptimizer) << node.op->name << ' ' << node.file;
      ++updates;
    }
    EXPECT_GE(updates, 4);
    const std::string gather = str("graph_dump_test.cpp:", Train::kLineOfAddOptimizer,
                                   ": float32 (8,), S(0) -> B on cpu:(0, 1)\n  all_gather, ");
    EXPECT_TRUE(has(compiled.explain(), gather)) << compiled.explain();
  });
}

const Placement k0("cpu", {0}), k1("cpu", {1});

struct Stages : nn::Graph<Stages> {
  nn::Linear first, last;

  Stages(nn::Linear a, nn::Linear b, optim::Optimizer& optimizer) : first(a), last(b) {
    nn::graph_module(first).set_stage(0, k0);
    nn::graph_module(last).set_stage(1, k1);
    add_optimizer(optimizer);
    config().set_micro_batches(4);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    Tensor loss = mse_loss(last(first(x)), y);
    loss.backward();
    return loss;
  }
};

// A micro-batch has 3 or 2 of 10 samples.
TEST(GraphExplain, EdgesHaveTheBytesOfTheirMessages) {
  run_ranks(2, [] {
    nn::Linear first(4, 4), last(4, 4);
    first.to_global(k0, sbp::broadcast);
    last.to_global(k1, sbp::broadcast);
    optim::SGD optimizer(first.parameters(), {.lr = 0.1});
    Stages graph(first, last, optimizer);
    const nn::CompiledGraph& compiled =
        graph.compile(randn({10, 4}, {.placement = k0, .sbp = sbp::broadcast}),
                      randn({10, 4}, {.placement = k1, .sbp = sbp::broadcast}));
    const std::string text = compiled.explain();
    for (const char* part : {"(10, 4) float32 from B on cpu:(0) to B on cpu:(1), 48 or 32 bytes a",
                             "(10, 4) float32 from B on cpu:(1) to B on cpu:(0), 48 or 32 bytes a"})
      EXPECT_TRUE(has(text, part)) << part << '\n' << text;
  });
}

TEST(GraphDump, WritesTheStepAfterEachPassThatChangedIt) {
  const Folder folder;
  models::Mlp model({6, 8, 4});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer);
  const Tensor x = randn({8, 6}), y = randint(0, 4, {8}, {.dtype = int64});
  const nn::CompiledGraph& plan = graph.compile(x, y);
  for (int time = 0; time < 2; ++time) {  // the second dump replaces the first
    graph.dump(folder.path);
    EXPECT_EQ(folder.names(""), std::set<std::string>{"rank_0"});
    const std::string inner = folder.path + "/rank_0/";
    std::set<std::string> want = {"00_traced.ir", "program.txt", "certificate.txt", "explain.txt",
                                  "summary.txt"};
    std::string last = "00_traced.ir";
    size_t number = 0;
    for (const graph::PassResult& pass : plan.plan().passes()) {
      ++number;
      if (pass.changes == 0) continue;
      last = str(number < 10 ? "0" : "", number, "_", pass.name, ".ir");
      want.insert(last);
    }
    EXPECT_GT(want.size(), 5U);
    EXPECT_EQ(folder.names("rank_0"), want);
    const std::string text = nn::read_text(inner + last);
    EXPECT_EQ(text, to_string(plan.plan().graph()));
    EXPECT_EQ(to_string(graph::parse_graph(nn::read_text(inner + "00_traced.ir"), op_table())),
              nn::read_text(inner + "00_traced.ir"));
    EXPECT_EQ(nn::read_text(inner + "summary.txt"), plan.summary());
    EXPECT_EQ(nn::read_text(inner + "explain.txt"), plan.explain());
    EXPECT_EQ(nn::read_text(inner + "program.txt"), to_string(plan.plan().program(), 0));
    EXPECT_EQ(nn::read_text(inner + "certificate.txt"), to_string(plan.plan().certificate()));
  }
}

TEST(GraphDump, EachRankWritesAFolder) {
  const Folder folder;
  run_ranks(2, [&] {
    models::Mlp model({6, 8, 4});
    model.to_global(kPair, sbp::broadcast);
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Train graph(model, optimizer, 2);
    const TensorOptions rows{.placement = kPair, .sbp = sbp::split(0)};
    graph
        .compile(randn({8, 6}, rows),
                 randint(0, 4, {8}, {.dtype = int64, .placement = kPair, .sbp = sbp::split(0)}))
        .dump(folder.path);
  });
  EXPECT_EQ(folder.names(""), (std::set<std::string>{"rank_0", "rank_1"}));
}

TEST(GraphDump, AFolderThatCannotBeWrittenIsAnError) {
  const Folder folder;
  std::ofstream(folder.path) << "a file";
  models::Mlp model({6, 8, 4});
  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  Train graph(model, optimizer);
  graph.compile(randn({8, 6}), randint(0, 4, {8}, {.dtype = int64}));
  try {
    graph.dump(folder.path);
    FAIL() << "no error";
  } catch (const IoError& error) {
    EXPECT_TRUE(has(error.what(), folder.path + " cannot be written: ")) << error.what();
  }
  EXPECT_TRUE(fs::is_regular_file(folder.path));
}

}  // namespace
}  // namespace flow
