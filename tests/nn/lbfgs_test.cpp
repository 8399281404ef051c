// L-BFGS: losses, parameters and numbers of evaluations are those of PyTorch 2.15
// (torch.optim.LBFGS, float64), on a sum of Rosenbrock's function and a quartic of a matrix.
#include "nn/optim/lbfgs.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "nn/graph.h"
#include "nn/layers/linear.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using Doubles = std::vector<double>;
using optim::LBFGS;
using optim::LBFGSOptions;

struct Problem {
  Tensor a = tensor(Doubles{-1.2, 1.0}, {2}).requires_grad_();
  Tensor b = tensor(Doubles{0.5, 2.0, -1.0, 0.3}, {2, 2}).requires_grad_();
  int num_evaluations = 0;

  std::vector<Tensor> parameters() const { return {a, b}; }

  Tensor evaluate() {
    ++num_evaluations;
    a.set_grad(Tensor());
    b.set_grad(Tensor());
    const Tensor x = a.select(0, 0), y = a.select(0, 1);
    const Tensor square_of_b = matmul(b, b);
    TensorOptions like{.dtype = float64};
    if (b.is_global()) like = {.dtype = float64, .placement = b.placement(), .sbp = sbp::broadcast};
    const Tensor loss = square(1 - x) + 100 * square(y - square(x)) +
                        square(square_of_b - eye(2, like)).sum() + 0.1 * (b.sum() * x);
    loss.backward();
    return loss;
  }
};

Doubles losses_of(Problem& problem, LBFGS& optimizer, int steps) {
  Doubles losses;
  for (int i = 0; i < steps; ++i)
    losses.push_back(optimizer.step([&] { return problem.evaluate(); }).item());
  return losses;
}

void expect_near(const Doubles& actual, const Doubles& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected[i], 1e-9) << "element " << i;
}

void expect_equal_to_pytorch(const LBFGSOptions& options, const Doubles& losses, int evaluations,
                             const Doubles& parameters) {
  Problem problem;
  LBFGS optimizer(problem.parameters(), options);

  expect_near(losses_of(problem, optimizer, static_cast<int>(losses.size())), losses);

  EXPECT_EQ(problem.num_evaluations, evaluations);
  Doubles found = problem.a.to_vector<double>();
  for (const double x : problem.b.to_vector<double>())
    found.push_back(x);
  expect_near(found, parameters);
}

TEST(Lbfgs, LineSearchEqualsPyTorch) {
  expect_equal_to_pytorch({.max_iter = 5, .line_search_fn = "strong_wolfe"},
                          {43.214599999999997, 9.5970032194467407, 3.2554228395900742}, 18,
                          {-0.43193476856520563, 0.17785620947878192, 0.022221320922984976,
                           1.3477906189468549, 0.41821431274904108, -0.30522818625769083});
}

TEST(Lbfgs, AShortHistoryEqualsPyTorch) {
  expect_equal_to_pytorch({.max_iter = 8, .history_size = 3, .line_search_fn = "strong_wolfe"},
                          {43.214599999999997, 4.1028724434193142}, 19,
                          {-0.48933476738238246, 0.20578937539000616, 0.006355030476505194,
                           1.2726477408749273, 0.65682123506916001, -0.35495893816003699});
}

TEST(Lbfgs, StepsOfFixedLengthEqualPyTorch) {
  expect_equal_to_pytorch({.lr = 0.05, .max_iter = 4},
                          {43.214599999999997, 32.633216001230835, 28.53284368815866}, 12,
                          {-1.1112445728864238, 1.0459992439806971, 0.49364797000035521,
                           1.9640412475564759, -0.9347141009228529, 0.28791272636322518});
}

TEST(Lbfgs, TheLimitOfEvaluationsEqualsPyTorch) {
  expect_equal_to_pytorch({.lr = 0.05, .max_iter = 10, .max_eval = 6, .history_size = 2},
                          {43.214599999999997, 31.540593963878635}, 12,
                          {-1.1209104857533054, 1.0415186374921934, 0.49455914383185157,
                           1.9690981956166551, -0.94427384756198407, 0.28970359815295649});
}

// One parameter, which starts at `x`. Returns the calls of the closure.
int steps_of(const Tensor& x, const LBFGSOptions& options,
             const std::function<Tensor(const Tensor&)>& f) {
  LBFGS optimizer({x.requires_grad_()}, options);
  int evaluations = 0;
  optimizer.step([&] {
    ++evaluations;
    optimizer.zero_grad();
    const Tensor loss = f(x).sum();
    loss.backward();
    return loss;
  });
  return evaluations;
}

