// Gradients of global leaves, added up over replicas in buckets while backward goes on.
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/hooks.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "boxing/report.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

const Placement kPair("cpu", {0, 1});
const Placement kGrid("cpu", {{0, 1}, {2, 3}});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;

// Every test runs on ranks that are threads, and on ranks that speak the protocol of processes.
class GradientSumsOn : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, GradientSumsOn, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, GradientSumsOn, testing::Values(run_loopback_ranks));

Tensor leaf(const Shape& shape, const Placement& placement, const NdSbp& layout,
            DType dtype = float32) {
  return randn(shape, {.dtype = dtype, .placement = placement, .sbp = layout}).requires_grad_();
}

// Leaves of several shapes, dtypes and layouts, partial along one or both axes on the way.
std::vector<std::vector<double>> gradients(double bucket_mb) {
  manual_seed(3);
  const auto data = [](const Shape& shape, const NdSbp& layout) {
    return randn(shape, {.placement = kGrid, .sbp = layout});
  };
  const Tensor rows = data({6, 5}, {kS0, kB});
  const Tensor cut = data({6, 5}, {kS0, kS0});
  std::vector<Tensor> leaves;
  Tensor loss = data({}, {kB, kB});
  for (int64_t i = 0; i < 3; ++i) {
    leaves.push_back(leaf({5}, kGrid, {kB, kB}));
    loss = loss + (rows * leaves.back()).sum();
    leaves.push_back(leaf({6, 5}, kGrid, {kB, kS1}));
    loss = loss + (data({7, 6, 5}, {kS0, kB}) * leaves.back()).sum();
    leaves.push_back(leaf({1, 5}, kGrid, {kB, kB}));
    loss = loss + (cut * leaves.back()).sum();
    leaves.push_back(leaf({5}, kGrid, {kB, kB}, float64));
    loss = loss + (cast(rows, float64) * leaves.back()).sum();
    leaves.push_back(leaf({6, 5}, kGrid, {kS0, kB}));
    loss = loss + (rows * leaves.back()).sum();
    leaves.push_back(leaf({0, 5}, kGrid, {kB, kB}));
    loss = loss + leaves.back().sum();
  }
  backward({loss}, {}, {.bucket_mb = bucket_mb});
  std::vector<std::vector<double>> values;
  for (const Tensor& x : leaves) {
    EXPECT_EQ(x.grad().sbp(), x.sbp());
    values.push_back(x.grad().to_vector<double>());
  }
  return values;
}

TEST_P(GradientSumsOn, AreBitForBitThoseOfSumsOneByOne) {
  run_on_ranks(4, [] {
    const auto one_by_one = gradients(0);
    EXPECT_EQ(gradients(25), one_by_one);
    EXPECT_EQ(gradients(0.0001), one_by_one);  // 100 bytes
  });
}

TEST_P(GradientSumsOn, MembersOfSeveralGroupsStartThemInOneOrder) {
  run_on_ranks(3, [] {
    const std::vector<Placement> pairs = {Placement("cpu", {0, 1}), Placement("cpu", {1, 2}),
                                          Placement("cpu", {0, 2})};
    std::vector<Tensor> leaves, losses;
    for (int64_t i = 0; i < 12; ++i) {
      const Placement& pair = pairs[static_cast<size_t>(i % 3)];
      leaves.push_back(leaf({4}, pair, kB));
      losses.push_back((ones({6, 4}, {.placement = pair, .sbp = kS0}) * leaves.back()).sum());
    }
    backward(losses, {}, {.bucket_mb = 0.00001});
    for (const Tensor& x : leaves)
      EXPECT_EQ(x.grad().to_vector<float>(), Floats({6, 6, 6, 6}));
  });
}

