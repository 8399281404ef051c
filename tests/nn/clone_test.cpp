// Clones of modules, calls of const modules, and functions as parts of Sequential.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "core/error.h"
#include "nn/flow.h"

namespace flow {
namespace {

using Doubles = std::vector<double>;

Doubles values(const Tensor& x) {
  return x.to_vector<double>();
}

// Members of each kind: a layer, one in a list, a type-erased one, a tensor, a buffer, a tied pair.
struct Net : nn::Module<Net> {
  nn::Linear fc{register_module("fc", nn::Linear(3, 3))};
  nn::ModuleList<nn::Linear> layers{register_module("layers", nn::ModuleList<nn::Linear>())};
  nn::AnyModule head{register_module("head", nn::AnyModule(nn::Linear(3, 3, {.bias = false})))};
  nn::Linear tied{register_module("tied", nn::Linear(3, 3, {.bias = false}))};
  Tensor scale{register_parameter("scale", ones({3}))};
  Tensor shift{register_buffer("shift", zeros({3}))};
  Tensor constant = ones({3});

  Net() {
    layers.push_back(nn::Linear(3, 3));
    tie(tied.weight, fc.weight);
  }

  Tensor forward(const Tensor& x) {
    return tied(head(layers[0](fc(x)))) * scale + shift * constant;
  }
};

// Expects gradients of all parameters of one module and of none of the other.
void expect_gradients_in(const nn::ModuleBase& one, const nn::ModuleBase& other) {
  for (const auto& [name, parameter] : one.named_parameters())
    EXPECT_TRUE(parameter.grad().defined()) << name;
  for (const auto& [name, parameter] : other.named_parameters())
    EXPECT_FALSE(parameter.grad().defined()) << name;
}

TEST(Clone, HasParametersOfItsOwnWithTheSameValues) {
  const Net net;
  const Tensor x = randn({2, 3});
  const Doubles before = values(net(x));

  Net copy = net.clone();
  EXPECT_EQ(values(copy(x)), before);
  EXPECT_EQ(copy.named_parameters().size(), net.named_parameters().size());
  for (const auto& [name, parameter] : copy.named_parameters()) {
    EXPECT_FALSE(parameter.is_same(net.get_parameter(name))) << name;
    EXPECT_TRUE(parameter.requires_grad() && parameter.is_leaf()) << name;
    EXPECT_EQ(values(parameter), values(net.get_parameter(name))) << name;
  }
  EXPECT_TRUE(copy.fc.weight.is_same(copy.get_parameter("fc.weight")));
  EXPECT_TRUE(copy.tied.weight.is_same(copy.fc.weight)) << "tied as in the original";
  EXPECT_TRUE(copy.shift.is_same(copy.get_buffer("shift")));
  EXPECT_TRUE(copy.constant.is_same(net.constant)) << "not registered, so shared";

  copy(x).sum().backward();
  EXPECT_TRUE(copy.fc.weight.grad().defined());
  EXPECT_FALSE(net.fc.weight.grad().defined());
  optim::SGD(copy.parameters(), {.lr = 0.5}).step();
  copy.shift.fill_(7);
  EXPECT_NE(values(copy(x)), before);
  EXPECT_EQ(values(net(x)), before);
}

TEST(Clone, ModesAndHooksAreCopied) {
  nn::Sequential net(nn::Linear(2, 2), nn::Dropout(0.5));
  net.eval();
  int64_t calls = 0;
  net.register_forward_hook([&](nn::ModuleBase&, const Tensor&, const Tensor& y) {
    ++calls;
    return y + 1;
  });
  net.requires_grad_(false);
  nn::Sequential copy = net.clone();
  EXPECT_FALSE(copy.is_training());
  EXPECT_FALSE(copy[1].is_training());
  EXPECT_FALSE(copy.parameters()[0].requires_grad());
  const Tensor x = ones({1, 2});
  EXPECT_EQ(values(copy(x)), values(net(x)));
  EXPECT_EQ(calls, 2);
  copy.train();
  EXPECT_FALSE(net.is_training());
}

TEST(Clone, APartBecomesARoot) {
  Net net;
  nn::Linear layer = net.layers[0].clone();
  net.layers[0].weight.set_data(zeros({3, 3}));
  EXPECT_NE(values(layer.weight), Doubles(9, 0));
  try {
    layer(ones({2, 4}));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()).find("layers.0"), std::string::npos) << error.what();
  }
}

