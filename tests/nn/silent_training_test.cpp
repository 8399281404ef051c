// Nothing trains silently wrong: an error or one warning names the line.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

std::string warnings_of(const std::function<void()>& call) {
  testing::internal::CaptureStderr();
  call();
  return testing::internal::GetCapturedStderr();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

std::string at(uint32_t line) {
  return str(__FILE__, ':', line);
}

// ---- optimizers

TEST(SilentTraining, AnOptimizerWithoutParametersIsAnError) {
  const std::vector<Tensor> none;
  const Tensor w = ones({2}).requires_grad_();

  const std::string error = error_of([&] { optim::SGD{none, {.lr = 0.1}}; });
  EXPECT_TRUE(has(error, at(__LINE__ - 1) + ": [optimizer] a group has no parameters")) << error;
  EXPECT_NE(error_of([&] { optim::Adam{none}; }), "no error");
  EXPECT_NE(error_of([&] { optim::SGD{std::vector<optim::ParamGroup<optim::SGDOptions>>()}; }),
            "no error");
  EXPECT_NE(error_of([&] {
              optim::AdamW{std::vector<optim::ParamGroup<optim::AdamWOptions>>{{.params = {w}},
                                                                               {.params = none}}};
            }),
            "");
  optim::SGD optimizer({w});
  const std::string late = error_of([&] { optimizer.add_param_group({.params = none}); });
  EXPECT_TRUE(has(late, at(__LINE__ - 1))) << late;
  EXPECT_EQ(optimizer.num_groups(), 1);
}

TEST(SilentTraining, AStepWithoutGradientsWarnsOnce) {
  const Tensor w = ones({2}).requires_grad_();
  optim::SGD optimizer({w});
  uint32_t line = 0;

  const std::string first = warnings_of([&] {
    for (int i = 0; i < 3; ++i)
      optimizer.step();
    line = __LINE__ - 1;
  });

  EXPECT_TRUE(has(first, at(line) + ": [optimizer] step() changed nothing")) << first;
  EXPECT_EQ(count(first, "changed nothing"), 1U) << first;
  w.sum().backward();
  optim::SGD other({w, ones({3}).requires_grad_()});
  EXPECT_EQ(warnings_of([&] { other.step(); }), "");
}

// ---- modules

struct WithModule : nn::Module<WithModule> {
  nn::Linear fc{3, 2};

  Tensor forward(const Tensor& x) { return fc(x); }
};

struct WithTensor : nn::Module<WithTensor> {
  Tensor scale = ones({3}).requires_grad_();

  Tensor forward(const Tensor& x) { return x * scale; }
};

struct WithList : nn::Module<WithList> {
  std::vector<nn::Linear> layers{nn::Linear(3, 3), nn::Linear(3, 3)};

  Tensor forward(const Tensor& x) { return layers[1](layers[0](x)); }
};

TEST(SilentTraining, AMemberThatIsNotRegisteredIsAnErrorOfTheFirstCall) {
  const Tensor x = ones({1, 3});
  WithModule module;
  WithTensor tensor;
  WithList list;

  const std::string in_module = error_of([&] { module(x); });
  EXPECT_TRUE(has(in_module, at(__LINE__ - 1) + ": [module] ")) << in_module;
  EXPECT_TRUE(has(in_module, "register_module")) << in_module;
  const std::string in_tensor = error_of([&] { tensor(x); });
  EXPECT_TRUE(has(in_tensor, at(__LINE__ - 1) + ": [module] ")) << in_tensor;
  EXPECT_TRUE(has(in_tensor, "register_parameter")) << in_tensor;
  EXPECT_TRUE(has(error_of([&] { list(x); }), "register_module"));

  struct WithOption : nn::Module<WithOption> {
    Tensor scale = ones({3}, {.requires_grad = true});

    Tensor forward(const Tensor& in) { return in * scale; }
  };

  WithOption option;
  EXPECT_TRUE(has(error_of([&] { option(x); }), "register_parameter"));
}

TEST(SilentTraining, AMemberOfAModuleInsideIsFoundToo) {
  struct Outer : nn::Module<Outer> {
    WithTensor inner{register_module("inner", WithTensor())};

    Tensor forward(const Tensor& x) { return inner(x); }
  };

  struct Train : nn::Graph<Train> {
    Outer model;

    Tensor build(const Tensor& x) { return model(x); }
  };

  Outer outer;
  Train train;

  EXPECT_TRUE(has(error_of([&] { outer(ones({3})); }), "register_parameter"));
  EXPECT_TRUE(has(error_of([&] { train(ones({3})); }), "register_parameter"));
}

// Constants, buffers, tensors of other models that are frozen, and modules of any shape.
TEST(SilentTraining, OtherMembersAreFine) {
  struct Constant : nn::Module<Constant> {
    Tensor mean = ones({3});
    Tensor count{register_buffer("count", zeros({1}))};
    nn::Dropout dropout;

    Tensor forward(const Tensor& x) { return dropout(x - mean) + count; }
  };

  Constant constant;
  EXPECT_EQ(error_of([&] { constant(ones({3})); }), "no error");

  WithTensor frozen;
  frozen.scale.requires_grad_(false);
  EXPECT_EQ(error_of([&] { frozen(ones({3})); }), "no error");

  nn::Sequential sequence(nn::Linear(3, 3), nn::Sequential(nn::ReLU(), nn::LayerNorm({3})));
  EXPECT_EQ(error_of([&] { sequence(ones({3})); }), "no error");
  models::Gpt gpt({.vocab_size = 7, .block_size = 4, .n_layer = 1, .n_head = 1, .n_embd = 4});
  EXPECT_EQ(error_of([&] { gpt(tensor({{1, 2}})); }), "no error");
}

// Handles that other code holds and drops meanwhile are not members.
TEST(SilentTraining, ParametersElsewhereAreNoMembers) {
  const Tensor w = ones({3}).requires_grad_();
  std::vector<Tensor> copies(5, w);
  nn::Linear first(3, 3), second(3, 3);

  EXPECT_EQ(error_of([&] { second(first(w)); }), "no error");
}

// ---- tied weights

struct Tied : nn::Module<Tied> {
  nn::Embedding tok{register_module("tok", nn::Embedding(5, 4))};
  nn::Linear out{register_module("out", nn::Linear(4, 5, {.bias = false}))};

  Tensor forward(const Tensor& x) { return out(tok(x)); }
};

TEST(SilentTraining, AMemberThatIsAssignedAfterACallIsAnErrorOfTheNext) {
  const Tensor tokens = tensor({1});
  Tied model;
  model(tokens);
  Tied handle = model;
  const auto with_head = [](Tied& tied) { tied.out = nn::Linear(4, 5, {.bias = false}); };

  with_head(model);

  const std::string error = error_of([&] { model(tokens); });
  EXPECT_TRUE(has(error, at(__LINE__ - 1) + ": [module] ")) << error;
  EXPECT_TRUE(has(error, "replace_module(")) << error;
  EXPECT_EQ(error_of([&] { handle(tokens); }), "no error");

  Tied other;
  other(tokens);
  other.out.weight = other.tok.weight;
  EXPECT_TRUE(has(error_of([&] { other(tokens); }), "tie(a, b)"));

  Tied exchanged;
  exchanged(tokens);
  exchanged.replace_module("out", nn::Linear(4, 5, {.bias = false}));
  EXPECT_EQ(error_of([&] { exchanged(tokens); }), "no error");

  nn::Sequential list{Tied(), nn::Linear(5, 2)};
  list(tokens);
  with_head(list[0].as<Tied>());
  EXPECT_TRUE(has(error_of([&] { list(tokens); }), "replace_module("));
}

TEST(SilentTraining, AssignedWeightsAreAnErrorThatNamesTie) {
  Tied model;
  model.out.weight = model.tok.weight;

  const std::string error = error_of([&] { model(tensor({1})); });

  EXPECT_TRUE(has(error, "[module] the parameter 'weight' of module 'out'")) << error;
  EXPECT_TRUE(has(error, "tie(a, b)")) << error;
}

TEST(SilentTraining, ATensorOverAParameterWarns) {
  nn::Sequential model(nn::Linear(3, 3), nn::ReLU());
  model[0].as<nn::Linear>().weight = ones({3, 3});
  uint32_t line = 0;

  const std::string warning = warnings_of([&] {
    model(ones({1, 3}));
    line = __LINE__ - 1;
  });

  EXPECT_TRUE(has(warning, at(line))) << warning;
  EXPECT_TRUE(has(warning, "no handle of its parameter '0.weight'")) << warning;
  EXPECT_EQ(warnings_of([&] { nn::Linear(3, 3)(ones({1, 3})); }), "");
  EXPECT_EQ(warnings_of([&] {
              nn::LSTM(3, 3, {.num_layers = 2, .bidirectional = true})(ones({2, 1, 3}));
              nn::MultiheadAttention(4, 2)(ones({2, 4}), ones({2, 4}), ones({2, 4}));
              nn::BatchNorm2d(3)(ones({2, 3, 2, 2}));
              nn::utils::parametrizations::spectral_norm(nn::Linear(3, 3))(ones({1, 3}));
              nn::utils::parametrizations::weight_norm(nn::Linear(3, 3))(ones({1, 3}));
            }),
            "");
}

TEST(SilentTraining, TieTrainsBothAsOne) {
  Tied model;
  const Tensor old = model.out.weight;
  model.tie(model.out.weight, model.tok.weight);

  EXPECT_TRUE(model.out.weight.is_same(model.tok.weight));
  EXPECT_EQ(model.parameters().size(), 1U);
  EXPECT_TRUE(model.get_parameter("out.weight").is_same(model.tok.weight));
  EXPECT_EQ(model.state_dict().size(), 1U);
  EXPECT_EQ(model.state_dict().count("tok.weight"), 1U);

  optim::SGD optimizer(model.parameters(), {.lr = 0.1});
  model(tensor({1})).sum().backward();
  EXPECT_TRUE(model.tok.weight.grad().defined());
  EXPECT_FALSE(old.grad().defined());
  optimizer.step();
  EXPECT_EQ(model.out.weight.to_vector<float>(), model.tok.weight.to_vector<float>());
}

TEST(SilentTraining, TieRefusesWhatCannotBeTied) {
  Tied model;
  nn::Linear other(3, 2);

  const std::string shape = error_of([&] { model.tie(model.out.weight, other.weight); });
  EXPECT_TRUE(has(shape, at(__LINE__ - 1) + ": [tie] tied parameters have one shape")) << shape;
  Tensor copy = model.tok.weight.detach().clone();
  EXPECT_TRUE(has(error_of([&] { model.tie(copy, model.tok.weight); }), "is no parameter"));
  EXPECT_EQ(model.parameters().size(), 2U);
}

// ---- graphs

struct Forgets : nn::Graph<Forgets> {
  nn::Linear model;
  bool trains = false;
  uint32_t line = 0;

  Forgets(nn::Linear m, optim::Optimizer& optimizer) : model(m), line(__LINE__ + 1) {
    add_optimizer(optimizer);
  }

  Tensor build(const Tensor& x) {
    const Tensor loss = model(x).sum();
    if (trains) loss.backward();
    return loss;
  }
};

TEST(SilentTraining, AGraphWithAnOptimizerButNoBackwardIsAnError) {
  nn::Linear model(3, 2);
  optim::SGD optimizer(model.parameters());
  Forgets graph(model, optimizer);

  const std::string error = error_of([&] { graph(ones({1, 3})); });

  EXPECT_TRUE(has(error, at(graph.line) + ": [graph] build() gave no parameter")) << error;
  {
    const NoGradGuard no_grad;
    EXPECT_EQ(error_of([&] { graph(ones({1, 3})); }), "no error");
  }
  graph.trains = true;
  EXPECT_EQ(error_of([&] { graph(ones({1, 3})); }), "no error");
}

// ---- losses

TEST(SilentTraining, ATargetThatBroadcastsWarnsOncePerLine) {
  const Tensor x = ones({4, 1}), t = ones({4});
  uint32_t line = 0;

  const std::string text = warnings_of([&] {
    for (int i = 0; i < 3; ++i)
      mse_loss(x, t);
    line = __LINE__ - 1;
    mse_loss(x, t);
  });

  EXPECT_EQ(count(text, "[mse_loss] the target's shape (4,) differs"), 2U) << text;
  EXPECT_EQ(count(text, at(line) + ": [mse_loss]"), 1U) << text;
  EXPECT_EQ(count(text, at(line + 2) + ": [mse_loss]"), 1U) << text;
  EXPECT_EQ(warnings_of([&] { mse_loss(t, ones({4})); }), "");
}

TEST(SilentTraining, AllLossesThatBroadcastTheirTargetWarn) {
  const Tensor x = full({4, 1}, 0.5), t = full({4}, 0.5);
  const std::string text = warnings_of([&] {
    l1_loss(x, t);
    smooth_l1_loss(x, t);
    huber_loss(x, t);
    kl_div(x, t);
    poisson_nll_loss(x, t);
    gaussian_nll_loss(x, t, x);
    hinge_embedding_loss(x, t);
    soft_margin_loss(x, t);
  });
  for (const char* name : {"l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "poisson_nll_loss",
                           "gaussian_nll_loss", "hinge_embedding_loss", "soft_margin_loss"}) {
    EXPECT_EQ(count(text, str(": [", name, "] the target's shape")), 1U) << name << '\n' << text;
  }
  EXPECT_THROW(binary_cross_entropy(x, t), InvalidArgument);
}

TEST(SilentTraining, ALossModuleInAGraphWarnsWithItsLine) {
  struct Step : nn::Graph<Step> {
    nn::MSELoss loss;
    uint32_t line = 0;

    Tensor build(const Tensor& x, const Tensor& t) {
      line = __LINE__ + 1;
      return loss(x, t);
    }
  };

  Step step;
  const std::string text = warnings_of([&] {
    step(ones({4, 1}), ones({4}));
    step(ones({4, 1}), ones({4}));
  });

  EXPECT_EQ(count(text, at(step.line) + ": [mse_loss]"), 1U) << text;
}

}  // namespace
}  // namespace flow
