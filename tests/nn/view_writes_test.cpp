// Writes through views: on every layout, eagerly and in graphs, with gradients, a program that
// writes through views gives what it gives for a local tensor.
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"

namespace flow {
namespace {

using Tensors = std::vector<Tensor>;

// Writes to `x` of shape (5, 5), with values computed from `w` of shape (5); returns what it has
// read, x among it.
struct Program {
  std::string name;
  std::function<Tensors(const Tensor& x, const Tensor& w)> run;
};

std::vector<Program> programs() {
  return {
      {"rows",
       [](const Tensor& x, const Tensor&) -> Tensors {
         x.index({Slice(1, 3)}).fill_(1);
         return {x};
       }},
      {"one row",
       [](const Tensor& x, const Tensor&) -> Tensors {
         x[0].zero_();
         x[-1].fill_(3);
         return {x};
       }},
      {"assigned rows",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         x[1] = w;
         x.index({Slice(2, None, 2)}) = w * 2;
         x.index({Ellipsis, 3}) = 7;
         return {x};
       }},
      {"rows at steps",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         x.index({Slice(0, None, 2), Slice(1, None, 3)}).copy_(w.narrow(0, 0, 2));
         return {x};
       }},
      {"index_put_",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         x.index_put_({Slice(1, 4)}, w);
         TensorOptions options = options_like(w);
         options.dtype = int64;
         x.index_put_({Slice(2, 5), arange(0, 5, 4, options)}, -1);
         return {x};
       }},
      {"expands that repeat nothing",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         x.expand({5, -1}).add_(1);
         x.expand({1, 5, 5}).mul_(w);
         return {x};
       }},
      {"base of an expanded column",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         const Tensor column = x.narrow(1, 0, 1) * 2;
         const Tensor wide = column.expand({5, 3});
         column[1] = w.narrow(0, 2, 1);
         return {x, column, wide};
       }},
      {"columns of the transpose",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         x.t().narrow(1, 0, 1).add_(1);
         x.t()[2].add_(w);
         return {x};
       }},
      {"a view of a view",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         const Tensor rows = x.index({Slice(1, 5)});
         const Tensor row = rows[2];
         row.add_(w);
         row.narrow(0, 1, 2).add_(10);
         return {x, rows, row};
       }},
      {"diagonal",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         diagonal(x).add_(w);
         diagonal(x, 1).fill_(50);
         return {x};
       }},
      {"new dims",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         x.unsqueeze(0)[0][2].sub_(w);
         x.index({None, 4}).fill_(5);
         return {x};
       }},
      {"reshaped",
       [](const Tensor& x, const Tensor&) -> Tensors {
         x.reshape({25}).narrow(0, 3, 9).fill_(9);
         x.index({Slice(0, 2)}).reshape({10}).narrow(0, 8, 2).fill_(-9);
         return {x};
       }},
      {"views follow their base",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         const Tensor row = x[1], column = x.t()[1];
         const Tensor before = row + 0.0;
         x.mul_(2);
         x[1].add_(w);
         column.add_(100);
         return {x, row, column, before};
       }},
      {"a view whose values were read before its history",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         const Tensor columns = x.narrow(1, 0, 2);
         x.mul_(2);
         const Tensor seen = columns.detach() * 1.0;
         x[1].add_(w);
         return {columns.detach() * 1.0, columns, seen};
       }},
      {"the transpose written over its base",
       [](const Tensor& x, const Tensor&) -> Tensors {
         x.copy_(x.t());
         return {x};
       }},
      {"overlapping views",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         const Tensor a = x.narrow(0, 0, 3), b = x.narrow(0, 1, 4);
         a.add_(w);
         b.add_(1);
         a[1].fill_(-3);
         return {a, b, x};
       }},
      {"detached",
       [](const Tensor& x, const Tensor&) -> Tensors {
         x[3].detach().fill_(8);
         return {x};
       }},
      {"a base to which its own part is added",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         const Tensor row = x[1];
         const Tensor written = row.unsqueeze(0), read = row.unsqueeze(0);
         written.mul_(w);
         x.add_(read);
         return {x, row};
       }},
      {"a detached view is read first",
       [](const Tensor& x, const Tensor& w) -> Tensors {
         const Tensor row = x[1];
         x.mul_(w);
         const Tensor before = row.detach().clone();
         return {x, row * 3, before};
       }},
      {"transposed in place",
       [](const Tensor& x, const Tensor&) -> Tensors {
         x.t().copy_(x);
         return {x};
       }},
      {"rows moved by one",
       [](const Tensor& x, const Tensor&) -> Tensors {
         x.narrow(0, 1, 4).copy_(x.narrow(0, 0, 4));
         x.copy_(x[3]);
         return {x};
       }},
      {"split and swapped",
       [](const Tensor& x, const Tensor&) -> Tensors {
         const Tensors parts = split(x, 2, 0);
         const Tensor first = parts[0].clone();
         parts[0].copy_(parts[1]);
         parts[1].copy_(first);
         return {x};
       }},
  };
}