TEST(Lbfgs, TheLimitOfEvaluationsHoldsInLineSearches) {
  const auto quartic = [](const Tensor& x) { return square(square(x - 1)); };
  const Tensor a = tensor(Doubles{3});
  EXPECT_EQ(steps_of(a, {.lr = 1e-4, .max_iter = 1, .line_search_fn = "strong_wolfe"}, quartic), 2);
  EXPECT_NEAR(a.item(), 2.9999, 1e-12);
  const auto wave = [](const Tensor& x) { return 10 * cos(x) + square(x); };
  const Tensor b = tensor(Doubles{1});
  EXPECT_EQ(steps_of(b, {.lr = 20, .max_iter = 1, .line_search_fn = "strong_wolfe"}, wave), 2);
  EXPECT_EQ(b.item(), 1);
  const Tensor c = tensor(Doubles{1});  // a large tolerance of the step does not end its searches
  EXPECT_EQ(steps_of(c,
                     {.lr = 20,
                      .max_iter = 1,
                      .max_eval = 100,
                      .tolerance_change = 30,
                      .line_search_fn = "strong_wolfe"},
                     wave),
            3);
  EXPECT_NEAR(c.item(), 2.5362447657, 1e-9);
}

TEST(Lbfgs, MaximisesWhatIsTheNegativeOfAMinimum) {
  const auto quartic = [](const Tensor& x) { return square(square(x - 1)); };
  const auto negative = [&](const Tensor& x) { return -1 * quartic(x); };
  for (const std::string search : {"", "strong_wolfe"}) {
    const Tensor a = tensor(Doubles{3}), b = tensor(Doubles{3});
    const int calls = steps_of(a, {.lr = 0.1, .line_search_fn = search}, quartic);
    EXPECT_EQ(steps_of(b, {.lr = 0.1, .line_search_fn = search, .maximize = true}, negative),
              calls);
    EXPECT_EQ(b.item(), a.item());
    EXPECT_LT(std::abs(a.item() - 1), 2);
  }
}

TEST(Lbfgs, FindsTheMinimumOfRosenbrocksFunction) {
  const Tensor x = tensor(Doubles{-1.2, 1.0}, {2}).requires_grad_();
  LBFGS optimizer({x},
                  {.max_iter = 50, .tolerance_change = 1e-14, .line_search_fn = "strong_wolfe"});

  optimizer.step([&] {
    optimizer.zero_grad();
    const Tensor loss =
        square(1 - x.select(0, 0)) + 100 * square(x.select(0, 1) - square(x.select(0, 0)));
    loss.backward();
    return loss;
  });

  for (const double value : x.to_vector<double>())
    EXPECT_NEAR(value, 1, 1e-6);
}

TEST(Lbfgs, AStateGoesOnWithTheSameNumbers) {
  const LBFGSOptions options{.max_iter = 3, .history_size = 4, .line_search_fn = "strong_wolfe"};
  Problem whole;
  LBFGS optimizer(whole.parameters(), options);
  const Doubles expected = losses_of(whole, optimizer, 4);

  Problem first;
  LBFGS before(first.parameters(), options);
  losses_of(first, before, 2);
  Problem second;
  second.a.detach().copy_(first.a.detach());
  second.b.detach().copy_(first.b.detach());
  LBFGS after(second.parameters(), options);
  after.load_state_dict(before.state_dict());

  EXPECT_EQ(losses_of(second, after, 2), (Doubles{expected[2], expected[3]}));
}

TEST(Lbfgs, ManyRanksMinimiseTogether) {
  Problem alone;
  LBFGS optimizer(alone.parameters(), {.max_iter = 4, .line_search_fn = "strong_wolfe"});
  const Doubles expected = losses_of(alone, optimizer, 2);

  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    Problem problem;
    problem.a = problem.a.detach().to_global({.placement = both, .sbp = sbp::broadcast});
    problem.b = problem.b.detach()
                    .to_global({.placement = both, .sbp = sbp::broadcast})
                    .to_global({.placement = both, .sbp = sbp::split(0)});
    problem.a.requires_grad_();
    problem.b.requires_grad_();
    LBFGS own(problem.parameters(), {.max_iter = 4, .line_search_fn = "strong_wolfe"});

    expect_near(losses_of(problem, own, 2), expected);
  });
}

TEST(Lbfgs, WrongUseSaysWhatToDo) {
  Problem problem;
  LBFGS optimizer(problem.parameters());

  EXPECT_THROW(optimizer.step(), Unsupported);
  problem.evaluate();
  EXPECT_THROW(static_cast<optim::Optimizer&>(optimizer).step(), Unsupported);
  EXPECT_THROW(LBFGS(problem.parameters(), {.line_search_fn = "armijo"}), InvalidArgument);
  EXPECT_THROW(LBFGS(problem.parameters(), {.max_iter = 0}), InvalidArgument);
  EXPECT_THROW(LBFGS(problem.parameters(), {.shard_state = true}), Unsupported);
}

TEST(Lbfgs, AGraphRefusesIt) {
  struct Train : nn::Graph<Train> {
    nn::Linear layer;

    Train(nn::Linear l, optim::Optimizer& optimizer) : layer(l) { add_optimizer(optimizer); }

    Tensor build(const Tensor& x) {
      const Tensor loss = layer(x).sum();
      loss.backward();
      return loss;
    }
  };

  nn::Linear layer(2, 2);
  LBFGS optimizer(layer.parameters());
  Train graph(layer, optimizer);

  EXPECT_THROW(graph(ones({1, 2})), Unsupported);
}

}  // namespace

}  // namespace flow
