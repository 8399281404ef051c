// What graphs refuse with the user's line: traced tensors that are used without their trace, calls
// in build() that cannot be traced, and ranks that differ.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "eager/profiler.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

const Placement kPair("cpu", {0, 1});

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- what build() must not do

struct Keeps : nn::Graph<Keeps> {
  Tensor kept, loss;

  Tensor build(const Tensor& x) {
    kept = x * 2;
    loss = kept.detach().requires_grad_().square().sum();
    return x + 1;
  }
};

TEST(GraphErrors, TensorsThatOutliveTheirTraceNameTheirLine) {
  Keeps graph;
  const Tensor x = ones({2, 2});
  graph(x);
  const Tensor kept = graph.kept;

  struct Uses : nn::Graph<Uses> {
    Tensor other;

    Tensor build(const Tensor& x) { return x + other; }
  };

  Uses uses;
  uses.other = kept;
  const std::vector<std::pair<const char*, std::function<void()>>> cases{
      {"op", [&] { relu(kept); }},
      {"two operands", [&] { x + kept; }},
      {"view", [&] { kept.t(); }},
      {"in place", [&] { kept.add_(1); }},
      {"source of a copy",
       [&] {
         ones({2, 2}).copy_(kept);
       }},
      {"item", [&] { kept.sum().item<float>(); }},
      {"to_vector", [&] { kept.to_vector<float>(); }},
      {"data", [&] { kept.data<float>(); }},
      {"clone", [&] { kept.clone(); }},
      {"backward", [&] { graph.loss.backward(); }},
      {"input of a graph", [&] { Keeps()(kept); }},
      {"value in another trace", [&] { uses(x); }},
      {"optimizer",
       [&] {
         const Tensor w = ones({2, 2}).requires_grad_();
         w.set_grad(kept);
         optim::SGD(std::vector<Tensor>{w}, {.lr = 0.1}).step();
       }},
  };
  for (const auto& [name, use] : cases) {
    const std::string error = error_of<Error>(use);
    EXPECT_TRUE(has(error, "trace")) << name << ": " << error;
    EXPECT_TRUE(has(error, "graph_refusals_test.cpp:")) << name << ": " << error;
    EXPECT_FALSE(has(error, "broken invariant")) << name << ": " << error;
  }
  EXPECT_NE(str(kept), "") << "it can be printed";
}

TEST(GraphErrors, MemoryOfTracedTensorsIsRefusedWithTheLine) {
  struct Data : nn::Graph<Data> {
    Tensor build(const Tensor& x) {
      const Tensor y = x * 2;
      y.data<float>();
      return y;
    }
  };

  Data graph;
  const std::string error = error_of<Error>([&] { graph(ones({2})); });
  EXPECT_TRUE(has(error, "[data]")) << error;
  EXPECT_TRUE(has(error, "graph_refusals_test.cpp:")) << error;
}

TEST(GraphErrors, ValuesFromOutsideAreRefusedBecauseAPlanWouldKeepThem) {
  struct Reads : nn::Graph<Reads> {
    std::function<Tensor(const Tensor&)> body;

    Tensor build(const Tensor& x) { return body(x); }
  };

  const nn::Linear fc(1, 1);
  const Tensor count = zeros({1});
  const std::vector<std::pair<const char*, std::function<Tensor(const Tensor&)>>> cases{
      {"[item]", [&](const Tensor& x) { return x * fc.bias.item<double>(); }},
      {"[item]",
       [&](const Tensor& x) {
         count.add_(1);
         return x * count.item<double>();
       }},
      {"[to_vector]", [&](const Tensor& x) { return x * count.to_vector<float>()[0]; }},
      {"[data]", [&](const Tensor& x) { return x * count.data<float>()[0]; }}};
  for (const auto& [method, body] : cases) {
    Reads graph;
    graph.body = body;
    const std::string error = error_of<InvalidArgument>([&] { graph(ones({2})); });
    EXPECT_TRUE(has(error, method)) << error;
    EXPECT_TRUE(has(error, "graph_refusals_test.cpp:")) << error;
  }
}

