#include "boxing/redistribute.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "boxing/ranks/run_ranks.h"
#include "core/context.h"
#include "core/device/cuda.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "tests/support/error_of.h"

namespace flow {
namespace {

const Placement kPair("cpu", {0, 1});
const Placement kThree("cpu", {0, 1, 2});
const Placement kGrid("cpu", {{0, 1}, {2, 3}});
const Sbp kS0 = sbp::split(0);
const Sbp kS1 = sbp::split(1);
const Sbp kB = sbp::broadcast;
const Sbp kP = sbp::partial_sum;

using Floats = std::vector<float>;

int64_t me() {
  return env::rank();
}

// 0, 1, 2, … as the logical values of a (rows, columns) tensor.
Tensor counting(int64_t rows, int64_t columns, const Placement& placement, const NdSbp& nd_sbp) {
  Floats values;
  for (int64_t i = 0; i < rows * columns; ++i)
    values.push_back(static_cast<float>(i));
  return tensor(values, {rows, columns}, {.placement = placement, .sbp = nd_sbp});
}

TEST(ToGlobal, DifferingReplicasAreRefusedUnderFlowCheck) {
  setenv("FLOW_CHECK", "1", 1);
  run_ranks(3, [] {
    const Tensor same = ones({2, 3}).t();
    const Tensor differing = full({2, 3}, me() == 2 ? 7.0 : 1.0).t();

    EXPECT_EQ(same.to_global({.placement = kThree, .sbp = kB}).shape(), (Shape{3, 2}));
    const std::string message =
        error_of<Error>([&] { differing.to_global({.placement = kThree, .sbp = kB}); });

    EXPECT_NE(message.find("[to_global] ranks 0 and 2 pass different data for B on cpu:(0, 1, 2)"),
              std::string::npos)
        << message;
    EXPECT_NO_THROW(differing.to_global({.placement = kPair, .sbp = kB}));
  });
  unsetenv("FLOW_CHECK");
}

TEST(ToGlobal, SplitConcatenatesLocalParts) {
  run_ranks(2, [] {
    const Tensor local = tensor(Floats(6, static_cast<float>(me())), {2, 3});

    const Tensor rows = local.to_global({.placement = kPair, .sbp = kS0});
    const Tensor columns = local.to_global({.placement = kPair, .sbp = kS1});

    EXPECT_EQ(rows.shape(), (Shape{4, 3}));
    EXPECT_EQ(columns.shape(), (Shape{2, 6}));
    EXPECT_EQ(rows.to_vector<float>(), (Floats{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}));
    EXPECT_EQ(columns.to_vector<float>(), (Floats{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(columns.to_local().to_vector<float>(), local.to_vector<float>());
  });
}

TEST(ToGlobal, UnevenPartsMustBeThoseOfTheBalancedSplit) {
  run_ranks(2, [] {
    const Tensor fits = ones({me() == 0 ? 2 : 1, 3});
    EXPECT_EQ(fits.to_global({.placement = kPair, .sbp = kS0}).shape(), (Shape{3, 3}));

    const Tensor last_is_longer = ones({2 + me(), 3});
    const std::string text = error_of<Error>([&] { last_is_longer.to_global({kPair, kS0}); });
    EXPECT_NE(text.find("(2, 3) on rank 0, (3, 3) on rank 1"), std::string::npos) << text;
  });
}

TEST(ToGlobal, BroadcastTakesTheDataOfTheFirstRank) {
  run_ranks(4, [] {
    const Tensor local = tensor(Floats{static_cast<float>(10 * me())}, {1});

    const Tensor same = local.to_global({.placement = Placement("cpu", {2, 0}), .sbp = kB});
    const Tensor rows = local.to_global({.placement = kGrid, .sbp = {kS0, kB}});

    EXPECT_EQ(same.item<float>(), 20);
    EXPECT_EQ(rows.to_vector<float>(), (Floats{0, 20}));
    EXPECT_EQ(rows.to_local().item<float>(), me() < 2 ? 0 : 20);
    EXPECT_EQ(local.item<float>(), static_cast<float>(10 * me()));
  });
}

TEST(ToGlobal, WhatRanksOutsidePassIsNotLookedAt) {
  run_ranks(2, [] {
    const Tensor local = me() == 0 ? ones({2, 3}) : zeros({}, {.dtype = int64});
    const Tensor alone = local.to_global({.placement = Placement("cpu", {0}), .sbp = kS1});
    EXPECT_EQ(alone.shape(), (Shape{2, 3}));
    EXPECT_EQ(alone.dtype(), float32);
    EXPECT_EQ(alone.full().to_vector<float>(), Floats(6, 1));
  });
}

TEST(ToGlobal, RanksOutsideTakePartInBackward) {
  run_ranks(2, [] {
    const Tensor local = me() == 0 ? ones({2, 3}, {.requires_grad = true}) : zeros({});
    const Tensor alone = local.to_global({.placement = Placement("cpu", {0}), .sbp = kS1});
    const Tensor both = alone.to_global({.placement = kPair, .sbp = kS0});
    (both * both).sum().backward();
    if (me() == 0) {
      EXPECT_EQ(local.grad().to_vector<float>(), Floats(6, 2));
    }
  });
}

TEST(ToGlobal, RanksWithConstantPartsTakePartInBackward) {
  run_ranks(2, [] {
    const Tensor local = ones({1, 2}, {.requires_grad = me() == 1});
    const Tensor rows = local.to_global({.placement = kPair, .sbp = kS0});
    const Tensor columns = rows.to_global({.sbp = kS1});
    EXPECT_TRUE(rows.requires_grad());
    (columns * columns).sum().backward();
    EXPECT_EQ(local.grad().defined(), me() == 1);
    if (me() == 1) {
      EXPECT_EQ(local.grad().to_vector<float>(), (Floats{2, 2}));
    }
  });
}

TEST(ToGlobal, PartsOfDifferentNumbersOfDimsAreAnErrorOnAllRanks) {
  run_ranks(2, [] {
    const Tensor local = me() == 0 ? ones({2, 3}) : zeros({2});
    EXPECT_THROW(local.to_global({.placement = kPair, .sbp = kS1}), InvalidArgument);
  });
}

TEST(ToGlobal, PartialGivesAddendsAndCandidates) {
  run_ranks(3, [] {
    const Tensor local = tensor(Floats{static_cast<float>(me()), 1.0F}, {2});

    EXPECT_EQ(local.to_global({.placement = kThree, .sbp = kP}).to_vector<float>(), (Floats{3, 3}));
    EXPECT_EQ(local.to_global({kThree, sbp::partial_max}).to_vector<float>(), (Floats{2, 1}));
    EXPECT_EQ(local.to_global({kThree, sbp::partial_min}).to_vector<float>(), (Floats{0, 1}));
  });
}

TEST(ToGlobal, StridedPartsAreRead) {
  run_ranks(2, [] {
    const Tensor local = tensor(Floats{0, 1, 2, 3, 4, 5}, {2, 3}).t();

    const Tensor global = local.to_global({.placement = kPair, .sbp = kS0});

    EXPECT_EQ(global.to_vector<float>(), (Floats{0, 3, 1, 4, 2, 5, 0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(global.to_global({.sbp = kS1}).full().to_vector<float>(),
              (Floats{0, 3, 1, 4, 2, 5, 0, 3, 1, 4, 2, 5}));
  });
}

TEST(ToGlobal, WrongCallsSayWhatIsMissing) {
  const Tensor local = ones({2});
  EXPECT_NE(
      error_of<Error>([&] { local.to_global({.sbp = kB}); }).find("needs a placement and an sbp"),
      std::string::npos);
  const std::string missing = error_of<Error>([&] { local.to_global({kPair, kB}); });
  EXPECT_NE(missing.find("names rank 1, but there is 1 rank"), std::string::npos) << missing;
  EXPECT_NE(missing.find("flowrun -n 2"), std::string::npos) << missing;
  const Placement alone("cpu", {0});
  EXPECT_THROW(local.to_global({alone, {kB, kB}}), InvalidArgument);
  EXPECT_THROW(local.to_global({alone, kS1}), InvalidArgument);
  EXPECT_THROW(local.to_global({.placement = alone, .sbp = kB, .grad_sbp = kB}), InvalidArgument);
  const Tensor global = local.to_global({alone, kB});
  EXPECT_THROW(global.to_global({.grad_sbp = kS1}), InvalidArgument);
  if (!cuda::is_built()) {
    EXPECT_THROW(local.to_global(Placement("cuda", {0}), kB), Unsupported);
  }
}

// Addends that stand for nothing must not leave the range of the dtype when they are summed.
TEST(Redistribute, ExtremaOverSumsOfWholeNumbers) {
  const Placement grid("cpu", {{0, 1}, {2, 3}});
  const auto through = [&](Sbp extremum, const Scalar& value, DType dtype) {
    const Tensor whole =
        full({2}, value, {.dtype = dtype, .placement = grid, .sbp = {sbp::split(0), kB}});
    const Tensor sums = whole.to_global({.sbp = {sbp::split(0), sbp::partial_sum}});
    return sums.to_global({.sbp = {extremum, sbp::partial_sum}}).to_vector<int64_t>();
  };
  run_ranks(4, [&] {
    for (const DType dtype : {int8, int32, int64}) {
      EXPECT_EQ(through(sbp::partial_min, 5, dtype), (std::vector<int64_t>{5, 5}));
      EXPECT_EQ(through(sbp::partial_max, -5, dtype), (std::vector<int64_t>{-5, -5}));
    }
    EXPECT_EQ(through(sbp::partial_min, 255, uint8), (std::vector<int64_t>{255, 255}));
  });
}

TEST(ToGlobal, RanksThatAskForDifferentLayoutsAreToldBothLines) {
  const auto body = [] {
    const Tensor x = counting(4, 2, kPair, kS0);
    const std::string text = error_of<Error>([&] {
      if (me() == 0) {
        x.to_global({.sbp = kB});
      } else {
        x.to_global({.sbp = kS1});
      }
    });
    EXPECT_NE(text.find("from S(0) on cpu:(0, 1) to B"), std::string::npos) << text;
    EXPECT_NE(text.find("to S(1)"), std::string::npos) << text;
    EXPECT_NE(text.find("redistribute_test.cpp"), text.rfind("redistribute_test.cpp")) << text;
  };
  run_ranks(2, body);
}

TEST(Redistribute, EveryPairOfLayoutsKeepsTheValues) {
  run_ranks(3, [] {
    const NdSbp layouts[] = {kS0, kS1, kB, kP};
    for (const Placement& placement : {kPair, kThree, Placement("cpu", {2, 1})}) {
      for (const NdSbp& from : layouts) {
        for (const NdSbp& to : layouts) {
          const Tensor x = counting(5, 3, kThree, kB).to_global({.sbp = from});
          const Tensor y = x.to_global({.placement = placement, .sbp = to});
          EXPECT_EQ(y.sbp(), to);
          EXPECT_EQ(y.to_vector<float>(), counting(5, 3, kThree, kB).to_vector<float>())
              << from << " to " << to << " on " << placement;
        }
      }
    }
  });
}

TEST(Redistribute, EqualLayoutsGiveTheTensorItself) {
  run_ranks(2, [] {
    const Tensor x = counting(4, 2, kPair, kS0);
    EXPECT_TRUE(x.to_global({.sbp = kS0}).is_same(x));
    EXPECT_TRUE(x.to_global({.placement = kPair}).is_same(x));
  });
}

TEST(Redistribute, RanksOutsideKnowTheMeta) {
  run_ranks(3, [] {
    const Placement first("cpu", {0});
    const Placement second("cpu", {1});

    const Tensor moved = counting(2, 2, first, kB).to_global({.placement = second});

    EXPECT_EQ(moved.shape(), (Shape{2, 2}));
    EXPECT_EQ(moved.placement(), second);
    EXPECT_EQ(moved.to_local().numel(), me() == 1 ? 4 : 0);
    EXPECT_EQ(moved.to_vector<float>(), (Floats{0, 1, 2, 3}));
  });
}

TEST(Redistribute, OpsBringTheirInputsTogether) {
  run_ranks(2, [] {
    const Tensor rows = counting(4, 3, kPair, kS0);
    const Tensor columns = counting(4, 3, kPair, kS1);

    const Tensor sum = add(rows, columns);

    EXPECT_EQ(sum.to_vector<float>(), (Floats{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22}));
  });
}

TEST(Redistribute, ForbiddenWhereItIsNotWritten) {
  run_ranks(2, [] {
    const Tensor rows = counting(4, 3, kPair, kS0);
    const Tensor columns = counting(4, 3, kPair, kS1);
    const ForbidImplicitBoxing guard;

    const std::string text = error_of<Error>([&] { add(rows, columns); });

    EXPECT_NE(text.find("ForbidImplicitBoxing"), std::string::npos) << text;
    EXPECT_NO_THROW(add(rows, columns.to_global({.sbp = kS0})));
    { const ForbidImplicitBoxing inner; }
    EXPECT_THROW(add(rows, columns), InvalidArgument);
  });
}

TEST(RedistributeGrad, LeavesGetTheGradientInTheirLayout) {
  run_ranks(2, [] {
    const Tensor x = counting(4, 2, kPair, kS0);
    const Tensor w = counting(4, 2, kPair, kB);
    x.requires_grad_();
    w.requires_grad_();

    const Tensor loss = mul(x.to_global({.sbp = kB}), w.to_global({.sbp = kS1})).sum();
    loss.backward();

    EXPECT_EQ(x.grad().sbp(), kS0);
    EXPECT_EQ(w.grad().sbp(), kB);
    EXPECT_EQ(x.grad().to_vector<float>(), w.to_vector<float>());
    EXPECT_EQ(w.grad().to_vector<float>(), x.to_vector<float>());
  });
}

TEST(RedistributeGrad, CrossesPlacements) {
  run_ranks(2, [] {
    const Placement first("cpu", {0});
    const Placement second("cpu", {1});
    const Tensor x = counting(2, 2, first, kB);
    x.requires_grad_();

    const Tensor y = x.to_global({.placement = second});
    mul(y, y).sum().backward();

    EXPECT_EQ(x.grad().placement(), first);
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 2, 4, 6}));
  });
}

TEST(RedistributeGrad, GradSbpReducesWhereItIsAsked) {
  run_ranks(2, [] {
    const Tensor x = counting(4, 2, kPair, kB);
    x.requires_grad_();
    const Tensor w = counting(2, 2, kPair, kS0);
    NdSbp seen;
    const Tensor same = mul(x, ones({4, 2}, {.placement = kPair, .sbp = kB}));
    same.register_hook([&](const Tensor& grad) {
      seen = grad.sbp();
      return Tensor();
    });

    matmul(same.to_global({.grad_sbp = kB}), w.t()).sum().backward();

    EXPECT_EQ(seen, NdSbp(kB));
  });
}

TEST(RedistributeGrad, LocalPartsGetTheirShare) {
  run_ranks(2, [] {
    const Floats scale = {1, 2, 3, 4};
    const auto grad_of = [&](const Sbp& entry, const Shape& shape) {
      const Tensor local = ones(shape);
      local.requires_grad_();
      const Tensor global = local.to_global({.placement = kPair, .sbp = entry});
      const Tensor weight = tensor(scale, {4}, {.placement = kPair, .sbp = kB});
      mul(global, weight).sum().backward();
      return local.grad().to_vector<float>();
    };

    EXPECT_EQ(grad_of(kS0, {2}), me() == 0 ? (Floats{1, 2}) : (Floats{3, 4}));
    EXPECT_EQ(grad_of(kB, {4}), scale);
    EXPECT_EQ(grad_of(kP, {4}), scale);
  });
}

TEST(RedistributeGrad, MaximumGoesToTheEqualRanksTiesShared) {
  run_ranks(3, [] {
    // Column 0: rank 1 is highest; column 1: ranks 0 and 2 tie.
    const Tensor local = me() == 0   ? tensor(Floats{1, 5}, {2})
                         : me() == 1 ? tensor(Floats{4, 2}, {2})
                                     : tensor(Floats{0, 5}, {2});
    local.requires_grad_();

    const Tensor highest = local.to_global({.placement = kThree, .sbp = sbp::partial_max});
    mul(highest, tensor(Floats{10, 100}, {2}, {.placement = kThree, .sbp = kB})).sum().backward();

    const Floats expected = me() == 1 ? Floats{10, 0} : Floats{0, 50};
    EXPECT_EQ(local.grad().to_vector<float>(), expected);
  });
}

TEST(RedistributeGrad, ToLocalKeepsTheLayoutOfItsSource) {
  run_ranks(2, [] {
    const Tensor x = counting(2, 2, kPair, kS0);
    x.requires_grad_();

    const Tensor local = x.to_local();
    mul(local, local).sum().backward();

    EXPECT_EQ(x.grad().sbp(), kS0);
    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 2, 4, 6}));
  });
}

// Backward sends the gradient of the first redistribution from two ranks to all.
TEST(RedistributeGrad, RanksOutsideTakePartBeforeLocalParts) {
  run_ranks(3, [] {
    const Placement last_two("cpu", {1, 2});
    const Tensor x = counting(3, 1, kThree, kB);
    x.requires_grad_();

    const Tensor rows = x.to_global(last_two, kS0).to_local();
    const Tensor cubes = (rows * rows * rows).to_global(last_two, kS0);
    const Tensor first = grad({cubes.sum()}, {x}, {.create_graph = true})[0];
    EXPECT_EQ(first.to_vector<float>(), (Floats{0, 3, 12}));
    EXPECT_EQ(grad({first.sum()}, {x})[0].to_vector<float>(), (Floats{0, 6, 12}));

    // The two ranks tie, so each gets half of the gradient.
    const Tensor all = x.to_global(last_two, kB).to_local();
    const Tensor highest = (all * all).to_global(last_two, sbp::partial_max);
    EXPECT_EQ(grad({highest.sum()}, {x})[0].to_vector<float>(), (Floats{0, 1, 2}));
  });
}

TEST(RedistributeGrad, SecondDerivativesCrossLayouts) {
  run_ranks(2, [] {
    const Tensor x = counting(2, 2, kPair, kS0);
    x.requires_grad_();
    const Tensor y = x.to_global({.sbp = kB});

    const Tensor first = grad({mul(mul(y, y), y).sum()}, {x}, {.create_graph = true})[0];
    first.sum().backward();

    EXPECT_EQ(x.grad().to_vector<float>(), (Floats{0, 6, 12, 18}));
  });
}

TEST(Values, OfGlobalTensorsAreLogical) {
  run_ranks(2, [] {
    const Tensor x = counting(3, 2, kPair, kS0);
    EXPECT_EQ(x.to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(x.sum().item<float>(), 15);
    EXPECT_EQ(x.full().shape(), (Shape{3, 2}));
    EXPECT_FALSE(x.full().is_global());
    EXPECT_THROW(x.item<float>(), InvalidArgument);
  });
}

TEST(Values, OfLocalTensorsConvertAndFollowStrides) {
  const Tensor x = tensor(Floats{0.5F, 1, 2, -3, 4, 5.75F}, {2, 3}).t();
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{0.5, -3, 1, 4, 2, 5.75}));
  EXPECT_EQ(x.to_vector<int32_t>(), (std::vector<int32_t>{0, -3, 1, 4, 2, 5}));
  EXPECT_EQ(tensor(Floats{0.5F, 0, -2}, {3}).to_vector<bool>(),
            (std::vector<bool>{true, false, true}));
  EXPECT_EQ(tensor(Floats{7}, {1, 1}).item<int64_t>(), 7);
  EXPECT_THROW(x.item<float>(), InvalidArgument);
}

}  // namespace
}  // namespace flow
