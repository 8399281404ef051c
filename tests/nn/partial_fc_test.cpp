// A face model's head: sampled classes, a margin and cross entropy, on one rank and on several.
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "nn/flow.h"

namespace flow {
namespace {

constexpr int64_t kClasses = 25;

// Losses of some steps of an embedding under a margin; an undefined placement: one rank.
std::vector<double> train_head(const Placement& placement, const NdSbp& features) {
  manual_seed(5);
  nn::Linear body(6, 4);
  nn::PartialFC head(4, kClasses, {.num_sample = 10, .num_parts = 2});
  for (nn::ModuleBase* module :
       {static_cast<nn::ModuleBase*>(&body), static_cast<nn::ModuleBase*>(&head)})
    module->to(float64);
  TensorOptions options{.dtype = float64};
  if (placement.defined()) {
    body.to_global(placement, sbp::broadcast);
    head.to_global(placement, sbp::split(0));
    options.placement = placement;
    options.sbp = features;
  }
  nn::CombinedMarginLoss margin({.m1 = 1, .m2 = 0.1, .m3 = 0.05});
  std::vector<Tensor> parameters = body.parameters();
  parameters.push_back(head.weight);
  optim::SGD optimizer(parameters, {.lr = 0.1, .momentum = 0.9});
  std::vector<double> losses;
  for (int step = 0; step < 4; ++step) {
    const Tensor x = randn({8, 6}, options);
    TensorOptions integers = options;
    integers.dtype = int64;
    const Tensor label = randint(6, {8}, integers) * 4;
    auto [cosine, column] = head(body(x), label);
    const Tensor loss = cross_entropy(margin(cosine, column) * 16, column);
    optimizer.zero_grad();
    loss.backward();
    losses.push_back(nn::utils::clip_grad_norm_(parameters, 1).item<double>());
    optimizer.step();
    losses.push_back(loss.item<double>());
  }
  head.eval();
  const auto [cosine, column] = head(body(randn({2, 6}, options)), zeros({2}, {.dtype = int64}));
  EXPECT_EQ(cosine.shape(), Shape({2, kClasses}));
  losses.push_back(square(cosine).sum().item<double>());
  return losses;
}

TEST(PartialFcLayer, RanksTrainAsOneDoes) {
  const std::vector<double> single = train_head({}, {});

  for (const NdSbp& features : {NdSbp(sbp::broadcast), NdSbp(sbp::split(0))}) {
    run_ranks(2, [&] {
      const std::vector<double> losses = train_head(Placement("cpu", {0, 1}), features);
      ASSERT_EQ(losses.size(), single.size());
      for (size_t i = 0; i < losses.size(); ++i)
        EXPECT_NEAR(losses[i], single[i], 1e-10 * std::abs(single[i])) << i;
    });
  }
}

TEST(PartialFcLayer, ClassesThatWereNotTakenKeepTheirCentres) {
  manual_seed(5);
  nn::PartialFC head(3, kClasses, {.num_sample = 4});
  const auto [cosine, column] = head(randn({2, 3}), tensor(std::vector<int64_t>{7, 20}, {2}));
  cross_entropy(cosine, column).backward();

  EXPECT_EQ(cosine.shape(), Shape({2, 4}));
  const Tensor moved = gt(sum(abs(head.weight.grad()), 1), 0);
  EXPECT_EQ(sum(moved).item<int64_t>(), 4);
  EXPECT_TRUE(moved.select(0, 7).item<bool>() && moved.select(0, 20).item<bool>());
}

}  // namespace
}  // namespace flow