struct LayoutCase {
  std::string name;
  int64_t ranks;
  Placement placement;
  NdSbp sbp;
};

std::vector<LayoutCase> layouts() {
  const Placement two("cpu", {0, 1}), three("cpu", {0, 1, 2}), grid("cpu", {{0, 1}, {2, 3}});
  return {
      {"B", 2, two, sbp::broadcast},
      {"S(0)", 2, two, sbp::split(0)},
      {"S(1)", 2, two, sbp::split(1)},
      {"S(0) of three", 3, three, sbp::split(0)},
      {"some ranks", 3, two, sbp::split(0)},
      {"(S(0), S(1))", 4, grid, {sbp::split(0), sbp::split(1)}},
      {"(S(0), S(0))", 4, grid, {sbp::split(0), sbp::split(0)}},
      {"(B, S(0))", 4, grid, {sbp::broadcast, sbp::split(0)}},
  };
}

using Doubles = std::vector<std::vector<double>>;

Tensor matrix() {
  return arange(25, {.dtype = float64}).reshape({5, 5}) * 0.5 - 4.0;
}

Tensor vector() {
  return arange(5, {.dtype = float64}) - 1.5;
}

Tensor placed(const Tensor& local, const LayoutCase* layout, bool is_whole) {
  if (layout == nullptr) return local;
  return tensor(local.to_vector<double>(), local.shape(),
                {.dtype = float64,
                 .placement = layout->placement,
                 .sbp = is_whole ? NdSbp::broadcast(layout->placement.num_axes()) : layout->sbp});
}

// What the program reads, and the gradients of x and w.
Tensors run_with_gradients(const Program& program, const Tensor& x, const Tensor& w) {
  const Tensor leaf = x.detach().requires_grad_(), weight = w.detach().requires_grad_();
  const Tensors read = program.run(leaf * 1.5, weight * 1.0);
  Tensor loss = (weight * 0.0).sum();
  double factor = 1;
  for (const Tensor& value : read) {
    loss = loss + (value * value * factor).sum();
    factor += 0.5;
  }
  Tensors results;
  for (const Tensor& value : read)
    results.push_back(value.detach() * 1.0);
  for (const Tensor& gradient : grad({loss}, {leaf, weight}))
    results.push_back(gradient);
  return results;
}

Tensors run_without_gradients(const Program& program, const Tensor& x, const Tensor& w) {
  Tensors results;
  for (const Tensor& value : program.run(x * 1.5, w))
    results.push_back(value * 1.0);
  return results;
}

struct Step : nn::Graph<Step> {
  Program program;
  bool has_gradients;

  Step(Program p, bool g) : program(std::move(p)), has_gradients(g) {}

  Tensors build(const Tensor& x, const Tensor& w) {
    return has_gradients ? run_with_gradients(program, x, w) : run_without_gradients(program, x, w);
  }
};

Doubles values_of(const Tensors& tensors) {
  Doubles values;
  for (const Tensor& tensor : tensors)
    values.push_back(tensor.to_vector<double>());
  return values;
}

Doubles run_program(const Program& program, const LayoutCase* layout, bool has_gradients,
                    bool in_graph) {
  const Tensor x = placed(matrix(), layout, false), w = placed(vector(), layout, true);
  if (in_graph) return values_of(Step(program, has_gradients)(x, w));
  return values_of(has_gradients ? run_with_gradients(program, x, w)
                                 : run_without_gradients(program, x, w));
}

