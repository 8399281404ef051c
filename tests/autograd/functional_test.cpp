#include "autograd/functional.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/error.h"
#include "core/generator.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

using Doubles = std::vector<double>;

Tensor doubles(const Doubles& values) {
  return tensor(values, {static_cast<int64_t>(values.size())});
}

// (x0 x1, x1 + sin x2)
Tensor curve(const Tensor& x) {
  const Tensor a = x.select(0, 0), b = x.select(0, 1), c = x.select(0, 2);
  return stack({a * b, b + sin(c)}, 0);
}

const Doubles kPoint{2, 3, 0.5};

void expect_near(const Tensor& actual, const Doubles& expected) {
  const Doubles values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], expected[i], 1e-14) << "element " << i;
}

TEST(Functional, JacobianHasADerivativeForEachPair) {
  const Tensor j = jacobian(curve, doubles(kPoint));

  EXPECT_EQ(j.shape(), (Shape{2, 3}));
  expect_near(j, {3, 2, 0, 0, 1, std::cos(0.5)});
}

TEST(Functional, ProductsEqualThoseWithTheJacobian) {
  const Tensor x = doubles(kPoint);
  const double c = std::cos(0.5);

  const auto [y, back] = vjp(curve, x, doubles({10, 100}));
  const auto [same, forth] = jvp(curve, x, doubles({1, 10, 100}));

  expect_near(y, {6, 3 + std::sin(0.5)});
  expect_near(back, {30, 20 + 100, 100 * c});
  expect_near(same, y.to_vector<double>());
  expect_near(forth, {3 + 20, 10 + 100 * c});
  EXPECT_FALSE(back.requires_grad());
  EXPECT_FALSE(y.requires_grad());
}

TEST(Functional, HessianOfAQuadraticFormIsItsSymmetricPart) {
  const Tensor a = tensor(Doubles{1, 2, 3, 4, 5, 6, 7, 8, 9}, {3, 3});
  const auto form = [&](const Tensor& x) { return matmul(matmul(x, a), x); };

  expect_near(hessian(form, doubles(kPoint)), {2, 6, 10, 6, 10, 14, 10, 14, 18});
}

TEST(Functional, SeveralInputsHaveABlockForEachPair) {
  const TensorsFunction f = [](const std::vector<Tensor>& in) {
    return (square(in[0]) * in[1]).sum();
  };
  const std::vector<Tensor> x{doubles({1, 2}), doubles({3, 4})};

  const auto h = hessian(f, x);

  expect_near(h[0][0], {6, 0, 0, 8});
  expect_near(h[0][1], {2, 0, 0, 4});
  expect_near(h[1][0], {2, 0, 0, 4});
  expect_near(h[1][1], {0, 0, 0, 0});  // linear in the second input
}

TEST(Functional, AnInputWithoutInfluenceHasZeros) {
  const TensorsFunction f = [](const std::vector<Tensor>& in) { return in[0] * 2; };
  const std::vector<Tensor> x{doubles({1, 2}), doubles({3})};

  expect_near(jacobian(f, x)[1], {0, 0});
  expect_near(vjp(f, x, doubles({1, 1})).second[1], {0});
  expect_near(jacobian([](const Tensor&) { return doubles({5}); }, x[0]), {0, 0});
}

TEST(Functional, WithCreateGraphResultsCanBeDifferentiatedAgain) {
  const Tensor x = doubles({2}).requires_grad_();
  const auto cube = [](const Tensor& t) { return t * t * t; };

  const Tensor j = jacobian(cube, x, {.create_graph = true});
  const Tensor along = jvp(cube, x, doubles({1}), {.create_graph = true}).second;

  expect_near(grad({j.sum()}, {x})[0], {12});
  expect_near(grad({along.sum()}, {x})[0], {12});
  EXPECT_FALSE(jacobian(cube, x).requires_grad());
}

TEST(Functional, InputsThatAreOneTensorAreDifferentiatedApart) {
  const Tensor x = doubles({1, 2, 3}).requires_grad_();
  const TensorsFunction cubic = [](const std::vector<Tensor>& in) {
    return (in[0] * in[0] * in[1]).sum();
  };
  for (const bool create_graph : {false, true}) {
    const auto g = vjp(cubic, {x, x}, {}, {.create_graph = create_graph}).second;
    expect_near(g[0], {2, 8, 18});
    expect_near(g[1], {1, 4, 9});
    const auto captured = [&](const Tensor& in) { return (in * x).sum(); };
    expect_near(vjp(captured, x, {}, {.create_graph = create_graph}).second, {1, 2, 3});
    const TensorsFunction product = [](const std::vector<Tensor>& in) {
      return (in[0] * in[1]).sum();
    };
    expect_near(hessian(product, {x, x}, {.create_graph = create_graph})[0][0],
                std::vector<double>(9, 0));
  }
}

