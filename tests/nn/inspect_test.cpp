// graph_print and check_finite: lines and errors at each run, in eager mode and in graphs, on
// ranks, for each micro-batch, and once under recompute.
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "ops/creation/inspect_op.h"
#include "tests/support/error_of.h"
#include "tests/support/stage_list.h"
#include "tests/support/training_layouts.h"

namespace flow {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What `body` prints.
std::string printed(const std::function<void()>& body) {
  testing::internal::CaptureStdout();
  try {
    body();
  } catch (const Error& error) {
    return str(testing::internal::GetCapturedStdout(), "error: ", error.what());
  }
  return testing::internal::GetCapturedStdout();
}

int64_t count(const std::string& text, const std::string& part) {
  int64_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

bool has(const std::string& text, const std::string& part) {
  return count(text, part) > 0;
}

TEST(GraphPrint, ShowsATensorInOneLine) {
  const Tensor x = arange(8.0).reshape({2, 4});
  EXPECT_EQ(printed([&] { graph_print(x, "x"); }),
            "[graph_print] x: rank 0, (2, 4) float32, min 0, max 7, mean 3.5, "
            "values [0, 1, 2, ..., 5, 6, 7]\n");
  EXPECT_EQ(printed([&] { graph_print(x.t()[1].gt(2), "mask"); }),
            "[graph_print] mask: rank 0, (2,) bool, min 0, max 1, mean 0.5, values [0, 1]\n");
  EXPECT_EQ(printed([&] { graph_print(full({3}, kNan), "bad"); }),
            "[graph_print] bad: rank 0, (3,) float32, 3 not finite, values [nan, nan, nan]\n");
  EXPECT_EQ(printed([&] {
              graph_print(zeros({0, 2}), "empty");
            }),
            "[graph_print] empty: rank 0, (0, 2) float32, values []\n");
  EXPECT_TRUE(has(printed([&] { graph_print(x); }), "inspect_test.cpp:"));
}

TEST(GraphPrint, IsTheIdentityForValuesAndGradients) {
  Tensor x = arange(6.0).reshape({2, 3});
  x.requires_grad_();
  printed([&] {
    const Tensor y = check_finite(graph_print(x.t(), "x"), "x");
    EXPECT_EQ(y.to_vector<float>(), x.t().to_vector<float>());
    (y * y).sum().backward();
  });
  EXPECT_EQ(x.grad().to_vector<float>(), (x * 2).to_vector<float>());
}

TEST(CheckFinite, NamesTensorLineAndIndex) {
  Tensor x = zeros({2, 3});
  EXPECT_EQ(check_finite(x, "x").to_vector<float>(), x.to_vector<float>());
  x[1][2] = kInfinity;
  const std::string error = error_of([&] { check_finite(x, "logits"); });
  for (const char* part : {"[check_finite] logits", "inf is the first bad value", "index (1, 2)",
                           "rank 0", "(2, 3) float32", "inspect_test.cpp:"})
    EXPECT_TRUE(has(error, part)) << part << " is not in: " << error;
  EXPECT_NO_THROW(check_finite(ones({2}, {.dtype = int64}), "integers"));
}

struct Watched : nn::Module<Watched> {
  nn::Linear inner = register_module("inner", nn::Linear(3, 3));

  Tensor forward(const Tensor& x) { return check_finite(inner(x), "out"); }
};

struct Outer : nn::Module<Outer> {
  Watched block = register_module("block", Watched());

  Tensor forward(const Tensor& x) { return block(x); }
};

struct Check : nn::Graph<Check> {
  Outer model;

  Tensor build(const Tensor& x) { return model(x); }
};

TEST(CheckFinite, NamesTheModuleAtEachRunOfAGraph) {
  Check graph;
  const Tensor good = ones({2, 3}), bad = full({2, 3}, kNan);
  EXPECT_NO_THROW(graph(good));
  for (int run = 0; run < 2; ++run) {
    const std::string error = error_of([&] { graph(bad); });
    for (const char* part : {"out in module block", "index (0, 0)", "inspect_test.cpp:"})
      EXPECT_TRUE(has(error, part)) << part << " is not in: " << error;
    EXPECT_NO_THROW(graph(good));
  }
  EXPECT_TRUE(has(error_of([&] { graph.model(bad); }), "out in module block"));
}

// The results of graph_print are not used.
struct Train : nn::Graph<Train> {
  models::Mlp model;

  Train(models::Mlp m, optim::Optimizer& optimizer, int64_t micro_batches) : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(micro_batches);
  }

  Tensor build(const Tensor& x, const Tensor& y) {
    const Tensor logits = model(x);
    graph_print(logits, "logits");
    graph_print(logits, "logits");
    Tensor loss = cross_entropy(logits, y);
    loss.backward();
    return loss;
  }
};

TEST(GraphPrint, RunsUnusedAndOnceForEachMicroBatch) {
  for (const int64_t parts : {1, 3}) {
    models::Mlp model({6, 8, 4});
    optim::SGD optimizer(model.parameters(), {.lr = 0.1});
    Train graph(model, optimizer, parts);
    const Tensor x = randn({6, 6}), y = randint(0, 4, {6}, {.dtype = int64});
    graph.compile(x, y);
    for (int run = 0; run < 2; ++run)
      EXPECT_EQ(count(printed([&] { graph(x, y); }), "[graph_print] logits"), 2 * parts) << parts;
  }
}

// Returns the gradient of the weight.
struct Recomputed : nn::Graph<Recomputed> {
  nn::Linear layer{3, 3};

