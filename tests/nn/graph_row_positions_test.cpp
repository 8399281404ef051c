// Micro-batches of functions that depend on the positions of rows in the batch: each gives what the
// whole batch gives, or is refused for a reviewed reason.
#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"

namespace flow {
namespace {

constexpr int64_t kRows = 7, kColumns = 5;

struct Case {
  std::string name;
  std::function<Tensor(const Tensor& x)> function;  // of (kRows, kColumns)
};

Tensor source(const Shape& shape) {
  return arange(shape.numel(), {.dtype = float64}).reshape(shape) / 10 + 3;
}

Tensor indices(std::vector<int64_t> values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return tensor(values, shape);
}

// A write in place, to a copy because the step must not change its input.
Case write(std::string name, std::function<void(const Tensor& x)> function) {
  return {std::move(name), [function](const Tensor& x) {
            const Tensor copy = x.clone();
            function(copy);
            return copy;
          }};
}

// Functions of one tensor.
const std::vector<Case>& rearrangements() {
  static const std::vector<Case> all_cases = {
      {"first row", [](const Tensor& x) { return x[0]; }},
      {"last row", [](const Tensor& x) { return x[-1]; }},
      {"row 3", [](const Tensor& x) { return x.select(0, 3); }},
      {"one element", [](const Tensor& x) { return x[4][2]; }},
      {"column", [](const Tensor& x) { return x.select(1, 2); }},
      {"rows 1 to 5", [](const Tensor& x) { return x.narrow(0, 1, 4); }},
      {"every second row", [](const Tensor& x) { return x.slice(0, 0, kRows, 2); }},
      {"every third row", [](const Tensor& x) { return x.slice(0, 1, kRows, 3); }},
      {"all but the last row", [](const Tensor& x) { return x.slice(0, 0, kRows - 1); }},
      {"every second column", [](const Tensor& x) { return x.slice(1, 1, kColumns, 2); }},
      {"differences of rows",
       [](const Tensor& x) { return x.narrow(0, 1, kRows - 1) - x.narrow(0, 0, kRows - 1); }},
      {"split", [](const Tensor& x) { return split(x, 3, 0)[1]; }},
      {"last of split", [](const Tensor& x) { return split(x, 3, 0).back(); }},
      {"roll", [](const Tensor& x) { return x.roll(2, 0); }},
      {"roll columns", [](const Tensor& x) { return x.roll(2, 1); }},
      {"tril", [](const Tensor& x) { return x.tril(); }},
      {"tril -1", [](const Tensor& x) { return x.tril(-1); }},
      {"triu", [](const Tensor& x) { return x.triu(); }},
      {"triu 2", [](const Tensor& x) { return x.triu(2); }},
      {"diagonal", [](const Tensor& x) { return x.diagonal(); }},
      {"diagonal 1", [](const Tensor& x) { return x.diagonal(1); }},
      {"diagonal -2", [](const Tensor& x) { return x.diagonal(-2); }},
      {"trace", [](const Tensor& x) { return trace(x); }},
      {"flip", [](const Tensor& x) { return x.flip({0}); }},
      {"flip columns", [](const Tensor& x) { return x.flip({1}); }},
      {"cumsum", [](const Tensor& x) { return x.cumsum(0); }},
  };
  return all_cases;
}

// Functions that also read tensors that are no batch.
const std::vector<Case>& with_constants() {
  static const std::vector<Case> all_cases = {
      {"gather rows",
       [](const Tensor& x) {
         return x.gather(0, indices({6, 0, 3, 3, 1, 2, 2, 5, 4, 0}).reshape({2, 5}));
       }},
      {"gather columns",
       [](const Tensor& x) {
         return x.gather(1, indices({4, 0, 1, 3, 2, 0, 1}).reshape({kRows, 1}));
       }},
      {"gather columns of the first rows",
       [](const Tensor& x) {
         return x.gather(1, indices({4, 0, 1}).reshape({3, 1}));
       }},
      {"index_select",
       [](const Tensor& x) {
         return x.index_select(0, indices({6, 2, 2}));
       }},
      {"index by tensors",
       [](const Tensor& x) {
         return x.index({indices({0, 6, 3})});
       }},
      {"index by pairs",
       [](const Tensor& x) {
         return x.index({indices({0, 6, 3}), indices({4, 0, 2})});
       }},
      {"take",
       [](const Tensor& x) {
         return x.take(indices({34, 0, 17}));
       }},
      {"embedding rows",
       [](const Tensor& x) {
         return embedding(indices({6, 0, 3, 3}), x);
       }},
      {"select_scatter", [](const Tensor& x) { return x.select_scatter(source({5}), 0, 2); }},
      {"slice_scatter",
       [](const Tensor& x) {
         return x.slice_scatter(source({3, 5}), 0, 1, 7, 2);
       }},
      {"slice_scatter of the batch",
       [](const Tensor& x) {
         return source({9, 5}).slice_scatter(x, 0, 1, 8);
       }},
      {"diagonal_scatter", [](const Tensor& x) { return x.diagonal_scatter(source({5})); }},
      {"scatter",
       [](const Tensor& x) {
         return x.scatter(0, indices({6, 0, 3, 1, 2}).reshape({1, 5}), source({1, 5}));
       }},
      {"scatter_add",
       [](const Tensor& x) {
         return x.scatter_add(0, indices({6, 6, 3, 1, 6}).reshape({1, 5}), source({1, 5}));
       }},
      {"index_put",
       [](const Tensor& x) {
         return x.index_put({indices({5, 1})}, source({2, 5}));
       }},
      {"index_add",
       [](const Tensor& x) {
         return x.index_add(0, indices({5, 1}), source({2, 5}));
       }},
      {"index_copy",
       [](const Tensor& x) {
         return x.index_copy(0, indices({5, 1}), source({2, 5}));
       }},
      {"index_fill",
       [](const Tensor& x) {
         return x.index_fill(0, indices({5, 1}), 2.5);
       }},
      {"cat of rows",
       [](const Tensor& x) {
         return cat({x.narrow(0, 5, 2), x.narrow(0, 0, 2)}, 0);
       }},
      {"stack of rows",
       [](const Tensor& x) {
         return stack({x[0], x[6]}, 0);
       }},
      {"repeat",
       [](const Tensor& x) {
         return x.repeat({2, 1});
       }},
      {"repeat_interleave", [](const Tensor& x) { return x.repeat_interleave(2, 0); }},
      {"pad rows",
       [](const Tensor& x) {
         return pad(x, {0, 0, 1, 2});
       }},
      {"row times batch", [](const Tensor& x) { return x[0] * 2.0 + x[6].sum(); }},
      {"causal attention over the batch",
       [](const Tensor& x) {
         const Tensor rows = x.unsqueeze(0);
         return scaled_dot_product_attention(rows, source({1, kRows, 5}), source({1, kRows, 5}),
                                             {.is_causal = true});
       }},
      {"targets of classes in the batch",
       [](const Tensor& x) {
         return nll_loss(x.t(), indices({6, 0, 3, 3, 1}), {.reduction = "sum"});
       }},
  };
  return all_cases;
}

const std::vector<Case>& writes() {
  static const std::vector<Case> all_cases = {
      write("zero first row", [](const Tensor& x) { x[0].zero_(); }),
      write("fill rows", [](const Tensor& x) { x.index({Slice(1, 3)}).fill_(1.5); }),
      write("fill every second row", [](const Tensor& x) { x.slice(0, 1, kRows, 2).fill_(1.5); }),
      write("add to a row", [](const Tensor& x) { x.select(0, 4).add_(source({5})); }),
      write("copy to rows",
            [](const Tensor& x) {
              x.narrow(0, 3, 2).copy_(source({2, 5}));
            }),
      write("index_put_",
            [](const Tensor& x) {
              x.index_put_({indices({0, 6})}, source({2, 5}));
            }),
      write("zero the diagonal", [](const Tensor& x) { x.diagonal().zero_(); }),
      write("zero a column", [](const Tensor& x) { x.select(1, 3).zero_(); }),
  };
  return all_cases;
}

// How a step uses the function.
enum class Use {
  kOfInput,    // of the batch itself
  kOfLayer,    // of what a layer computes of the batch
  kLinear,     // with the gradient of a weighted sum
  kNonlinear,  // with the gradient of a sum of squares
};

struct NamedUse {
  Use use;
  std::string name;
};

const NamedUse kOfInput{Use::kOfInput, "of the input"}, kOfLayer{Use::kOfLayer, "of a layer"},
    kLinear{Use::kLinear, "with linear loss"}, kNonlinear{Use::kNonlinear, "with nonlinear loss"};

struct Step : nn::Graph<Step> {
  const Case& of;
  Use use;
  Tensor weight;