TEST(Functional, WrongCallsSayWhatIsExpected) {
  const Tensor x = doubles(kPoint);

  EXPECT_THROW(jvp(curve, x, ones_like(x).to(float32)), InvalidArgument);

  EXPECT_THROW(vjp(curve, x), InvalidArgument);
  EXPECT_THROW(vjp(curve, x, doubles({1})), InvalidArgument);
  EXPECT_THROW(jvp(curve, x, doubles({1})), InvalidArgument);
  EXPECT_THROW(hessian(curve, x), InvalidArgument);
  EXPECT_THROW(vmap(curve)(zeros({0, 3})), InvalidArgument);
}

TEST(Functional, VmapStacksTheResultsOfSlices) {
  const Tensor x = tensor(Doubles{1, 2, 3, 4, 5, 6}, {2, 3});
  const auto squared_norm = [](const Tensor& row) { return square(row).sum(); };
  const auto twice = [](const Tensor& row) { return row * 2; };

  expect_near(vmap(squared_norm)(x), {14, 77});
  expect_near(vmap(squared_norm, {.in_dim = 1})(x), {17, 29, 45});
  expect_near(vmap(twice, {.out_dim = 1})(x), {2, 8, 4, 10, 6, 12});
  expect_near(jacobian(vmap(squared_norm), x).reshape({2, 6}),
              {2, 4, 6, 0, 0, 0, 0, 0, 0, 8, 10, 12});
}

TEST(Functional, VmapTakesSeveralInputsAndDims) {
  const Tensor w = tensor(Doubles{1, 2, 3, 4}, {2, 2});
  const Tensor x = tensor(Doubles{1, 2, 3, 4, 5, 6}, {2, 3});
  const auto product = [](const std::vector<Tensor>& in) { return matmul(in[0], in[1]); };
  const auto both = [](const std::vector<Tensor>& in) -> std::vector<Tensor> {
    return {in[0] + in[1], in[0] * 2};
  };

  // The columns of x, of which each is multiplied by the whole w.
  const Tensor y = vmap(product, {.in_dims = {std::nullopt, 1}, .out_dims = {1}})({w, x});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  expect_near(y, {9, 12, 15, 19, 26, 33});
  expect_near(vmap(product, VmapDims{})({x, x}), {14, 77});
  const std::vector<Tensor> results = vmap(both, {.in_dims = {1, 1}, .out_dims = {0, -1}})({x, x});
  EXPECT_EQ(results[0].shape(), (Shape{3, 2}));
  expect_near(results[0], {2, 8, 4, 10, 6, 12});
  expect_near(results[1], {2, 4, 6, 8, 10, 12});
  const Tensor leaf = x.clone().requires_grad_();
  vmap(product, VmapDims{})({leaf, x}).sum().backward();
  expect_near(leaf.grad(), {1, 2, 3, 4, 5, 6});
}

TEST(Functional, VmapRefusesInputsThatDoNotFit) {
  const Tensor x = zeros({2, 3}), y = zeros({3, 2});
  const auto sum = [](const std::vector<Tensor>& in) { return in[0].sum() + in[1].sum(); };

  EXPECT_THROW(vmap(sum, VmapDims{})({x, y}), InvalidArgument);
  EXPECT_NO_THROW(vmap(sum, {.in_dims = {0, 1}})({x, y}));
  EXPECT_THROW(vmap(sum, {.in_dims = {std::nullopt}})({x, y}), InvalidArgument);
  EXPECT_THROW(vmap(sum, {.in_dims = {0, 0, 0}})({x, y}), InvalidArgument);
  EXPECT_THROW(vmap(sum, {.in_dims = {0}, .out_dims = {0, 0}})({x, x}), InvalidArgument);
  EXPECT_THROW(vmap(sum, {.in_dims = {2}})({x, x}), InvalidArgument);
  EXPECT_THROW(vmap(sum, VmapDims{})({zeros({0, 2}), zeros({0, 2})}), InvalidArgument);
}

TEST(Functional, GlobalInputsGiveOneRanksDerivatives) {
  const auto f = [](const Tensor& x) { return tanh(x * x.sum()); };
  const Tensor x = doubles({0.1, 0.2, 0.3, 0.4});
  const Doubles expected = jacobian(f, x).to_vector<double>();
  const Doubles along = jvp(f, x, doubles({1, 2, 3, 4})).second.to_vector<double>();

  run_ranks(2, [&] {
    const Placement both("cpu", {0, 1});
    const auto split = [&](const Tensor& t) {
      return t.to_global({.placement = both, .sbp = sbp::broadcast})
          .to_global({.placement = both, .sbp = sbp::split(0)});
    };
    expect_near(jacobian(f, split(x)).full(), expected);
    expect_near(jvp(f, split(x), split(doubles({1, 2, 3, 4}))).second.full(), along);
  });
}

}  // namespace

}  // namespace flow