void expect_near(const Doubles& actual, const Doubles& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size()) << what << ", result " << i;
    for (size_t k = 0; k < expected[i].size(); ++k)
      ASSERT_NEAR(actual[i][k], expected[i][k], 1e-9) << what << ", result " << i << " at " << k;
  }
}

class ViewWrites : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(ViewWrites, EveryLayoutGivesWhatALocalTensorGives) {
  const auto [has_gradients, in_graph] = GetParam();
  for (const Program& program : programs()) {
    const Doubles expected = run_program(program, nullptr, has_gradients, false);
    expect_near(run_program(program, nullptr, has_gradients, in_graph), expected,
                program.name + ", local");
    for (const LayoutCase& layout : layouts()) {
      run_ranks(layout.ranks, [&, has_gradients = has_gradients, in_graph = in_graph] {
        expect_near(run_program(program, &layout, has_gradients, in_graph), expected,
                    program.name + ", " + layout.name);
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, ViewWrites,
                         testing::Values(std::pair(false, false), std::pair(true, false),
                                         std::pair(false, true), std::pair(true, true)),
                         [](const auto& test) {
                           return std::string(test.param.second ? "graph" : "eager") +
                                  (test.param.first ? "_gradients" : "_values");
                         });

template <class Error, class Body>
std::string complaint(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ViewWritesRefused, WhatCannotBeWrittenSaysWhy) {
  const Tensor x = matrix();
  EXPECT_NE(complaint<InvalidArgument>([&] { x.index({gt(x, 0.0)}) = 1; }).find("would be lost"),
            std::string::npos);
  EXPECT_NE(complaint<InvalidArgument>([&] { x + 1.0 = x; }).find("would be lost"),
            std::string::npos);
  run_ranks(2, [] {
    const LayoutCase rows = layouts()[1];
    const Tensor leaf = placed(matrix(), &rows, false).requires_grad_();
    EXPECT_NE(complaint<InvalidArgument>([&] { leaf[0].zero_(); }).find("has a view"),
              std::string::npos);
    const Tensor split = placed(matrix(), &rows, false);
    const Tensor row = split[4];
    split.add_(1);
    EXPECT_NE(complaint<InvalidArgument>([&] { row.data<double>(); }).find("was written since"),
              std::string::npos);
  });
}

// Eagerly and in a graph, with and without memory of its own for the view.
TEST(ViewWritesRefused, NobodyKeepsTheTemporaryOfWhichItIsAPart) {
  struct Writes : nn::Graph<Writes> {
    Tensor build(const Tensor& x) {
      const auto expect_lost = [](const auto& write) {
        EXPECT_NE(complaint<InvalidArgument>(write).find("would be lost"), std::string::npos);
      };
      expect_lost([&] { (x * 2.0)[0] = 3; });
      expect_lost([&] { (x * 2.0)[0] += 3; });
      expect_lost([&] { (x * 2.0)[0][1] = x[0][0]; });
      const Tensor y = x * 2.0;
      y[0][1] = 3;
      y.unsqueeze(0)[0][1] = 4;
      return y;
    }
  };

  const auto expect_writes = [](const Tensor& x) {
    Tensor expected = matrix() * 2.0;
    expected[0][1] = 3;
    expected[1] = 4;
    Writes writes;
    EXPECT_EQ(writes.build(x).to_vector<double>(), expected.to_vector<double>());
    EXPECT_EQ(writes(x).to_vector<double>(), expected.to_vector<double>());
  };
  expect_writes(matrix());
  expect_writes(matrix().requires_grad_());
  for (const LayoutCase& layout : layouts()) {
    run_ranks(layout.ranks, [&] {
      expect_writes(placed(matrix(), &layout, false));
      expect_writes(placed(matrix(), &layout, false).requires_grad_());
    });
  }
}

// As for a local view: the gradient needs the row that the write has changed.
TEST(ViewWritesRefused, AWriteChangesAViewThatAGradientNeeds) {
  const auto message = [](const TensorOptions& options) -> std::string {
    const Tensor x = ones({4, 3}, options).requires_grad_();
    try {
      const Tensor y = x * 2;
      const Tensor row = y[1];
      const Tensor squares = row * row;
      y.mul_(3);
      squares.sum().backward();
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message({}).find("written in place 1 time"), std::string::npos) << message({});
  run_ranks(2, [&] {
    const std::string text = message({.placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    EXPECT_NE(text.find("written in place 1 time"), std::string::npos) << text;
  });
}

struct ReshapedBase : nn::Graph<ReshapedBase> {
  Tensor build(const Tensor& x) {
    const Tensor h = x * 1.5;
    const Tensor row = h[0];
    h.mul_(2);
    h.unsqueeze_(0);
    return row * 1.0;
  }
};

TEST(ViewWritesRefused, AViewIsNotMadeAgainOfABaseOfAnotherShape) {
  const std::string message = complaint<InvalidArgument>([] { ReshapedBase()(matrix()); });
  EXPECT_NE(message.find("changed its shape in place"), std::string::npos) << message;
}

TEST(ViewWritesEnd, WhereAViewGetsOtherMemory) {
  run_ranks(2, [] {
    const LayoutCase rows = layouts()[1];
    const Tensor base = placed(matrix(), &rows, false);
    const Tensor row = base[4];
    row.set_data(row.clone());
    row.add_(1);
    EXPECT_EQ(base.to_vector<double>(), matrix().to_vector<double>());
    EXPECT_EQ(row.to_vector<double>(), (matrix()[4] + 1).to_vector<double>());
  });
}

// The second rank has one row, which is contiguous in both orders of dims; the first has two.
TEST(ViewWritesEnd, AtAContiguousCopyOnAllRanks) {
  run_ranks(2, [] {
    const Tensor x = ones({3, 5}, {.placement = Placement("cpu", {0, 1}), .sbp = sbp::split(0)});
    x.t().contiguous().fill_(7);
    EXPECT_EQ(x.to_vector<float>(), std::vector<float>(15, 1));
  });
}

TEST(ViewWritesEnd, WhereAViewBecomesLocal) {
  run_ranks(2, [] {
    const LayoutCase rows = layouts()[1];
    const Tensor x = placed(matrix(), &rows, false);
    const Tensor part = x.index({Slice(1, 3)}).to_global({.sbp = sbp::broadcast}).to_local();
    const Tensor alone = x.index({Slice(1, 4)}).to_local();
    x.fill_(0);
    if (env::rank() == 0) alone.fill_(5);  // no other rank takes part

    EXPECT_EQ(part.to_vector<double>()[0], matrix()[1][0].item<double>());
    EXPECT_EQ(x.sum().item<double>(), 0);
  });
}

struct WriteInput : nn::Graph<WriteInput> {
  std::function<void(const Tensor&)> write;

  explicit WriteInput(std::function<void(const Tensor&)> w) : write(std::move(w)) {}

  Tensor build(const Tensor& x) {
    write(x);
    return x * 1.0;
  }
};

TEST(ViewWritesRefused, AGraphDoesNotWriteToItsInputs) {
  const std::vector<std::function<void(const Tensor&)>> writes = {
      [](const Tensor& x) { x.add_(1); },
      [](const Tensor& x) { x.fill_(1); },
      [](const Tensor& x) { x.copy_(x * 2); },
      [](const Tensor& x) { x[0].zero_(); },
      [](const Tensor& x) { x.t().narrow(0, 1, 1).mul_(2); },
      [](const Tensor& x) { x.reshape({25}).detach().zero_(); },
      [](const Tensor& x) { x.index_put_({Slice(1, 3)}, 4); },
  };
  for (const auto& body : writes) {
    const Tensor x = matrix();
    const std::string text = complaint<Unsupported>([&] { WriteInput{body}(x); });
    EXPECT_NE(text.find("an input of the step"), std::string::npos) << text;
    EXPECT_NE(text.find("view_writes_test.cpp"), std::string::npos) << text;
    EXPECT_EQ(x.to_vector<double>(), matrix().to_vector<double>());
  }
}

}  // namespace
}  // namespace flow
