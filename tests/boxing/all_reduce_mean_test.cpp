// The op that averages the addends of a partial sum.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/planner.h"
#include "boxing/redistribute.h"
#include "boxing/redistribute_op.h"
#include "core/dispatch.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "tests/support/ranks_fixture.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

class AllReduceMeanOn : public RanksFixture {};

INSTANTIATE_TEST_SUITE_P(Threads, AllReduceMeanOn, testing::Values(run_ranks));
INSTANTIATE_TEST_SUITE_P(Processes, AllReduceMeanOn, testing::Values(run_loopback_ranks));
INSTANTIATE_TEST_SUITE_P(SharedMemory, AllReduceMeanOn, testing::Values(run_shared_memory_ranks));

const Placement kThree("cpu", {0, 1, 2});
const Placement kGrid("cpu", {{0, 1}, {2, 3}});

Tensor mean_of(const Tensor& addends) {
  return dispatch(boxing::kAllReduceMean, {&addends}, Site::here());
}

TEST_P(AllReduceMeanOn, EveryRankGetsTheMeanOfTheAddends) {
  run_on_ranks(3, [] {
    const auto rank = static_cast<float>(me());
    const Tensor mean = mean_of(tensor(Floats{rank, 1, 5 * rank}, {3})
                                    .to_global({.placement = kThree, .sbp = sbp::partial_sum}));
    EXPECT_EQ(mean.sbp(), NdSbp(sbp::broadcast));
    EXPECT_EQ(mean.to_local().to_vector<float>(), (Floats{1, 1, 5}));
  });
}

TEST_P(AllReduceMeanOn, AddendsMayBeAlongSeveralAxes) {
  run_on_ranks(4, [] {
    const NdSbp both{sbp::partial_sum, sbp::partial_sum};
    const Tensor mean = mean_of(
        tensor(Floats{static_cast<float>(me())}, {1}).to_global({.placement = kGrid, .sbp = both}));
    EXPECT_EQ(mean.to_local().to_vector<float>(), (Floats{1.5}));
  });
}

TEST_P(AllReduceMeanOn, EachAddendGetsItsShareOfTheGradient) {
  run_on_ranks(3, [] {
    const Tensor own = full({2}, static_cast<double>(me()), {.requires_grad = true});
    const Tensor mean = mean_of(own.to_global({.placement = kThree, .sbp = sbp::partial_sum}));
    backward({mean}, {full({2}, 6.0, {.placement = kThree, .sbp = sbp::broadcast})});
    EXPECT_EQ(own.grad().to_vector<float>(), (Floats{2, 2}));
  });
}

TEST(AllReduceMean, OtherLayoutsAndIntegersAreRefused) {
  run_ranks(3, [] {
    const Tensor rows = ones({3}, {.placement = kThree, .sbp = sbp::split(0)});
    EXPECT_THROW(mean_of(rows), InvalidArgument);
    EXPECT_THROW(mean_of(ones({3})), InvalidArgument);
    EXPECT_THROW(
        mean_of(ones({3}, {.dtype = DType::kInt64, .placement = kThree, .sbp = sbp::partial_sum})),
        InvalidArgument);
  });
}

TEST(AllReduceMean, ItsRouteHasOneStepAndNoOther) {
  run_ranks(3, [] {
    const boxing::Route route = boxing::mean_route({4}, DType::kFloat32, kThree);
    ASSERT_EQ(route.steps.size(), 1U);
    EXPECT_EQ(boxing::source_op(route.steps[0]), boxing::ReduceOp::kMean);
    EXPECT_EQ(boxing::step_names(route), "all_reduce_mean");
    EXPECT_FALSE(boxing::runner_up(route).has_value());
    EXPECT_TRUE(boxing::mean_route({0}, DType::kFloat32, kThree).steps.empty());
    EXPECT_TRUE(boxing::mean_route({4}, DType::kFloat32, Placement("cpu", {1})).steps.empty());
  });
}

}  // namespace
}  // namespace flow