TEST(GraphErrors, StepsAndScalesOfTheEagerLoopAreRefused) {
  struct Step : nn::Graph<Step> {
    nn::Linear fc{2, 1};
    optim::SGD optimizer{fc.parameters(), {.lr = 0.1}};
    optim::GradScaler scaler;
    bool scales;

    explicit Step(bool scales_it) : scales(scales_it) {}

    Tensor build(const Tensor& x) {
      Tensor loss = fc(x).sum();
      if (scales) loss = scaler.scale(loss);
      loss.backward();
      optimizer.step();
      return loss;
    }
  };

  Step steps(false), scales(true);
  EXPECT_TRUE(has(error_of<Unsupported>([&] { steps(ones({2})); }), "add_optimizer"));
  EXPECT_TRUE(has(error_of<Unsupported>([&] { scales(ones({2})); }), "set_grad_scaler"));
}

TEST(GraphErrors, SizesThatDependOnValuesNameWhatToDoInstead) {
  struct Packs : nn::Graph<Packs> {
    Tensor build(const Tensor& x, const Tensor& lengths) {
      return nn::utils::rnn::pack_padded_sequence(x, lengths).data;
    }
  };

  struct Finds : nn::Graph<Finds> {
    Tensor build(const Tensor& x) { return nonzero(x); }
  };

  const Tensor lengths = tensor({3, 2}, {.dtype = int64});
  const std::string packed = error_of<Unsupported>([&] { Packs()(ones({3, 2, 4}), lengths); });
  EXPECT_TRUE(has(packed, "[pack_padded_sequence]") && has(packed, "pack outside")) << packed;
  const std::string found = error_of<Unsupported>([&] { Finds()(ones({2})); });
  EXPECT_TRUE(has(found, "nonzero_static")) << found;
}

TEST(GraphErrors, AGraphInAGraphIsRefusedEvenIfItIsCompiled) {
  struct Inner : nn::Graph<Inner> {
    Tensor build(const Tensor& x) { return x * 2; }
  };

  struct Outer : nn::Graph<Outer> {
    Inner inner;

    Tensor build(const Tensor& x) { return inner(x + 1); }
  };

  Outer graph;
  for (int i = 0; i < 2; ++i) {
    const std::string error = error_of<Error>([&] { graph(ones({2})); });
    EXPECT_TRUE(has(error, "in build() of another graph")) << error;
    EXPECT_TRUE(has(error, "graph_refusals_test.cpp:")) << error;
    EXPECT_EQ(graph.inner(ones({2})).to_vector<float>(), (std::vector<float>{2, 2}));
  }
}

struct Same : Function<Same> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x; }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, const std::vector<Tensor>& dy) {
    return {dy[0] * 10};
  }
};

struct FirstRow : Function<FirstRow> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x.slice(0, 0, 1); }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, const std::vector<Tensor>& dy) {
    return {cat({dy[0], zeros_like(dy[0])}, 0)};
  }
};

template <class Fn>
struct WritesShared : nn::Graph<WritesShared<Fn>> {
  bool writes_result;

  explicit WritesShared(bool result) : writes_result(result) {}

  Tensor build(const Tensor& x) {
    const Tensor leaf = x.detach().requires_grad_(), input = leaf * 1, result = Fn::apply(input);
    (writes_result ? result : input).mul_(2);
    return grad({result.sum() + input.sum()}, {leaf})[0];
  }
};

TEST(GraphErrors, WritesToMemoryThatACustomFunctionSharesAreRefusedAsInEagerMode) {
  const Tensor x = ones({2, 2});
  for (const bool writes_result : {true, false}) {
    WritesShared<Same> same(writes_result);
    EXPECT_THROW(same.build(x), InvalidArgument);
    EXPECT_THROW(same(x), InvalidArgument);
    WritesShared<FirstRow> row(writes_result);
    EXPECT_THROW(row.build(x), InvalidArgument);
    EXPECT_THROW(row(x), InvalidArgument);
  }
}

TEST(GraphErrors, AProfileInBuildIsRefused) {
  struct Profiles : nn::Graph<Profiles> {
    Tensor build(const Tensor& x) {
      const profiler::Profile profile;
      return x * 2;
    }
  };

  Profiles graph;
  const std::string error = error_of<Error>([&] { graph(ones({2})); });
  EXPECT_TRUE(has(error, "[profiler]")) << error;
  EXPECT_TRUE(has(error, "graph_refusals_test.cpp:")) << error;
  const profiler::Profile around;
  EXPECT_EQ((ones({1}) * 2).item<float>(), 2);
  EXPECT_EQ(around.events().empty(), false);
}

