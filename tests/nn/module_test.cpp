#include "nn/module.h"

#include <gtest/gtest.h>

#include "nn/flow.h"

namespace flow::nn {
namespace {

struct Small : Module<Small> {
  Linear fc1{register_module("fc1", Linear(3, 4))};
  Linear fc2{register_module("fc2", Linear(4, 2))};
  Tensor scale{register_buffer("scale", ones({2}))};

  Tensor forward(const Tensor& x) { return fc2(relu(fc1(x))) * scale; }
};

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors)
    names.push_back(name);
  return names;
}

TEST(Module, NamesAreDottedInOrderOfRegistration) {
  const Small model;
  EXPECT_EQ(names_of(model.named_parameters()),
            (std::vector<std::string>{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
  EXPECT_EQ(names_of(model.named_buffers()), (std::vector<std::string>{"scale"}));
  EXPECT_EQ(model.num_parameters(), 3 * 4 + 4 + 4 * 2 + 2);
}

TEST(Module, CopiesShareParametersAndMode) {
  Small model;
  Small copy = model;
  copy.eval();
  EXPECT_FALSE(model.fc1.is_training());
  EXPECT_TRUE(copy.fc1.weight.is_same(model.fc1.weight));
}

TEST(Module, ATensorUnderTwoNamesCountsOnce) {
  struct Tied : Module<Tied> {
    Tensor w = register_parameter("a", ones({2}));
    Tensor v = register_parameter("b", w);
  };

  EXPECT_EQ(names_of(Tied().named_parameters()), (std::vector<std::string>{"a"}));
}

TEST(Module, AModuleUnderTwoNamesIsListedOnce) {
  struct Twice : Module<Twice> {
    Sequential a{register_module("a", Sequential(Linear(2, 2)))};
    Sequential b{register_module("b", a)};

    Tensor forward(const Tensor& x) { return b(a(x)); }
  };

  Twice model;
  std::string names;
  for (const auto& [name, module] : model.named_modules())
    names += name + " ";
  EXPECT_EQ(names, " a a.0 ");
  int num_applied = 0;
  model.apply([&](ModuleBase& /*module*/) { ++num_applied; });
  EXPECT_EQ(num_applied, 3);
  EXPECT_TRUE(model.get_parameter("b.0.weight").is_same(model.get_parameter("a.0.weight")));
}

TEST(Module, BadNamesAreRefused) {
  struct Twice : Module<Twice> {
    Twice() {
      register_parameter("a", ones({1}));
      register_buffer("a", ones({1}));
    }
  };

  struct Dotted : Module<Dotted> {
    Dotted() { register_parameter("a.b", ones({1})); }
  };

  EXPECT_THROW(Twice(), InvalidArgument);
  EXPECT_THROW(Dotted(), InvalidArgument);
}

TEST(Module, ComputedParametersAndCyclesAreRefused) {
  struct Computed : Module<Computed> {
    explicit Computed(const Tensor& weight) { register_parameter("weight", weight); }
  };

  struct Nested : Module<Nested> {
    void add(const Nested& other) { register_module("inner", other); }
  };

  EXPECT_THROW(Computed(ones({2}, {.requires_grad = true}) * 2), InvalidArgument);
  Nested outer, inner;
  EXPECT_THROW(outer.add(outer), InvalidArgument);
  outer.add(inner);
  EXPECT_THROW(inner.add(outer), InvalidArgument);
  EXPECT_EQ(outer.named_modules().size(), 2U);
}

TEST(Module, StateLoadsIntoAnotherModel) {
  Small a, b;
  b.load_state_dict(a.state_dict());
  const Tensor x = randn({5, 3});
  EXPECT_EQ(a(x).to_vector<float>(), b(x).to_vector<float>());
  EXPECT_FALSE(a.fc1.weight.is_same(b.fc1.weight));
}

TEST(Module, AStateThatDoesNotFitChangesNothing) {
  Small model;
  const auto before = model.fc2.weight.to_vector<float>();
  StateDict state = Small().state_dict();
  state["fc1.weight"] = ones({7});
  state.erase("fc2.bias");
  state["extra"] = ones({1});
  try {
    model.load_state_dict(state);
    FAIL() << "no error";
  } catch (const InvalidArgument& error) {
    const std::string text = error.what();
    for (const char* part :
         {"missing: fc2.bias (2,)", "unexpected: extra", "shape of fc1.weight"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  EXPECT_EQ(model.fc2.weight.to_vector<float>(), before);
  state["fc1.weight"] = ones({4, 3});
  EXPECT_NO_THROW(model.load_state_dict(state, {.strict = false}));
}

TEST(Module, ToChangesFloatingTensorsInPlace) {
  Small model;
  const Tensor weight = model.fc1.weight;
  model.to(float64);
  EXPECT_EQ(weight.dtype(), float64);
  EXPECT_EQ(model(ones({1, 3}, {.dtype = float64})).dtype(), float64);
  EXPECT_THROW(model.to(int64), InvalidArgument);
}

TEST(Module, ToConvertsGradientsAsWell) {
  Small model;
  model(ones({1, 3})).sum().backward();
  const std::vector<double> before = model.fc1.weight.grad().to_vector<double>();

  model.to(float64);

  EXPECT_EQ(model.fc1.weight.grad().dtype(), float64);
  EXPECT_EQ(model.fc1.weight.grad().to_vector<double>(), before);
  optim::SGD(model.parameters(), {.lr = 1}).step();
}

TEST(Module, AnyNumberOfArgumentsReachForward) {
  struct Mixed : Module<Mixed> {
    Tensor forward(const Tensor& x, int64_t times, const std::vector<Tensor>& more) {
      return times > 0 && more.empty() ? x : -x;
    }
  };

  struct NoTensor : Module<NoTensor> {
    int64_t forward() { return 1; }
  };

  EXPECT_EQ(Mixed()(ones({1}), 2, std::vector<Tensor>()).item<float>(), 1);
  EXPECT_EQ(NoTensor()(), 1);
}

TEST(Sequential, CallsItsModulesInOrder) {
  Sequential model(Linear(3, 4), ReLU(), Linear(4, 2));
  EXPECT_EQ(names_of(model.named_parameters()),
            (std::vector<std::string>{"0.weight", "0.bias", "2.weight", "2.bias"}));
  EXPECT_EQ(model(ones({5, 3})).shape(), (Shape{5, 2}));
}

TEST(Dropout, IsTheIdentityInEvaluation) {
  Sequential model(Dropout(0.5));
  const Tensor x = ones({1000});
  model.eval();
  EXPECT_EQ(model(x).sum().item<float>(), 1000);
  model.train();
  const auto y = model(x).to_vector<float>();
  for (const float value : y)
    EXPECT_TRUE(value == 0 || value == 2);
  EXPECT_THROW(Dropout(1.5), InvalidArgument);
}

TEST(Linear, StartsWithinPyTorchsBound) {
  manual_seed(1);
  const Linear layer(100, 50);
  for (const float w : layer.weight.to_vector<float>())
    EXPECT_LE(std::abs(w), 0.1F);
  EXPECT_FALSE(Linear(2, 2, {.bias = false}).bias.defined());
}

TEST(Module, ListsCountFromBothEnds) {
  nn::ModuleList<nn::Linear> list;
  list.push_back(nn::Linear(2, 2));
  list.push_back(nn::Linear(2, 3));
  const nn::ParameterList parameters({ones({1}), ones({2})});

  EXPECT_EQ(list[0].weight.shape(), Shape({2, 2}));
  EXPECT_EQ(list[-1].weight.shape(), Shape({3, 2}));
  EXPECT_EQ(parameters[-2].shape(), Shape({1}));
  EXPECT_EQ(parameters[-1].shape(), Shape({2}));
  EXPECT_THROW(list[2], InvalidArgument);
  EXPECT_THROW(list[-3], InvalidArgument);
  EXPECT_THROW(parameters[-3], InvalidArgument);
}

TEST(Module, AnEmptyHookIsRefused) {
  Linear layer(2, 2);

  EXPECT_THROW(layer.register_forward_pre_hook({}), InvalidArgument);
  EXPECT_THROW(layer.register_forward_hook({}), InvalidArgument);
  EXPECT_THROW(layer.register_full_backward_pre_hook({}), InvalidArgument);
  EXPECT_THROW(layer.register_full_backward_hook({}), InvalidArgument);
}

// A list holds handles of its modules.
TEST(Module, HooksOfModulesInAListRunOnce) {
  int num_before = 0, num_after = 0, num_backward = 0;
  Linear layer(2, 2);
  layer.register_forward_pre_hook([&](ModuleBase&, const Tensor&) {
    ++num_before;
    return Tensor();
  });
  layer.register_forward_hook([&](ModuleBase&, const Tensor&, const Tensor& y) {
    ++num_after;
    return y * 2;
  });
  layer.register_full_backward_hook([&](ModuleBase&, const Tensor&, const Tensor&) {
    ++num_backward;
    return Tensor();
  });
  Sequential list(layer, Sequential(layer));
  const Tensor x = ones({1, 2});

  const Tensor y = list(x);
  y.sum().backward();

  EXPECT_EQ(num_before, 2);
  EXPECT_EQ(num_after, 2);
  EXPECT_EQ(num_backward, 2);
  const auto once = [&](const Tensor& in) {
    return (matmul(in, layer.weight.t()) + layer.bias) * 2;
  };
  EXPECT_TRUE(allclose(y, once(once(x))));
}

TEST(Module, SpectralNormOfAModuleInAListIteratesOnce) {
  const auto normed = [] {
    manual_seed(4);
    return utils::parametrizations::spectral_norm(Linear(4, 3));
  };
  Linear alone = normed();
  Sequential list(normed());
  const Tensor x = ones({2, 4});

  EXPECT_TRUE(list(x).equal(alone(x)));
  EXPECT_TRUE(list(x).equal(alone(x)));
}

TEST(Module, AStateMayLackTheNumberOfBatches) {
  BatchNorm1d norm(3);
  norm(randn({4, 3}));
  StateDict state = norm.state_dict();
  state.erase("num_batches_tracked");
  norm(randn({4, 3}));

  norm.load_state_dict(state);

  EXPECT_EQ(norm.num_batches_tracked.item(), 2);
  state.erase("running_var");
  EXPECT_THROW(norm.load_state_dict(state), InvalidArgument);
}

}  // namespace
}  // namespace flow::nn
