#include <set>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow::nn {
namespace {

struct Net : Module<Net> {
  Sequential features{register_module("features", Sequential(Linear(3, 4), ReLU()))};
  Linear head{register_module("head", Linear(4, 2))};
  AnyModule tail{register_module("tail", AnyModule(ReLU()))};
  Tensor seen{register_buffer("seen", zeros({1}))};
  Tensor scratch{register_buffer("scratch", zeros({2}), false)};

  Tensor forward(const Tensor& x) { return tail(head(features(x))); }
};

struct Negate : Module<Negate> {
  Tensor forward(const Tensor& x) { return -x; }
};

struct Counts : Module<Counts> {
  int64_t forward() { return 1; }
};

TEST(ModuleTree, SubModulesAndTensorsAreFoundByPath) {
  const Net net;
  EXPECT_EQ(net.get_submodule("features.0").named_parameters().size(), 2U);
  EXPECT_EQ(net.get_submodule("").num_parameters(), net.num_parameters());
  EXPECT_TRUE(net.get_parameter("head.weight").is_same(net.head.weight));
  EXPECT_TRUE(net.get_buffer("seen").is_same(net.seen));
  EXPECT_NE(error_of([&] { (void)net.get_submodule("features.7"); }).find("'7'"),
            std::string::npos);
  EXPECT_THROW((void)net.get_parameter("seen"), InvalidArgument);
}

TEST(ModuleTree, ThePathOfAModuleThatIsGoneStaysInItsGradients) {
  struct Short : Module<Short> {
    Linear fc{register_module("a_name_that_does_not_fit_into_the_string", Linear(2, 2))};

    Tensor forward(const Tensor& x) { return fc(x); }
  };

  const Tensor loss = Short()(ones({1, 2})).sum();
  // Takes the memory that the module has left.
  const std::vector<std::string> others(100, std::string(40, '?'));

  profiler::Profile profile;
  loss.backward();
  profile.stop();

  std::set<std::string> paths;
  for (const profiler::Event& event : profile.events())
    paths.insert(event.module);
  EXPECT_EQ(paths, (std::set<std::string>{"", "a_name_that_does_not_fit_into_the_string"}));
}

TEST(ModuleTree, AReplacementIsSeenByEveryHandle) {
  Net net;
  Net copy = net;
  Linear held = net.head;
  Linear other(4, 5);
  net.replace_module("head", other);
  EXPECT_EQ(copy(ones({2, 3})).shape(), (Shape{2, 5}));
  EXPECT_EQ(held(ones({2, 4})).shape(), (Shape{2, 5}));
  EXPECT_TRUE(copy.get_parameter("head.weight").is_same(other.weight));
  EXPECT_EQ(held.num_parameters(), 4 * 5 + 5);
  net.replace_module("head", Linear(4, 7));
  EXPECT_EQ(copy(ones({2, 3})).shape(), (Shape{2, 7}));
}

TEST(ModuleTree, ReplacementsThatWereReplacedEnd) {
  Net net;
  Linear held(4, 5);
  const auto replace_both = [&](int64_t size) {
    net.replace_module("head", Linear(4, size));
    net.replace_module("features.0", Linear(3, 4, {.bias = size == 6}));
    EXPECT_EQ(net(ones({2, 3})).shape(), (Shape{2, size}));
  };
  net.replace_module("head", held);
  replace_both(6);
  const int64_t bytes = memory_stats().bytes_in_use;
  replace_both(7);
  replace_both(6);
  EXPECT_EQ(memory_stats().bytes_in_use, bytes);
  EXPECT_EQ(held(ones({2, 4})).shape(), (Shape{2, 6}));
  EXPECT_EQ(net.clone()(ones({2, 3})).shape(), (Shape{2, 6}));
}

TEST(ModuleTree, AnAnyModuleTakesEveryModuleOfTensors) {
  Net net;
  net.replace_module("tail", Negate());
  const auto y = net(ones({1, 3})).to_vector<float>();
  const auto plain = net.head(net.features(ones({1, 3}))).to_vector<float>();
  EXPECT_EQ(y[0], -plain[0]);
  net.replace_module("features.1", Negate());
  net.replace_module("features.0", Linear(3, 4, {.bias = false}));
  EXPECT_EQ(net.get_submodule("features").named_parameters().size(), 1U);
  EXPECT_EQ(net(ones({1, 3})).shape(), (Shape{1, 2}));
}

TEST(ModuleTree, AReplacementOfAnotherTypeIsRefused) {
  Net net;
  const std::string text = error_of([&] { net.replace_module("head", Negate()); });
  EXPECT_NE(text.find("flow::nn::Linear"), std::string::npos) << text;
  EXPECT_NE(text.find("Negate"), std::string::npos) << text;
  EXPECT_THROW(net.replace_module("tail", Counts()), InvalidArgument);
  EXPECT_THROW(net.replace_module("nothing", Negate()), InvalidArgument);
  EXPECT_THROW(net.replace_module("tail", Sequential(net.tail)), InvalidArgument);
}

TEST(ModuleTree, BuffersThatDoNotPersistAreNoPartOfTheState) {
  const Net net;
  EXPECT_EQ(net.named_buffers().size(), 2U);
  EXPECT_TRUE(net.state_dict().contains("seen"));
  EXPECT_FALSE(net.state_dict().contains("scratch"));
}

TEST(ModuleTree, ALoadThatIsNotStrictSaysWhatItPassedOver) {
  Net net;
  StateDict state = net.state_dict();
  state.erase("seen");
  state.emplace("more", zeros({1}));
  const LoadResult result = net.load_state_dict(state, {.strict = false});
  EXPECT_EQ(result.missing_keys, (std::vector<std::string>{"seen"}));
  EXPECT_EQ(result.unexpected_keys, (std::vector<std::string>{"more"}));
}

TEST(ModuleTree, HooksSeeAndReplaceInputAndResult) {
  Negate module;
  std::vector<float> seen;
  const int64_t before = module.register_forward_pre_hook([&](ModuleBase&, const Tensor& x) {
    seen.push_back(x.item<float>());
    return x * 2.0;
  });
  const int64_t after =
      module.register_forward_hook([&](ModuleBase&, const Tensor& x, const Tensor& y) {
        seen.push_back(x.item<float>());
        seen.push_back(y.item<float>());
        return Tensor();
      });
  EXPECT_EQ(module(full({1}, 3)).item<float>(), -6);
  EXPECT_EQ(seen, (std::vector<float>{3, 6, -6}));
  module.remove_hook(before);
  module.remove_hook(after);
  EXPECT_EQ(module(full({1}, 3)).item<float>(), -3);
  EXPECT_EQ(seen.size(), 3U);
}

TEST(ModuleTree, BackwardHooksSeeBothGradientsOnceForEachCall) {
  Negate module;
  std::vector<float> seen;
  module.register_full_backward_pre_hook([&](ModuleBase&, const Tensor& dy) {
    seen.push_back(dy.item<float>());
    return Tensor();
  });
  module.register_full_backward_hook([&](ModuleBase&, const Tensor& dx, const Tensor& dy) {
    seen.push_back(dx.item<float>());
    seen.push_back(dy.item<float>());
    return Tensor();
  });
  const Tensor x = full({1}, 3.0);
  x.requires_grad_();

  (module(x * 2.0) * 5.0 + module(x)).sum().backward();

  EXPECT_EQ(x.grad().item<float>(), -11);
  ASSERT_EQ(seen.size(), 6U);
  const std::vector<float> of_second(seen.begin(), seen.begin() + 3);
  EXPECT_TRUE(of_second == (std::vector<float>{1, -1, 1}) ||
              of_second == (std::vector<float>{5, -5, 5}));
}

TEST(ModuleTree, BackwardHooksReplaceGradients) {
  Negate module;
  const int64_t before = module.register_full_backward_pre_hook(
      [](ModuleBase&, const Tensor& dy) { return dy * 10.0; });
  const int64_t after = module.register_full_backward_hook(
      [](ModuleBase&, const Tensor& dx, const Tensor& dy) { return dx + dy * 3.0; });
  const auto gradient = [&] {
    const Tensor x = full({1}, 3.0);
    x.requires_grad_();
    module(x).sum().backward();
    return x.grad().item<float>();
  };

  EXPECT_EQ(gradient(), 20);  // -10 + 30
  module.remove_hook(before);
  EXPECT_EQ(gradient(), 2);  // -1 + 3
  module.remove_hook(after);
  EXPECT_EQ(gradient(), -1);
}

TEST(ModuleTree, BackwardHooksOfAnInputWithoutGradientSeeTheResultsAlone) {
  Linear layer(2, 1);
  int calls = 0;
  layer.register_full_backward_hook([&](ModuleBase&, const Tensor& dx, const Tensor& dy) {
    ++calls;
    EXPECT_FALSE(dx.defined());
    EXPECT_EQ(dy.item<float>(), 4);
    return Tensor();
  });

  (layer(ones({1, 2})) * 4.0).sum().backward();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(layer.weight.grad().to_vector<float>(), (std::vector<float>{4, 4}));
  const NoGradGuard no_grad;
  layer(ones({1, 2}));
  EXPECT_EQ(calls, 1);
}

TEST(ModuleTree, ADeviceThatIsNotThereIsRefused) {
  Net net;
  const Tensor weight = net.head.weight;
  net.to("cpu");
  EXPECT_TRUE(net.head.weight.is_same(weight));
  EXPECT_THROW(net.to("cuda"), Unsupported);
  EXPECT_THROW(net.to("abacus"), InvalidArgument);
}

TEST(ModuleTree, JoinedPartsAreOneTensorInFiles) {
  struct Split : Module<Split> {
    Linear q{register_module("q", Linear(2, 2))};
    Linear k{register_module("k", Linear(2, 3))};

    Split() {
      join_in_files("qk.weight", {"q.weight", "k.weight"});
      join_in_files("qk.bias", {"q.bias", "k.bias"});
    }
  };

  Split a, b;
  const StateDict state = a.state_dict();
  EXPECT_EQ(state.size(), 2U);
  EXPECT_EQ(state.at("qk.weight").shape(), (Shape{5, 2}));
  b.load_state_dict(state);
  EXPECT_EQ(a.k.weight.to_vector<float>(), b.k.weight.to_vector<float>());
  EXPECT_EQ(a.q.bias.to_vector<float>(), b.q.bias.to_vector<float>());
  EXPECT_NE(error_of([&] {
              b.load_state_dict({{"qk.weight", zeros({4, 2})}});
            }).find("shape of qk.weight"),
            std::string::npos);
}

// PyTorch's state_dict() has tied parameters under all their names.
TEST(ModuleTree, AStateMayHaveATiedParameterUnderAllItsNames) {
  struct Tied : Module<Tied> {
    Linear first{register_module("first", Linear(2, 2))};
    Linear second{register_module("second", Linear(2, 2))};

    Tied() { tie(second.weight, first.weight); }
  };

  Tied model;
  StateDict state = model.state_dict();
  EXPECT_EQ(state.size(), 3U);
  state["first.weight"] = full({2, 2}, 3);
  state["second.weight"] = state["first.weight"];
  model.load_state_dict(state);
  EXPECT_EQ(model.second.weight.to_vector<float>(), (std::vector<float>{3, 3, 3, 3}));
  state["second.weight"] = ones({2});
  EXPECT_NE(error_of([&] { model.load_state_dict(state); }).find("shape of second.weight"),
            std::string::npos);
}

TEST(ModuleTree, AModuleWithTwoNamesIsJoinedOnce) {
  struct Joined : Module<Joined> {
    Linear q{register_module("q", Linear(2, 2))};
    Linear k{register_module("k", Linear(2, 3))};

    Joined() { join_in_files("qk.weight", {"q.weight", "k.weight"}); }
  };

  struct Twice : Module<Twice> {
    Joined a{register_module("a", Joined())};
    Joined b{register_module("b", a)};
  };

  Twice model, other;
  const StateDict state = model.state_dict();
  EXPECT_EQ(state.size(), 3U);
  EXPECT_EQ(state.at("a.qk.weight").shape(), (Shape{5, 2}));
  other.load_state_dict(state);
  EXPECT_EQ(other.b.k.weight.to_vector<float>(), model.a.k.weight.to_vector<float>());
}

TEST(ModuleDict, FindsItsModulesByKey) {
  ModuleDict<Linear> heads({{"a", Linear(2, 3)}, {"b", Linear(2, 4)}});
  EXPECT_EQ(heads["b"](ones({1, 2})).size(1), 4);
  EXPECT_TRUE(heads.contains("a"));
  EXPECT_THROW((void)heads["c"], InvalidArgument);
  EXPECT_EQ(heads.named_parameters()[0].first, "a.weight");
}

TEST(Module, ParametersMayStopRecording) {
  Linear layer(2, 2);
  layer.requires_grad_(false);
  EXPECT_FALSE(layer(ones({1, 2})).requires_grad());
}

}  // namespace
}  // namespace flow::nn
