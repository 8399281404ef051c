#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"
#include "tests/support/error_of.h"

namespace flow::nn {
namespace {

const Placement kPair("cpu", {0, 1});
const Placement kThree("cpu", {0, 1, 2});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;

struct Pair : Module<Pair> {
  Linear first{register_module("first", Linear(4, 5))};
  Linear second{register_module("second", Linear(5, 3))};
  Tensor count{register_buffer("count", zeros({1}))};

  Tensor forward(const Tensor& x) { return second(relu(first(x))); }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(ModuleToGlobal, AGlobalStateIsRefusedByALocalModule) {
  run_ranks(2, [] {
    Pair laid_out, local;
    laid_out.to_global(kPair, kB);
    const auto before = local.second.weight.to_vector<float>();
    const std::string text = error_of<Error>([&] { local.load_state_dict(laid_out.state_dict()); });
    EXPECT_TRUE(has(text, "layout of first.weight: the module's tensor is local")) << text;
    EXPECT_TRUE(has(text, "to_global")) << text;
    EXPECT_EQ(local.second.weight.to_vector<float>(), before);
  });
}

TEST(ModuleToGlobal, TakesTheFirstRanksValuesAndKeepsTheHandles) {
  run_ranks(3, [] {
    manual_seed(7);
    Pair model;
    const Tensor weight = model.first.parameters()[0];
    const auto expected = weight.to_vector<float>();
    if (env::rank() == 1) {  // what the other ranks hold does not count
      const NoGradGuard no_grad;
      weight.fill_(5);
    }

    model.to_global(Placement("cpu", {0, 2}), kB);

    EXPECT_EQ(weight.sbp(), NdSbp(kB));
    EXPECT_TRUE(weight.is_leaf());
    EXPECT_TRUE(weight.requires_grad());
    if (env::rank() == 0) {
      EXPECT_EQ(weight.to_local().to_vector<float>(), expected);
    }
  });
}

TEST(ModuleToGlobal, TheFirstMatchingPatternDecides) {
  run_ranks(2, [] {
    manual_seed(7);
    Pair model, local;
    local.load_state_dict(model.state_dict());

    model.to_global(kPair, {{"first.*", kS0}, {"second.weigh[st]", kS1}, {"*", kB}});

    EXPECT_EQ(model.first.parameters()[0].sbp(), NdSbp(kS0));
    EXPECT_EQ(model.first.parameters()[1].sbp(), NdSbp(kS0));
    EXPECT_EQ(model.second.parameters()[0].sbp(), NdSbp(kS1));
    EXPECT_EQ(model.second.parameters()[1].sbp(), NdSbp(kB));
    EXPECT_EQ(model.count.sbp(), NdSbp(kB));
    const StateDict mine = model.state_dict(), theirs = local.state_dict();
    for (const auto& [name, tensor] : theirs) {
      EXPECT_EQ(mine.at(name).shape(), tensor.shape()) << name;
      const auto values = mine.at(name).to_vector<float>();
      if (env::rank() == 0) {  // local draws differ between ranks, and its own count
        EXPECT_EQ(values, tensor.to_vector<float>()) << name;
      }
    }
    const std::string table = model.layout_table();
    EXPECT_TRUE(has(table, "first.weight   float32 (5, 4)  S(0) on cpu:(0, 1)  ")) << table;
    EXPECT_TRUE(has(table, "44 elements, ")) << table;
  });
}

TEST(ModuleToGlobal, GradientsGoAlong) {
  run_ranks(2, [] {
    Pair model;
    model.to_global(kPair, kB);
    const Tensor x = ones({6, 4}, {.placement = kPair, .sbp = kS0});
    model(x).sum().backward();
    const Tensor weight = model.first.parameters()[0];
    const auto before = weight.grad().to_vector<float>();

    model.to_global({.sbp = kS0});

    EXPECT_EQ(weight.sbp(), NdSbp(kS0));
    EXPECT_EQ(weight.grad().sbp(), NdSbp(kS0));
    EXPECT_EQ(weight.grad().to_vector<float>(), before);
  });
}

TEST(ModuleToGlobal, BadLayoutsChangeNothing) {
  run_ranks(2, [] {
    Pair model;
    const auto refused = [&](const std::function<void()>& body, const std::string& part) {
      const std::string message = error_of<Error>(body);
      EXPECT_TRUE(has(message, part)) << message;
      for (const Tensor& parameter : model.parameters())
        EXPECT_FALSE(parameter.is_global());
    };
    refused(
        [&] {
          model.to_global(kPair, {{"firts.*", kS0}, {"*", kB}});
        },
        "[to_global] the pattern firts.* matches no parameter or buffer; the names are:\n"
        "  first.weight\n");
    refused(
        [&] {
          model.to_global(kPair, {{"first.*", kS0}});
        },
        "[to_global] no pattern matches second.weight; add {\"*\", sbp::broadcast}");
    refused(
        [&] {
          model.to_global(kPair, {{"*.weight", kS0}, {"*", kS1}});
        },
        "this is the layout of first.bias");
    refused([&] { model.to_global(kPair, sbp::partial_sum); },
            "first.weight cannot have the layout P");
    refused([&] { model.to_global({.sbp = kB}); }, "first.weight is local");
    refused([&] { model.to_global(kThree, kB); }, "names rank 2, but there are 2 ranks");
  });
}

}  // namespace
}  // namespace flow::nn
