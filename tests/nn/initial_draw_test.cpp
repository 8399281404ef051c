// Which random streams the initial values of a model come from.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

using Values = std::vector<std::vector<double>>;

Values values_of(const std::vector<Tensor>& tensors) {
  Values values;
  for (const Tensor& tensor : tensors)
    values.push_back(tensor.to(float64).to_vector<double>());
  return values;
}

// ---- the order of the arguments of Sequential

// What a model has that is made statement by statement from the first stream on.
template <class... Makers>
std::pair<Values, uint64_t> one_by_one(const Makers&... makers) {
  manual_seed(5);
  Values values;
  const auto add = [&](const auto& make) {
    for (std::vector<double>& parameter : values_of(make().parameters()))
      values.push_back(std::move(parameter));
  };
  (add(makers), ...);
  return {values, generator_state().next_stream};
}

nn::Linear linear(int64_t in, int64_t out) {
  return {in, out};
}

TEST(InitialDraw, SequentialDrawsLayerByLayer) {
  const auto expected = one_by_one([] { return linear(3, 4); }, [] { return nn::ReLU(); },
                                   [] { return nn::LayerNorm({4}); }, [] { return linear(4, 4); },
                                   [] { return nn::Conv1d(4, 2, 3); }, [] { return linear(2, 4); });

  manual_seed(5);
  const nn::Sequential model(linear(3, 4), nn::ReLU(), nn::LayerNorm({4}), linear(4, 4),
                             nn::Conv1d(4, 2, 3), linear(2, 4));

  EXPECT_EQ(values_of(model.parameters()), expected.first);
  EXPECT_EQ(generator_state().next_stream, expected.second);

  manual_seed(5);
  const nn::Sequential braces{linear(3, 4), nn::ReLU(),          nn::LayerNorm({4}),
                              linear(4, 4), nn::Conv1d(4, 2, 3), linear(2, 4)};
  EXPECT_EQ(values_of(braces.parameters()), expected.first);
}

TEST(InitialDraw, SequentialsInsideOthersDrawInOrder) {
  const auto expected = one_by_one([] { return linear(3, 4); }, [] { return linear(4, 3); },
                                   [] { return linear(3, 3); }, [] { return linear(3, 2); });

  manual_seed(5);
  const nn::Sequential model(nn::Sequential(linear(3, 4), linear(4, 3)),
                             nn::Sequential(linear(3, 3), nn::Sequential(linear(3, 2))));

  EXPECT_EQ(values_of(model.parameters()), expected.first);
}

struct Custom : nn::Module<Custom> {
  nn::Embedding table;
  Tensor w;

  Custom()
      : table(register_module("table", nn::Embedding(4, 3, {.padding_idx = 1}))),
        w(register_parameter("w", empty({3, 3}))) {
    nn::init::orthogonal_(w);
    nn::init::normal_(w, 0, 0.1);  // draws again
  }

  Tensor forward(const Tensor& x) { return matmul(table(x), w); }
};

Custom custom() {
  return {};
}

TEST(InitialDraw, ModulesOfTheUserAndAllInitialisersFollow) {
  struct Drawn : nn::Module<Drawn> {
    Tensor a{register_parameter("a", nn::init::trunc_normal_(empty({4})))};
    Tensor b{register_parameter("b", nn::init::sparse_(empty({4, 4}), 0.5))};
    Tensor c{register_parameter("c", nn::init::orthogonal_(empty({4, 4})))};
    Tensor d{register_parameter("d", nn::init::xavier_uniform_(empty({4, 4})))};
    Tensor e{register_parameter("e", nn::init::constant_(empty({4}), 3))};

    Tensor forward(const Tensor& x) { return x; }
  };

  const auto expected =
      one_by_one([] { return Custom(); }, [] { return Drawn(); }, [] { return Custom(); });

  manual_seed(5);
  const nn::Sequential model(custom(), Drawn{}, custom());

  EXPECT_EQ(values_of(model.parameters()), expected.first);
  EXPECT_EQ(values_of({model.get_parameter("0.table.weight").select(0, 1)}), (Values{{0, 0, 0}}));
}