TEST_P(GradientSumsOn, AddToWhatIsThereAndHooksSeeTheSum) {
  run_on_ranks(2, [] {
    const Tensor x = ones({2, 2}, {.placement = kPair, .sbp = kS0});
    const Tensor a = leaf({2}, kPair, kB), b = leaf({2}, kPair, kB);
    std::vector<Floats> seen;
    register_post_accumulate_grad_hook(a, [&](const Tensor& leaf) {
      EXPECT_EQ(leaf.grad().sbp(), NdSbp(kB));
      seen.push_back(leaf.grad().to_local().to_vector<float>());
    });
    a.register_hook([](const Tensor& gradient) { return gradient * 10.0; });
    (x * a * 2.0).sum().backward();
    ((x * a).sum() + (x * b).sum()).backward();

    EXPECT_EQ(seen, (std::vector<Floats>{{40, 40}, {60, 60}}));
    EXPECT_EQ(b.grad().to_vector<float>(), Floats({2, 2}));
  });
}

TEST_P(GradientSumsOn, AFailedBackwardLeavesNoSumBehind) {
  run_on_ranks(2, [] {
    const Tensor x = ones({2, 2}, {.placement = kPair, .sbp = kS0});
    const Tensor first = leaf({2}, kPair, kB), last = leaf({2}, kPair, kB);
    const Tensor h = x * first;
    h.register_hook([](const Tensor&) -> Tensor { throw InvalidArgument("[hook] no"); });
    EXPECT_THROW(backward({(h * last).sum()}, {}, {.bucket_mb = 0.000001}), InvalidArgument);
    EXPECT_FALSE(last.grad().defined());

    (x * last).sum().backward();
    EXPECT_EQ(last.grad().to_vector<float>(), Floats({2, 2}));
    EXPECT_FALSE(first.grad().defined());
  });
}

TEST_P(GradientSumsOn, RecordedGradientsAreDifferentiable) {
  run_on_ranks(2, [] {
    const Tensor x = ones({2, 1}, {.placement = kPair, .sbp = kS0});
    const Tensor w = full({1}, 3.0, {.placement = kPair, .sbp = kB}).requires_grad_();
    backward({square(x * w).sum()}, {}, {.create_graph = true});
    const Tensor gradient = w.grad();
    EXPECT_EQ(gradient.to_vector<float>(), Floats({12}));
    EXPECT_EQ(grad({square(gradient).sum()}, {w})[0].to_vector<float>(), Floats({96}));
  });
}

TEST_P(GradientSumsOn, AreListedInTheReport) {
  run_on_ranks(2, [] {
    const Tensor x = ones({2, 100}, {.placement = kPair, .sbp = kS0});
    const Tensor a = leaf({100}, kPair, kB), b = leaf({100}, kPair, kB);
    const auto reductions = [&](double bucket_mb) {
      a.set_grad({});
      b.set_grad({});
      const Tensor loss = (x * a + x * b).mean();
      reset_boxing_report();
      backward({loss}, {}, {.bucket_mb = bucket_mb});
      std::vector<BoxingEntry> entries = boxing_report().entries;
      std::erase_if(entries, [](const BoxingEntry& e) { return e.route != "all_reduce"; });
      return entries;
    };
    const auto together = reductions(25);
    ASSERT_EQ(together.size(), 1U);
    EXPECT_EQ(together[0].shape, Shape({200}));
    EXPECT_EQ(together[0].bytes, 800);
    EXPECT_EQ(together[0].runs, 1);
    EXPECT_EQ(together[0].from_sbp, NdSbp(sbp::partial_sum));
    EXPECT_EQ(together[0].to_sbp, NdSbp(kB));
    EXPECT_GT(together[0].predicted_us, 0);
    EXPECT_GT(together[0].total_us, 0);
    EXPECT_NE(std::string(together[0].site.file()).find("gradient_sums_test"), std::string::npos);

    int64_t runs = 0;
    double bytes = 0;
    for (const BoxingEntry& entry : reductions(0)) {
      runs += entry.runs;
      bytes += entry.bytes * static_cast<double>(entry.runs);
    }
    EXPECT_EQ(runs, 2);
    EXPECT_EQ(bytes, 800);
  });
}

TEST(GradientSums, NegativeBucketsAreRefused) {
  const Tensor x = ones({1}).requires_grad_();
  EXPECT_THROW(backward({x * 2.0}, {}, {.bucket_mb = -1}), InvalidArgument);
}

}  // namespace
}  // namespace flow
