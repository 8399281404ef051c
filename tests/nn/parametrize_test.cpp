#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "nn/flow.h"

namespace flow::nn {
namespace {

namespace parametrize = utils::parametrize;
using utils::parametrizations::spectral_norm;
using utils::parametrizations::weight_norm;

struct Symmetric : Module<Symmetric> {
  Tensor forward(const Tensor& x) { return x.triu() + x.triu(1).transpose(0, 1); }
};

struct Exponential : Module<Exponential> {
  Tensor forward(const Tensor& x) { return x.exp(); }

  Tensor right_inverse(const Tensor& x) { return x.log(); }
};

std::vector<std::string> names_of(const ModuleBase& module) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : module.named_parameters())
    names.push_back(name);
  return names;
}

TEST(Parametrize, TrainsTheOriginalAndKeepsTheConstraint) {
  manual_seed(1);
  Linear layer(3, 3);
  parametrize::register_parametrization(layer, "weight", Symmetric());
  optim::SGD optimizer(layer.parameters(), {.lr = 0.1});
  const Tensor x = randn({8, 3}), y = randn({8, 3});
  const auto loss = [&] { return (layer(x) - y).square().mean(); };
  const double before = loss().item<double>();
  for (int step = 0; step < 20; ++step) {
    optimizer.zero_grad();
    loss().backward();
    optimizer.step();
  }
  const double after = loss().item<double>();

  EXPECT_EQ(names_of(layer),
            (std::vector<std::string>{"bias", "parametrizations.weight.original"}));
  EXPECT_LT(after, before * 0.8);
  EXPECT_TRUE(layer.weight.equal(layer.weight.transpose(0, 1)));
  EXPECT_TRUE(parametrize::is_parametrized(layer, "weight"));
  EXPECT_FALSE(parametrize::is_parametrized(layer, "bias"));
}

TEST(Parametrize, BeginsWithTheRightInverse) {
  Linear layer(2, 1, {.bias = false});
  {
    const NoGradGuard no_grad;
    layer.weight.copy_(tensor({{2.f, 4.f}}));
  }
  parametrize::register_parametrization(layer, "weight", Exponential());

  EXPECT_FLOAT_EQ(layer(tensor({1.f, 1.f})).item<float>(), 6);
  EXPECT_FLOAT_EQ(layer.get_parameter("parametrizations.weight.original").to_vector<float>()[1],
                  std::log(4.F));
}

TEST(Parametrize, AppliesTheSecondToTheFirst) {
  struct Twice : Module<Twice> {
    Tensor forward(const Tensor& x) { return x * 2; }
  };

  Linear layer(2, 2, {.bias = false});
  const Tensor original = layer.weight.detach().clone();
  parametrize::register_parametrization(layer, "weight", Symmetric());
  parametrize::register_parametrization(layer, "weight", Twice());

  EXPECT_TRUE(layer.weight.equal((original.triu() + original.triu(1).transpose(0, 1)) * 2));
  EXPECT_THROW(parametrize::register_parametrization(layer, "weight", Exponential()),
               InvalidArgument);
}

TEST(Parametrize, RemovingKeepsOneOfTheTwoValues) {
  for (const bool keeps : {true, false}) {
    Linear layer(2, 2, {.bias = false});
    const Tensor original = layer.weight.detach().clone();
    parametrize::register_parametrization(layer, "weight", Symmetric());
    const Tensor computed = layer.weight.detach().clone();
    parametrize::remove_parametrizations(layer, "weight", {.leave_parametrized = keeps});

    EXPECT_EQ(names_of(layer), (std::vector<std::string>{"weight"}));
    EXPECT_TRUE(layer.weight.equal(keeps ? computed : original));
    EXPECT_TRUE(layer.weight.requires_grad());
    layer(ones({1, 2})).sum().backward();
    EXPECT_TRUE(layer.weight.grad().defined());
    EXPECT_TRUE(layer.children().empty());
  }
}

TEST(Parametrize, FollowsLoadedStateThroughFunctionalCallAndDtypes) {
  Linear from = weight_norm(Linear(3, 2)), to = weight_norm(Linear(3, 2));
  const Tensor x = randn({4, 3});
  to.load_state_dict(from.state_dict());
  EXPECT_TRUE(to(x).equal(from(x)));

  const Tensor g = full({2, 1}, 2.F);
  const Tensor y = functional_call(to, {{"parametrizations.weight.original0", g}}, x);
  const Tensor norms = to.weight.norm({.dim = 1, .keepdim = true});
  EXPECT_TRUE((y - to.bias).allclose(linear(x, to.weight / norms * 2)));

  to.to(float64);
  EXPECT_EQ(to(x.to(float64)).dtype(), float64);
}

TEST(Parametrize, SpectralNormMakesTheLargestSingularValueOne) {
  manual_seed(3);
  Linear layer = spectral_norm(Linear(4, 4), {.n_power_iterations = 100});
  layer(zeros({1, 4}));
  Tensor v = randn({4});
  for (int i = 0; i < 200; ++i) {
    v = matmul(layer.weight.transpose(0, 1), matmul(layer.weight, v));
    v = v / v.norm();
  }
  EXPECT_NEAR(matmul(layer.weight, v).norm().item<double>(), 1, 1e-4);

  layer.eval();
  const Tensor u = layer.get_buffer("parametrizations.weight.0._u").clone();
  layer(zeros({1, 4}));
  EXPECT_TRUE(layer.get_buffer("parametrizations.weight.0._u").equal(u));
}