// Layers that statements made, and values that were written, stay as they are.
TEST(InitialDraw, ExistingValuesAreKept) {
  nn::Linear first(3, 3), second(3, 3);
  const Values before = values_of({second.weight, first.weight});
  const nn::Sequential model(second, first);
  EXPECT_EQ(values_of({model.get_parameter("0.weight"), model.get_parameter("1.weight")}), before);

  const auto loaded = [](double value) {
    nn::Linear layer(3, 3);
    nn::init::constant_(layer.weight, value);
    return layer;
  };
  const nn::Sequential written(loaded(1), loaded(2));
  EXPECT_EQ(values_of({written.get_parameter("0.weight"), written.get_parameter("1.weight")}),
            (Values{std::vector<double>(9, 1), std::vector<double>(9, 2)}));
  EXPECT_NE(values_of({written.get_parameter("0.bias")}),
            values_of({written.get_parameter("1.bias")}));
}

// A module that draws by itself cannot be drawn again, so nothing is.
TEST(InitialDraw, ValuesThatWereDrawnOtherwiseAreKept) {
  struct Own : nn::Module<Own> {
    Tensor w{register_parameter("w", randn({3}) * 0.1)};

    Tensor forward(const Tensor& x) { return x * w; }
  };

  manual_seed(5);
  std::vector<Tensor> made;
  const auto noted = [&](auto module) {
    for (const Tensor& parameter : module.parameters())
      made.push_back(parameter.detach().clone());
    return module;
  };
  const nn::Sequential model(noted(Own()), noted(linear(3, 3)), noted(Own()));

  Values before = values_of(made), after = values_of(model.parameters());
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  EXPECT_EQ(after, before);
}

// ---- on ranks

class InitialDrawOn : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, InitialDrawOn, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, InitialDrawOn, testing::Values(run_loopback_ranks));

struct Stages : nn::Module<Stages> {
  nn::Sequential first{register_module("first", nn::Sequential(linear(3, 4), linear(4, 4)))};
  Custom second{register_module("second", Custom())};
  nn::Conv2d third{register_module("third", nn::Conv2d(2, 3, 2))};

  Tensor forward(const Tensor& x) { return x; }
};

Values one_rank() {
  manual_seed(9);
  return values_of(Stages().parameters());
}

template <class Make>
auto on(const Placement& placement, Sbp layout, const Make& make) {
  const PlacementGuard guard(placement, layout);
  return make();
}

const Placement kFirst("cpu", {0}), kSecond("cpu", {1}), kBoth("cpu", {0, 1});

TEST_P(InitialDrawOn, LocalModulesAreTheSameOnEveryRank) {
  const Values expected = one_rank();
  run_on_ranks(3, [&] {
    manual_seed(9);
    EXPECT_EQ(values_of(Stages().parameters()), expected);
    const Tensor own = randn({4});  // other draws still differ between ranks
    const Tensor all =
        own.to_global({.placement = Placement("cpu", {0, 1, 2}), .sbp = sbp::split(0)});
    const std::vector<double> values = all.to_vector<double>();
    EXPECT_NE(values[0], values[4]);
    EXPECT_NE(values[4], values[8]);
  });
}

TEST_P(InitialDrawOn, AModelLaidOutStageByStageHasTheWeightsOfOneRank) {
  const Values expected = one_rank();
  run_on_ranks(2, [&] {
    manual_seed(9);
    Stages model;
    model.first.to_global(kFirst, sbp::broadcast);
    model.second.to_global(kSecond, sbp::broadcast);
    model.third.to_global(kBoth, sbp::split(0));

    EXPECT_EQ(values_of(model.parameters()), expected);
  });
}

TEST_P(InitialDrawOn, StagesMadeOnTheirPlacementsHaveTheWeightsOfOneRank) {
  const Values expected = one_rank();
  run_on_ranks(2, [&] {
    manual_seed(9);
    struct Placed : nn::Module<Placed> {
      nn::Sequential first;
      Custom second;
      nn::Conv2d third;

      Placed()
          : first(on(kFirst, sbp::broadcast,
                     [] { return nn::Sequential(linear(3, 4), linear(4, 4)); })),
            second(on(kSecond, sbp::broadcast, [] { return Custom(); })),
            third(on(kBoth, sbp::split(0), [] { return nn::Conv2d(2, 3, 2); })) {
        register_module("first", first);
        register_module("second", second);
        register_module("third", third);
      }

      Tensor forward(const Tensor& x) { return x; }
    };

    EXPECT_EQ(values_of(Placed().parameters()), expected);
  });
}

}  // namespace
}  // namespace flow