TEST(Clone, TrainsInAGraphNextToTheOriginal) {
  struct Step : nn::Graph<Step> {
    Net model, target;

    Step(const Net& net, const Net& copy) : model(net), target(copy) {}

    Tensor build(const Tensor& x) { return model(x) - target(x).detach(); }
  };

  Net net;
  Step step(net, net.clone());
  EXPECT_EQ(values(step(ones({2, 3}))), Doubles(6, 0));
  {
    const NoGradGuard no_grad;
    net.scale.fill_(2);
  }
  EXPECT_NE(values(step(ones({2, 3}))), Doubles(6, 0));
}

TEST(Clone, ReplacedPartsAreThoseOfTheClone) {
  Net net;
  net.replace_module("head", nn::Sequential(nn::Linear(3, 3), nn::Tanh()));
  net.replace_module("fc", nn::Linear(3, 3, {.bias = false}));
  net.replace_module("fc", nn::Linear(3, 3));
  net.replace_module("layers.0", nn::Linear(3, 3, {.bias = false}));
  const Tensor x = randn({2, 3});
  const Doubles before = values(net(x));

  Net copy = net.clone();
  EXPECT_EQ(values(copy(x)), before);
  ASSERT_EQ(copy.named_parameters().size(), net.named_parameters().size());
  for (size_t i = 0; i < copy.named_parameters().size(); ++i) {
    EXPECT_EQ(copy.named_parameters()[i].first, net.named_parameters()[i].first);
    EXPECT_FALSE(copy.parameters()[i].is_same(net.parameters()[i]));
  }
  EXPECT_EQ(copy.repr(), net.repr());

  copy(x).sum().backward();
  expect_gradients_in(copy, net);
  optim::SGD(copy.parameters(), {.lr = 0.5}).step();
  EXPECT_NE(values(copy(x)), before);
  EXPECT_EQ(values(net(x)), before);
  copy.replace_module("head", nn::Linear(3, 3));
  EXPECT_EQ(values(net(x)), before);

  const NoGradGuard no_grad;
  net.fc.clone().bias.fill_(100);  // of what replaced the member
  EXPECT_EQ(values(net(x)), before);
}

// A parametrization with a parameter of its own.
struct Scaled : nn::Module<Scaled> {
  Tensor factor{register_parameter("factor", full({1}, 2.0))};

  Tensor forward(const Tensor& x) { return x * factor; }
};

TEST(Clone, ParametrizedPartsTrainApart) {
  nn::Linear scaled(3, 3);
  nn::utils::parametrize::register_parametrization(scaled, "weight", Scaled());
  nn::utils::parametrize::register_parametrization(scaled, "weight", nn::Tanh());
  nn::Sequential net(nn::utils::parametrizations::weight_norm(nn::Linear(3, 3)), scaled,
                     nn::utils::parametrizations::spectral_norm(nn::Linear(3, 3)));
  net.eval();
  const Tensor x = randn({2, 3});
  const Doubles before = values(net(x));

  nn::Sequential copy = net.clone();
  EXPECT_EQ(values(copy(x)), before);
  EXPECT_EQ(copy.repr(), net.repr());
  ASSERT_EQ(copy.named_parameters().size(), net.named_parameters().size());
  copy(x).sum().backward();
  expect_gradients_in(copy, net);

  optim::SGD(copy.parameters(), {.lr = 0.5}).step();
  const Doubles after = values(copy(x));
  EXPECT_NE(after, before);
  EXPECT_EQ(values(net(x)), before);
  EXPECT_FALSE(copy[0].as<nn::Linear>().weight.is_same(net[0].as<nn::Linear>().weight));
  copy.train();
  copy(x);  // writes the vectors of the spectral norm
  EXPECT_EQ(values(net(x)), before);

  copy.eval();
  nn::utils::parametrize::remove_parametrizations(copy[1].as<nn::Linear>(), "weight");
  EXPECT_TRUE(nn::utils::parametrize::is_parametrized(net[1].as<nn::Linear>(), "weight"));
  EXPECT_EQ(values(net(x)), before);
}