// ---- ranks that differ

Tensor rows(int64_t n) {
  return ones({n, 4}, {.placement = kPair, .sbp = sbp::split(0)});
}

struct Differs : nn::Graph<Differs> {
  bool is_other = false;

  using nn::GraphBase::config;

  Tensor build(const Tensor& x) { return (is_other ? gelu(x) : relu(x)).sum(); }
};

void expect_difference(const std::function<void(Differs&)>& call,
                       const std::vector<std::string>& parts) {
  run_ranks(2, [&] {
    Differs graph;
    const std::string error = error_of<Error>([&] { call(graph); });
    EXPECT_TRUE(has(error, "ranks 0 and 1 compiled different steps")) << error;
    for (const std::string& part : parts)
      EXPECT_TRUE(has(error, part)) << part << " in " << error;
  });
}

TEST(GraphOnRanks, DifferentStepsAreRefused) {
  expect_difference(
      [](Differs& graph) {
        graph.is_other = env::rank() == 0;
        graph(rows(4));
      },
      {"rank 0 has: gelu", "rank 1 has: relu", "graph_refusals_test.cpp:"});
}

TEST(GraphOnRanks, DifferentInputsAreRefused) {
  expect_difference([](Differs& graph) { graph(rows(env::rank() == 0 ? 4 : 6)); },
                    {"rank 0 has: input 0: float32 (4, 4)", "rank 1 has: input 0: float32 (6, 4)"});
}

TEST(GraphOnRanks, DifferentOptionsAreRefused) {
  expect_difference(
      [](Differs& graph) {
        graph.config().set_micro_batches(env::rank() == 0 ? 1 : 2);
        graph(rows(4));
      },
      {});
}

TEST(GraphOnRanks, ACallOfAnotherPlanIsRefusedByItsFirstMessage) {
  run_ranks(2, [] {
    Differs graph;
    graph(rows(4));
    graph(rows(8));
    const std::string error = error_of<Error>([&] { graph(rows(env::rank() == 0 ? 4 : 8)); });
    EXPECT_TRUE(has(error, "ranks disagree")) << error;
    EXPECT_TRUE(has(error, "compiled for float32 (4, 4)")) << error;
    EXPECT_TRUE(has(error, "compiled for float32 (8, 4)")) << error;
  });
}

TEST(GraphOnRanks, AMessageOfAnotherPlanIsRefused) {
  struct Moves : nn::Graph<Moves> {
    bool adds = false;

    Tensor build(const Tensor& x) {
      const Placement second("cpu", {1});
      return (x * 2).to_global({.placement = second, .sbp = sbp::broadcast}) + 1;
    }
  };

  run_ranks(2, [] {
    const Placement first("cpu", {0});
    const auto input = [&](DType dtype) {
      return ones({2, 2}, {.dtype = dtype, .placement = first, .sbp = sbp::broadcast});
    };
    Moves graph;
    graph(input(float32));
    graph(input(int32));
    // The messages have the same size.
    const std::string error = error_of<Error>([&] {
      graph(input(env::rank() == 0 ? float32 : int32));
      env::barrier();
    });
    EXPECT_TRUE(has(error, "different compiled steps") || has(error, "ranks disagree")) << error;
  });
}

TEST(GraphOnRanks, LocalGraphsDoNotCommunicate) {
  run_ranks(2, [] {
    Differs graph;
    graph.is_other = env::rank() == 0;
    if (env::rank() == 0) graph(ones({3}));
    graph(ones({env::rank() + 1}));
    env::barrier();
  });
}

// Compiling again on one rank is no reason to talk to the others if the step is the same.
TEST(GraphOnRanks, ARankMayCompileTheSameStepAgain) {
  struct Holds : nn::Graph<Holds> {
    Tensor w = ones({4}, {.placement = kPair, .sbp = sbp::broadcast});
    int traces = 0;

    Tensor build(const Tensor& x) {
      ++traces;
      return (x * w).sum();
    }
  };

  run_ranks(2, [] {
    Holds graph;
    EXPECT_EQ(graph(rows(4)).item<float>(), 16);
    if (env::rank() == 0) graph.w = graph.w.clone();
    EXPECT_EQ(graph(rows(4)).item<float>(), 16);
    EXPECT_EQ(graph.traces, env::rank() == 0 ? 2 : 1);
  });
}

}  // namespace
}  // namespace flow