// Recomputing must divide by the singular value that the forward pass found.
TEST(Parametrize, SpectralNormIteratesOnceWhenItIsRecomputed) {
  struct Run {
    std::vector<float> weight_grad, x_grad, u;
  };

  const auto run = [](bool recomputes) {
    manual_seed(3);
    Linear layer = spectral_norm(Linear(3, 4));
    const Tensor x = randn({2, 3}).requires_grad_();
    const auto call = [&](const std::vector<Tensor>& in) { return layer(in[0]); };
    const Tensor y = recomputes ? recompute(call, {x}) : call({x});
    (y * y).sum().backward();
    return Run{layer.get_parameter("parametrizations.weight.original").grad().to_vector<float>(),
               x.grad().to_vector<float>(),
               layer.get_buffer("parametrizations.weight.0._u").to_vector<float>()};
  };

  const Run plain = run(false), recomputed = run(true);
  EXPECT_EQ(recomputed.weight_grad, plain.weight_grad);
  EXPECT_EQ(recomputed.x_grad, plain.x_grad);
  EXPECT_EQ(recomputed.u, plain.u);
}

TEST(Parametrize, WorksInsideASequentialAndAGraph) {
  manual_seed(2);

  struct Net : Module<Net> {
    Linear first{register_module("first", weight_norm(Linear(3, 4)))};
    Linear second{register_module("second", Linear(4, 1))};

    Tensor forward(const Tensor& x) { return second(tanh(first(x))); }
  };

  struct Step : Graph<Step> {
    Net net;

    explicit Step(const Net& model, optim::SGD& optimizer) : net(model) {
      add_optimizer(optimizer);
    }

    Tensor build(const Tensor& x) {
      const Tensor loss = net(x).square().mean();
      loss.backward();
      return loss;
    }
  };

  const Tensor x = randn({5, 3});
  Net eager, compiled;
  compiled.load_state_dict(eager.state_dict());
  optim::SGD one(eager.parameters(), {.lr = 0.1}), other(compiled.parameters(), {.lr = 0.1});
  Step graph(compiled, other);
  for (int step = 0; step < 3; ++step) {
    one.zero_grad();
    const Tensor loss = eager(x).square().mean();
    loss.backward();
    one.step();
    EXPECT_FLOAT_EQ(graph(x).item<float>(), loss.item<float>()) << step;
  }
  EXPECT_EQ(Sequential(weight_norm(Linear(3, 4)), ReLU())(x).shape(), (Shape{5, 4}));
}

// A parametrization would take the parameter from the module that shares it.
TEST(Parametrize, RefusesTiedParameters) {
  struct Model : Module<Model> {
    Embedding tok{register_module("tok", Embedding(4, 3))};
    Linear out{register_module("out", Linear(3, 4, {.bias = false}))};

    Tensor forward(const Tensor& x) { return out(tok(x)); }
  };

  Model model;
  model.tie(model.out.weight, model.tok.weight);
  Model copy = model.clone();
  for (const Model& one : {model, copy}) {
    EXPECT_THROW(weight_norm(one.out), InvalidArgument);
    EXPECT_THROW(weight_norm(one.tok), InvalidArgument);
    EXPECT_TRUE(one.tok.weight.requires_grad());
    EXPECT_EQ(names_of(one), (std::vector<std::string>{"tok.weight"}));
  }
  EXPECT_EQ(names_of(weight_norm(model.out.clone())).size(), 2U);

  Model other;
  weight_norm(other.out);
  EXPECT_THROW(other.tie(other.tok.weight, other.out.weight), InvalidArgument);
  EXPECT_EQ(names_of(weight_norm(other.clone().tok)).size(), 2U);
  parametrize::remove_parametrizations(other.out, "weight");
  EXPECT_EQ(names_of(weight_norm(other.out)).size(), 2U);
}

TEST(Parametrize, RefusesWhatItCannotDo) {
  struct Wider : Module<Wider> {
    Tensor forward(const Tensor& x) { return cat({x, x}, 0); }
  };

  Linear layer(2, 2);
  EXPECT_THROW(parametrize::register_parametrization(layer, "wieght", Symmetric()),
               InvalidArgument);
  EXPECT_THROW(weight_norm(layer, {.dim = 2}), InvalidArgument);
  EXPECT_THROW(spectral_norm(layer, {.n_power_iterations = 0}), InvalidArgument);
  EXPECT_THROW(parametrize::remove_parametrizations(layer, "weight"), InvalidArgument);
  EXPECT_EQ(names_of(layer).size(), 2U);
  weight_norm(layer);
  EXPECT_THROW(weight_norm(layer), InvalidArgument);
  EXPECT_THROW(parametrize::remove_parametrizations(layer, "weight", {.leave_parametrized = false}),
               InvalidArgument);
  Linear other(2, 2);
  EXPECT_THROW(parametrize::register_parametrization(other, "weight", Wider()), InvalidArgument);
}

}  // namespace
}  // namespace flow::nn