TEST(Clone, IsRefusedInAGraph) {
  struct InBuild : nn::Graph<InBuild> {
    nn::Linear layer{2, 2};

    Tensor build(const Tensor& x) { return layer.clone()(x); }
  };

  InBuild graph;
  EXPECT_THROW(graph(ones({2, 2})), Unsupported);
}

TEST(Clone, KeepsTheLayoutOnRanks) {
  run_ranks(2, [] {
    const Placement both("cpu", {0, 1});
    nn::Linear layer(4, 6);
    layer.to_global(both, {{"weight", sbp::split(0)}, {"bias", sbp::broadcast}});
    nn::Linear copy = layer.clone();
    EXPECT_EQ(copy.weight.sbp(), layer.weight.sbp());
    EXPECT_EQ(copy.weight.placement(), both);
    const Tensor x = ones({2, 4}, {.placement = both, .sbp = sbp::broadcast});
    EXPECT_EQ(copy(x).to_vector<float>(), layer(x).to_vector<float>());
  });
}

TEST(ConstModules, AreCalled) {
  const auto apply = [](const nn::Linear& layer, const Tensor& x) { return layer(x); };
  nn::Linear layer(2, 3);
  const Tensor x = ones({1, 2});
  EXPECT_EQ(values(apply(layer, x)), values(layer(x)));
  const nn::LSTM lstm(2, 3);
  EXPECT_EQ(lstm(ones({4, 1, 2})).output.shape(), (Shape{4, 1, 3}));
}

Tensor doubled(const Tensor& x) {
  return x * 2;
}

TEST(Sequential, TakesFunctions) {
  nn::Sequential net(
      nn::Linear(2, 2), [](const Tensor& x) { return x.relu(); }, doubled);
  net.push_back([](const Tensor& x) { return x + 1; });
  const Tensor x = ones({1, 2});
  const Tensor h = net[0].as<nn::Linear>()(x);
  EXPECT_EQ(values(net(x)), values(h.relu() * 2 + 1));
  EXPECT_EQ(net.repr(),
            "Sequential(\n"
            "  (0): Linear(in_features=2, out_features=2, bias=True)\n"
            "  (1): Lambda()\n"
            "  (2): Lambda()\n"
            "  (3): Lambda()\n"
            ")");
  EXPECT_EQ(net.parameters().size(), 2U);
}

TEST(Sequential, PartsAreFoundByPositionAndType) {
  nn::Sequential net(nn::Linear(2, 3), nn::ReLU(), nn::Linear(3, 4));
  EXPECT_EQ(net[-1].as<nn::Linear>().weight.shape(), (Shape{4, 3}));
  EXPECT_TRUE(net[0].as<nn::Linear>().weight.is_same(net.get_parameter("0.weight")));
  EXPECT_THROW(net[3], InvalidArgument);
  EXPECT_THROW(net[-4], InvalidArgument);
  try {
    net[1].as<nn::Linear>();
    FAIL();
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("ReLU"), std::string::npos) << text;
    EXPECT_NE(text.find("Linear"), std::string::npos) << text;
    EXPECT_NE(text.find("clone_test.cpp"), std::string::npos) << text;
  }
  net.replace_module("1", nn::Linear(3, 3));
  EXPECT_EQ(net[1].as<nn::Linear>().weight.shape(), (Shape{3, 3}));
  int64_t count = 0;
  for (nn::AnyModule& part : net)
    count += part(ones({1, count == 0 ? 2 : 3})).dim() == 2 ? 1 : 0;
  EXPECT_EQ(count, 3);
}

}  // namespace
}  // namespace flow