  Step(const Case& c, Use u, const Tensor& w, int64_t parts) : of(c), use(u), weight(w) {
    config().set_micro_batches(parts);
  }

  std::vector<Tensor> build(const Tensor& x) {
    if (use == Use::kOfInput) return {of.function(x)};
    const Tensor result = of.function(matmul(x, weight).sin());
    if (use == Use::kOfLayer) return {result};
    const Tensor by = use == Use::kLinear ? source(result.shape()) : result;
    const Tensor loss = (result * by).sum();
    loss.backward();
    return {loss, weight.grad()};
  }
};

std::vector<Tensor> run_step(const Case& c, Use use, int64_t parts, const TensorOptions& options) {
  manual_seed(5);
  const Tensor x = randn({kRows, kColumns}, options);
  TensorOptions of_weight = options;
  if (!of_weight.sbp.empty()) of_weight.sbp = sbp::broadcast;
  Tensor weight = randn({kColumns, kColumns}, of_weight);
  weight.requires_grad_(use == Use::kLinear || use == Use::kNonlinear);
  std::vector<Tensor> results = Step(c, use, weight, parts)(x);
  for (Tensor& result : results)
    result = result.detach();
  return results;
}

// A function that micro-batches refuse, in one use or in all.
struct Refused {
  std::string_view function;
  std::string_view use;  // empty: all
  std::string_view message;
};

constexpr std::string_view kNoRule = "has no rule for inputs split into micro-batches";
constexpr std::string_view kNeedsSum = "needs a sum over all micro-batches while they run";

constexpr std::array kRefused = {
    Refused{"flip", "", kNoRule},                        // rows go to other micro-batches
    Refused{"cumsum", "", kNoRule},                      // a row needs all earlier rows
    Refused{"repeat", "", kNoRule},                      // rows go to other micro-batches
    Refused{"pad rows", "", kNoRule},                    // the result has other rows than the batch
    Refused{"slice_scatter of the batch", "", kNoRule},  // so has this
    // The row is read before it is written, and zeros of its sum are a sum as well.
    Refused{"zero first row", "", kNeedsSum},
    Refused{"zero the diagonal", "", kNeedsSum},
};

std::string_view refusal_of(const Case& c, const NamedUse& use) {
  for (const Refused& refused : kRefused) {
    if (refused.function != c.name) continue;
    if (refused.use.empty() || refused.use == use.name) return refused.message;
  }
  return {};
}

void expect_whole_or_refusal(const Case& c, const NamedUse& use) {
  const TensorOptions options{.dtype = float64};
  std::vector<Tensor> whole;
  ASSERT_NO_THROW(whole = run_step(c, use.use, 1, options));
  for (const int64_t parts : {2, 3}) {
    const std::string_view refusal = refusal_of(c, use);
    std::vector<Tensor> results;
    try {
      results = run_step(c, use.use, parts, options);
    } catch (const Unsupported& error) {
      const std::string message = error.message();
      EXPECT_TRUE(message.starts_with("[micro-batch] ")) << message;
      EXPECT_NE(message.find("graph_row_positions_test.cpp:"), std::string::npos) << message;
      EXPECT_FALSE(refusal.empty()) << message;
      EXPECT_NE(message.find(refusal), std::string::npos) << message;
      continue;
    }
    EXPECT_TRUE(refusal.empty()) << "is not refused in " << parts;
    for (size_t i = 0; i < whole.size(); ++i) {
      EXPECT_TRUE(allclose(results[i], whole[i], {.rtol = 1e-11, .atol = 1e-11}))
          << "result " << i << " in " << parts << " micro-batches";
    }
  }
}

void expect_all(const std::vector<Case>& cases, const std::vector<NamedUse>& uses) {
  for (const Case& c : cases) {
    for (const NamedUse& use : uses) {
      SCOPED_TRACE(c.name + " " + use.name);
      expect_whole_or_refusal(c, use);
    }
  }
}

TEST(RowPositions, OfRearrangementsGiveTheWholeBatchOrAreRefused) {
  expect_all(rearrangements(), {kOfInput, kOfLayer, kLinear, kNonlinear});
}

TEST(RowPositions, OfIndicesGiveTheWholeBatchOrAreRefused) {
  expect_all(with_constants(), {kOfInput, kOfLayer, kLinear, kNonlinear});
}

TEST(RowPositions, OfWritesGiveTheWholeBatchOrAreRefused) {
  expect_all(writes(), {kOfInput, kOfLayer, kLinear, kNonlinear});
}

// Each rank has rows of its own of each micro-batch, and one rank has no row of the last.
TEST(RowPositions, OnRanksGiveTheWholeBatchOrAreRefused) {
  run_ranks(2, [] {
    const TensorOptions options{
        .dtype = float64, .placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)};
    int64_t num_equal = 0;
    for (const Case& c : rearrangements()) {
      for (const NamedUse& use : {kOfInput, kOfLayer, kNonlinear}) {
        SCOPED_TRACE(c.name + " " + use.name);
        const std::vector<Tensor> whole = run_step(c, use.use, 1, options);
        for (const int64_t parts : {2, 3, 4}) {
          std::vector<Tensor> results;
          try {
            results = run_step(c, use.use, parts, options);
          } catch (const Unsupported& error) {
            EXPECT_TRUE(error.message().starts_with("[micro-batch] ")) << error.what();
            continue;
          }
          ++num_equal;
          for (size_t i = 0; i < whole.size(); ++i) {
            EXPECT_TRUE(
                allclose(results[i].full(), whole[i].full(), {.rtol = 1e-11, .atol = 1e-11}))
                << "result " << i << " in " << parts << " micro-batches";
          }
        }
      }
    }
    EXPECT_GE(num_equal, 100);
  });
}

// While the weight is trained, x[0] cannot be computed before the micro-batches that need it.
TEST(RowPositions, ARowThatMicroBatchesWaitForIsRefused) {
  struct Trained : nn::Graph<Trained> {
    Tensor weight;

    Trained(const Tensor& w, optim::Optimizer& optimizer) : weight(w) {
      add_optimizer(optimizer);
      config().set_micro_batches(2);
    }

    Tensor build(const Tensor& x) {
      const Tensor first = matmul(x, weight).sin()[0];
      Tensor loss = (first * first).sum();
      loss.backward();
      return loss;
    }
  };

  const Tensor weight = ones({kColumns, kColumns});
  weight.requires_grad_();
  optim::SGD optimizer({weight}, {.lr = 0.1});
  Trained graph(weight, optimizer);
  try {
    graph(ones({kRows, kColumns}));
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(kNeedsSum), std::string::npos) << message;
    EXPECT_NE(message.find("graph_row_positions_test.cpp:"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace flow
