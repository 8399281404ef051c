// AnomalyGuard names the op whose gradient is first not finite.
#include "autograd/anomaly.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "nn/flow.h"
#include "tests/support/error_of.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

bool starts_with(const std::string& text, const std::string& start) {
  return text.substr(0, start.size()) == start;
}

// The gradient of sqrt at 0 is infinite; the product with it is NaN.
struct Root : nn::Module<Root> {
  Tensor w{register_parameter("w", tensor({4.F, 0.F}))};

  Tensor forward(const Tensor& x) { return w.sqrt() * x; }
};

constexpr uint32_t kLine = __LINE__ - 3;

struct Model : nn::Module<Model> {
  Root inner{register_module("inner", Root())};

  Tensor forward(const Tensor& x) { return inner(x.exp()); }
};

TEST(Anomaly, NamesTheOpWithItsLineAndModule) {
  Model model;
  const Tensor loss = model(ones({2})).sum();

  const AnomalyGuard anomaly;
  const std::string error = error_of<Error>([&] { loss.backward(); });

  EXPECT_TRUE(starts_with(error, str(__FILE__, ':', kLine, ", in inner: [sqrt] "))) << error;
}

TEST(Anomaly, SaysNothingWithoutTheGuardOrWithFiniteGradients) {
  Model model;
  model(ones({2})).sum().backward();
  EXPECT_TRUE(isinf(model.inner.w.grad()).any().item<bool>());
  {
    const AnomalyGuard anomaly;
    const AnomalyGuard off(false);
    model(ones({2})).sum().backward();
    EXPECT_FALSE(is_anomaly_enabled());
  }
  EXPECT_FALSE(is_anomaly_enabled());

  const AnomalyGuard anomaly;
  const Tensor x = ones({3}).requires_grad_();
  x.square().sum().backward();
  EXPECT_EQ(x.grad().to_vector<float>(), std::vector<float>(3, 2));
}

TEST(Anomaly, FindsItInGradToo) {
  const Tensor x = zeros({2}).requires_grad_();
  const Tensor y = x.sqrt().sum();
  const AnomalyGuard anomaly;

  EXPECT_NE(error_of<Error>([&] { grad({y}, {x}); }).find("[sqrt] "), std::string::npos);
}

TEST(Anomaly, IsRefusedInGraphs) {
  struct Train : nn::Graph<Train> {
    Model model;

    Tensor build(const Tensor& x) {
      const Tensor loss = model(x).sum();
      loss.backward();
      return loss;
    }
  };

  Train train;
  train(ones({2}));
  const AnomalyGuard anomaly;

  // A compiled step, and a new one.
  EXPECT_THROW(train(ones({2})), Unsupported);
  EXPECT_THROW(train(ones({1})), Unsupported);
  const std::string error = error_of<Error>([&] { train.build(ones({2})); });
  EXPECT_NE(error.find("[sqrt] "), std::string::npos) << error;
}

class AnomalyOn : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, AnomalyOn, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, AnomalyOn, testing::Values(run_loopback_ranks));

// Only the last rank holds the part with 0.
TEST_P(AnomalyOn, AllRanksNameTheSameOp) {
  run_on_ranks(3, [] {
    const Placement all("cpu", {0, 1, 2});
    const Tensor values = tensor({4.F, 4.F, 4.F, 4.F, 4.F, 0.F});
    for (const Sbp layout : {sbp::split(0), sbp::broadcast}) {
      const Tensor x = values.to_global({.placement = all, .sbp = layout}).requires_grad_();
      const Tensor loss = x.sqrt().sum();
      const AnomalyGuard anomaly;

      const std::string error = error_of<Error>([&] { loss.backward(); });

      EXPECT_NE(error.find(str(__FILE__, ':', __LINE__ - 5, ": [sqrt] ")), std::string::npos)
          << error;
    }
    // All ranks go on together.
    EXPECT_EQ(ones({6}, {.placement = all, .sbp = sbp::split(0)}).sum().item(), 6);
  });
}

// The other placement's ranks take part in the decision as well.
TEST_P(AnomalyOn, RanksOutsideThePlacementGetTheErrorToo) {
  run_on_ranks(2, [] {
    const Placement last("cpu", {1});
    const Tensor x = zeros({2}, {.placement = last, .sbp = sbp::broadcast}).requires_grad_();
    const Tensor loss = x.sqrt().sum();
    const AnomalyGuard anomaly;

    EXPECT_NE(error_of<Error>([&] { loss.backward(); }).find("[sqrt] "), std::string::npos);
  });
}

}  // namespace
}  // namespace flow