  Tensor build(const Tensor& x) {
    const Tensor y = recompute(
        [this](const std::vector<Tensor>& in) {
          return tanh(graph_print(tanh(layer(in[0])), "hidden"));
        },
        {x});
    y.sum().backward();
    return layer.weight.grad();
  }
};

TEST(GraphPrint, RunsOnceUnderRecompute) {
  Recomputed graph;
  const Tensor x = randn({2, 3});
  Tensor compiled, eager;
  for (int run = 0; run < 2; ++run) {
    const std::string text = printed([&] { compiled = graph(x); });
    EXPECT_EQ(count(text, "hidden"), 1) << text;
  }
  EXPECT_EQ(count(printed([&] { eager = graph.build(x); }), "hidden"), 1);
  EXPECT_EQ(compiled.to_vector<float>(), eager.to_vector<float>());
}

struct Global : nn::Graph<Global> {
  Tensor build(const Tensor& x) { return check_finite(graph_print(x * 2, "twice"), "twice"); }
};

TEST(GraphPrint, EachRankShowsItsPartOfAGlobalTensor) {
  for (const bool is_compiled : {false, true}) {
    const std::string text = printed([&] {
      run_ranks(2, [&] {
        Global graph;
        const Tensor x = ones({4}, {.placement = kPair, .sbp = sbp::split(0)});
        is_compiled ? graph(x) : graph.build(x);
      });
    });
    for (const char* rank : {"rank 0", "rank 1"}) {
      EXPECT_TRUE(has(text, str("[graph_print] twice: ", rank,
                                ", (4,) float32 [S(0) on cpu:(0, 1)], part (2,), min 2, max 2, "
                                "mean 2, values [2, 2]\n")))
          << text;
    }
  }
}

TEST(CheckFinite, AllRanksGetTheErrorOfOne) {
  for (const bool is_compiled : {false, true}) {
    run_ranks(2, [&] {
      Global graph;
      const Tensor whole = tensor({1.0, 1.0, 1.0, kNan});
      const Tensor x = whole.to_global({.placement = kPair, .sbp = sbp::broadcast})
                           .to_global({.sbp = sbp::split(0)});
      std::string error;
      try {
        const Tensor y = is_compiled ? graph(x) : graph.build(x);
        y.sum().item<float>();
      } catch (const Error& e) {
        error = e.what();
      }
      EXPECT_TRUE(has(error, "twice is not finite on rank 1")) << error;
    });
  }
}

nn::Sequential linear_stage() {
  return nn::Sequential(nn::Linear(3, 3));
}

struct Pipeline : nn::Graph<Pipeline> {
  StageList model;

  Pipeline(const StageList& m, optim::Optimizer& optimizer) : model(m) {
    add_optimizer(optimizer);
    config().set_micro_batches(4).set_schedule(pipeline::one_f_one_b()).enable_recompute();
  }

  Tensor build(const Tensor& x) {
    const Tensor h = model.stages[0](x);
    graph_print(h, "first");
    const Tensor y = graph_print(model.stages[1](h), "second");
    Tensor loss = y.sum();
    loss.backward();
    return loss;
  }
};

TEST(GraphPrint, RunsForEachMicroBatchOfAPipeline) {
  const std::string text = printed([&] {
    run_ranks(2, [] {
      const std::vector<Placement> placements{{"cpu", {0}}, {"cpu", {1}}};
      StageList model(2, linear_stage);
      model.place(placements);
      optim::SGD optimizer(model.parameters(), {.lr = 0.1});
      Pipeline graph(model, optimizer);
      const Tensor x = ones({8, 3}, {.placement = placements[0], .sbp = sbp::broadcast});
      graph(x);
    });
  });
  EXPECT_EQ(count(text, "[graph_print] first: rank 0"), 4) << text;
  EXPECT_EQ(count(text, "[graph_print] second: rank 1"), 4) << text;
  EXPECT_EQ(count(text, "[graph_print]"), 8) << text;
}

TEST(ShortText, IsReadAsItIsWritten) {
  for (const std::string& text :
       {std::string(), std::string("a b=', {}%\n"), std::string(95, 'x')}) {
    ops::ShortText read;
    parse_field(field_to_string(ops::ShortText(text)), read);
    EXPECT_EQ(read.view(), text);
  }
  EXPECT_EQ(ops::ShortText(std::string(200, 'x')).view(), std::string(95, 'x'));
  for (const char* bad : {"", "'", "a", "'a", "'a b'", "'%'", "'%2'", "'%2'0", "'%2g'"}) {
    ops::ShortText read;
    EXPECT_THROW(parse_field(bad, read), InvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace flow
