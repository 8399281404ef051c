#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"

namespace flow::nn {
namespace {

// y = a x + b x², whose gradients are known.
struct Parabola : Module<Parabola> {
  Tensor a{register_parameter("a", tensor({2.0}))};
  Tensor b{register_parameter("b", tensor({3.0}))};

  Tensor forward(const Tensor& x) { return a * x + b * x * x; }
};

struct Double : Function<Double> {
  static Tensor forward(FunctionContext& ctx, const Tensor& w) {
    ctx.save_for_backward({w});
    return w * w;
  }

  static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& dy) {
    return {dy[0] * 2 * ctx.saved()[0]};
  }
};

struct WithFunction : Module<WithFunction> {
  Tensor w{register_parameter("w", tensor({5.0}))};

  Tensor forward(const Tensor& x) { return Double::apply(w) * x; }
};

TEST(FunctionalCall, ComputesWithTheGivenValues) {
  Parabola model;
  const Tensor x = tensor({1.0, 2.0});

  EXPECT_EQ(functional_call(model, {{"a", tensor({10.0})}}, x).to_vector<double>(),
            (std::vector<double>{13, 32}));
  EXPECT_EQ(model(x).to_vector<double>(), (std::vector<double>{5, 16}));
}

TEST(FunctionalCall, GivesTheGradientToTheValues) {
  Parabola model;
  const Tensor scale = tensor({4.0}, {.requires_grad = true});
  // The value is the result of another op.
  functional_call(model, {{"b", scale * scale}}, tensor({3.0})).backward();

  EXPECT_EQ(scale.grad().item<double>(), 2 * 4 * 9);
  EXPECT_EQ(model.a.grad().item<double>(), 3);
  EXPECT_FALSE(model.b.grad().defined());
}

TEST(FunctionalCall, HasSecondDerivatives) {
  Parabola model;
  const Tensor b = tensor({4.0});
  const TensorFunction loss = [&](const Tensor& value) {
    return functional_call(model, {{"b", value}}, tensor({3.0})).square().sum();
  };

  // d²/db² (2 · 3 + 9 b)² = 2 · 81.
  EXPECT_EQ(hessian(loss, b).item<double>(), 162);
}

TEST(FunctionalCall, ReachesCustomFunctionsAndRecomputedRegions) {
  WithFunction model;
  const Tensor w = tensor({7.0}, {.requires_grad = true}),
               x = tensor({2.0}, {.requires_grad = true});
  const Tensor y = functional_call(model, {{"w", w}}, x);
  y.backward();

  EXPECT_EQ(y.item<double>(), 98);
  EXPECT_EQ(w.grad().item<double>(), 28);
  EXPECT_EQ(x.grad().item<double>(), 49);

  struct Recomputed : Module<Recomputed> {
    Parabola inner{register_module("inner", Parabola())};

    Tensor forward(const Tensor& in) {
      return recompute([this](const std::vector<Tensor>& again) { return inner(again[0]); }, {in});
    }
  };

  Recomputed outer;
  const Tensor b = tensor({4.0}, {.requires_grad = true});
  const Tensor in = tensor({3.0}, {.requires_grad = true});
  functional_call(outer, {{"inner.b", b}}, in).backward();
  EXPECT_EQ(b.grad().item<double>(), 9);
  EXPECT_EQ(in.grad().item<double>(), 2 + 2 * 4 * 3);  // a + 2 b x
}

TEST(FunctionalCall, WritesBuffersInTheirValues) {
  BatchNorm1d norm(2);
  const Tensor mean = zeros({2});
  functional_call(norm, {{"running_mean", mean}}, tensor({{1.f, 2.f}, {3.f, 6.f}}));

  EXPECT_FLOAT_EQ(mean.to_vector<float>()[1], 0.4F);
  EXPECT_EQ(norm.running_mean.abs().sum().item(), 0);
}

TEST(FunctionalCall, KnowsTiedParametersUnderBothNames) {
  struct Tied : Module<Tied> {
    Linear first{register_module("first", Linear(2, 2, {.bias = false}))};
    Linear second{register_module("second", Linear(2, 2, {.bias = false}))};

    Tied() { tie(second.weight, first.weight); }

    Tensor forward(const Tensor& x) { return second(first(x)); }
  };

  Tied model;
  const Tensor twice = tensor({{2.f, 0.f}, {0.f, 2.f}}), x = tensor({{1.f, 3.f}});
  for (const char* name : {"first.weight", "second.weight"}) {
    EXPECT_EQ(functional_call(model, {{name, twice}}, x).to_vector<float>(),
              (std::vector<float>{4, 12}));
  }
}

TEST(FunctionalCall, SamplesHaveGradientsOfTheirOwn) {
  manual_seed(1);
  Linear model(3, 1);
  const Tensor xs = randn({4, 3});
  const auto gradient = [&](const Tensor& x) {
    const TensorFunction loss = [&](const Tensor& w) {
      return functional_call(model, {{"weight", w}}, x).square().sum();
    };
    return vjp(loss, model.weight.detach()).second;
  };
  const Tensor each = vmap(gradient)(xs);
  model(xs).square().sum().backward();

  EXPECT_EQ(each.shape(), (Shape{4, 1, 3}));
  EXPECT_TRUE(each.sum({0}).allclose(model.weight.grad()));
}

TEST(FunctionalCall, RefusesOtherNamesAndShapes) {
  Linear model(3, 2);
  const Tensor x = zeros({1, 3});

  EXPECT_THROW(functional_call(model, {{"wieght", zeros({2, 3})}}, x), InvalidArgument);
  EXPECT_THROW(functional_call(model, {{"weight", zeros({3, 2})}}, x), InvalidArgument);
  EXPECT_THROW(functional_call(model, {{"weight", Tensor()}}, x), InvalidArgument);
}

}  // namespace
}  // namespace flow::nn
