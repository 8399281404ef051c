// Gradients of global tensors: values of one rank, in the layout of the leaf.
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/function.h"
#include "boxing/ranks/run_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/error.h"
#include "eager/runtime.h"
#include "ops/creation/copy.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/index/index.h"
#include "ops/index/selection.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {
namespace {

using Floats = std::vector<float>;

const Placement kBoth("cpu", {0, 1});

Tensor global(const Floats& values, const Shape& shape, const NdSbp& layout) {
  return tensor(values, shape, {.placement = kBoth, .sbp = layout});
}

TEST(GlobalGradients, BroadcastLeafGetsTheSumOverAllRows) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2, 3, 4, 5, 6}, {3, 2}, sbp::split(0));
    const Tensor w = global({10, 20}, {2}, sbp::broadcast).requires_grad_();

    (x * w).sum().backward();

    EXPECT_EQ(w.grad().sbp(), NdSbp(sbp::broadcast));
    EXPECT_EQ(w.grad().to_local().to_vector<float>(), Floats({9, 12}));
  });
}

TEST(GlobalGradients, SplitLeafGetsItsOwnPart) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2, 3}, {3}, sbp::split(0)).requires_grad_();
    const Tensor c = global({4, 5, 6}, {3}, sbp::broadcast);

    (x * c * c).sum().backward();

    EXPECT_EQ(x.grad().sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(x.grad().to_local().to_vector<float>(),
              env::rank() == 0 ? Floats({16, 25}) : Floats({36}));
  });
}

TEST(GlobalGradients, SecondBackwardAddsInTheSameLayout) {
  run_ranks(2, [] {
    const Tensor w = global({1, 2}, {2}, sbp::broadcast).requires_grad_();
    const Tensor x = global({1, 2, 3, 4}, {2, 2}, sbp::split(1));

    (x * w).sum().backward();
    (x * w).sum().backward();

    EXPECT_EQ(w.grad().sbp(), NdSbp(sbp::broadcast));
    EXPECT_EQ(w.grad().full().to_vector<float>(), Floats({8, 12}));
  });
}

TEST(GlobalGradients, GradOfAResultHasItsLayout) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2, 3, 4}, {4}, sbp::split(0)).requires_grad_();
    const Tensor h = x * 2;
    const Tensor total = h.sum();

    const auto gradients = grad({total * total}, {h, total, x});

    EXPECT_EQ(gradients[0].sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(gradients[1].sbp(), NdSbp(sbp::broadcast));
    EXPECT_EQ(gradients[0].full().to_vector<float>(), Floats({40, 40, 40, 40}));
    EXPECT_EQ(gradients[1].full().to_vector<float>(), Floats({40}));
    EXPECT_EQ(gradients[2].full().to_vector<float>(), Floats({80, 80, 80, 80}));
  });
}

TEST(GlobalGradients, FlowThroughChangesOfLayout) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2, 3, 4}, {2, 2}, sbp::split(0)).requires_grad_();

    const Tensor y = (x * x).to_global({.sbp = sbp::split(1)}).to_global({.sbp = sbp::broadcast});
    (y * 3).sum().backward();

    EXPECT_EQ(x.grad().sbp(), NdSbp(sbp::split(0)));
    EXPECT_EQ(x.grad().full().to_vector<float>(), Floats({6, 12, 18, 24}));
  });
}

TEST(GlobalGradients, HigherDerivatives) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2, 3}, {3}, sbp::split(0)).requires_grad_();

    const Tensor dx = grad({(x * x * x).sum()}, {x}, {.create_graph = true})[0];
    const Tensor ddx = grad({dx.sum()}, {x})[0];

    EXPECT_EQ(ddx.full().to_vector<float>(), Floats({6, 12, 18}));
  });
}

TEST(GlobalGradients, WritesThroughViewsReachTheBase) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2, 3}, {3, 1}, sbp::split(0)).requires_grad_();
    const Tensor out = zeros({3, 2}, {.placement = kBoth, .sbp = sbp::split(0)});

    out.narrow(1, 1, 1).copy_(x * 2);
    (out * out).sum().backward();

    EXPECT_EQ(x.grad().full().to_vector<float>(), Floats({8, 16, 24}));
  });
}

struct Triple : Function<Triple> {
  static Tensor forward(FunctionContext& /*ctx*/, const Tensor& x) { return x * 3; }

  static std::vector<Tensor> backward(FunctionContext& /*ctx*/, std::vector<Tensor> dy) {
    return {dy[0] * 3};
  }
};

// A row of a split tensor has memory and a history of its own, which follow the base at the next
// use.
TEST(GlobalGradients, OfAViewFollowAWriteToItsBase) {
  run_ranks(2, [] {
    const auto gradient_of = [](const std::function<void(const Tensor& row)>& backward_from) {
      const Tensor x = global({1, 2, 3, 4}, {2, 2}, sbp::split(0)).requires_grad_();
      const Tensor h = x * 1;
      const Tensor row = h[1];
      h.mul_(5);
      backward_from(row);
      return x.grad().full().to_vector<float>();
    };

    EXPECT_EQ(gradient_of([](const Tensor& row) { row.backward(ones_like(row)); }),
              Floats({0, 0, 5, 5}));
    EXPECT_EQ(gradient_of([](const Tensor& row) {
                row.register_hook([](const Tensor& gradient) { return gradient * 2; });
                row.sum().backward();
              }),
              Floats({0, 0, 10, 10}));
    EXPECT_EQ(gradient_of([](const Tensor& row) { Triple::apply(row).sum().backward(); }),
              Floats({0, 0, 15, 15}));
  });
}

TEST(GlobalGradients, AViewThatWasWrittenIsAViewOfItsBase) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2, 3, 4}, {2, 2}, sbp::split(0)).requires_grad_();
    const Tensor h = x * 1;
    const Tensor row = h[1];
    row.mul_(5);

    const auto gradients = grad({(row * 2).sum(), (h * 3).sum()}, {h, row, x});

    EXPECT_EQ(gradients[0].full().to_vector<float>(), Floats({3, 3, 5, 5}));
    EXPECT_EQ(gradients[1].full().to_vector<float>(), Floats({2, 2}));
    EXPECT_EQ(gradients[2].full().to_vector<float>(), Floats({3, 3, 25, 25}));
  });
}

TEST(GlobalGradients, WritesThroughLocalPartsReachTheBase) {
  run_ranks(2, [] {
    const Tensor weights = global({1, 2, 3, 10, 20, 30}, {2, 3}, sbp::split(0));
    const auto loss_of = [&](const Tensor& h) { return (h * weights).sum(); };
    const Tensor x = ones({3}, {.placement = kBoth, .sbp = sbp::broadcast, .requires_grad = true});

    const Tensor scaled = x * 1;
    scaled.to_local().mul_(3);
    loss_of(scaled).backward();
    EXPECT_EQ(x.grad().to_local().to_vector<float>(), Floats({33, 66, 99}));

    const Tensor w = ones({3}).requires_grad_();
    const Tensor replaced = x * 1;
    replaced.to_local().copy_(w);
    loss_of(replaced).backward();
    EXPECT_EQ(w.grad().to_vector<float>(), Floats({11, 22, 33}));

    const Tensor part = ones({2}).requires_grad_();
    const Tensor split =
        ones({4}, {.placement = kBoth, .sbp = sbp::split(0), .requires_grad = true}) * 1;
    split.to_local().copy_(part);
    split.sum().backward();
    EXPECT_EQ(part.grad().to_vector<float>(), Floats({1, 1}));
  });
}

TEST(GlobalGradients, RankOutsideThePlacementFollows) {
  run_ranks(2, [] {
    const Placement first("cpu", {0});
    const Tensor x =
        tensor(Floats{1, 2}, {2}, {.placement = first, .sbp = sbp::broadcast}).requires_grad_();
    const Tensor out = zeros({2}, {.placement = first, .sbp = sbp::broadcast});
    out.narrow(0, 0, 1).copy_(x.narrow(0, 1, 1));

    (out * 3 + x * x).sum().backward();

    EXPECT_EQ(x.grad().full().to_vector<float>(), Floats({2, 7}));
  });
}

// The gradient of a reshaped split tensor is a view that is linked to the gradient of the result,
// which other ops take too. Adding to the view must not write there.
TEST(GlobalGradients, SumsDoNotWriteIntoTheGradientsOfOthers) {
  const auto second = [](const Tensor& x, const Tensor& index, const Tensor& values) -> Tensor {
    const Tensor leaf = x.detach().requires_grad_(), weight = values.detach().requires_grad_();
    const Tensor swapped = (leaf * 1.0).transpose(1, 2);
    const Tensor written = put(swapped, index, weight, {.accumulate = true});
    const Tensor loss = (written * written).sum() + (swapped * swapped * 1.5).sum();
    const std::vector<Tensor> first = grad({loss}, {leaf, weight}, {.create_graph = true});
    return grad({first[0].square().sum() + first[1].square().sum()}, {leaf})[0];
  };
  const Tensor x = arange(16, {.dtype = float32}).reshape({2, 4, 2}) - 7;
  const Tensor index = tensor({0, 8, 10, 11}), values = tensor({1.f, 2.f, 3.f, 4.f});
  const Floats expected = second(x, index, values).to_vector<float>();

  run_ranks(3, [&] {
    const Placement all("cpu", {0, 1, 2});
    const Tensor split = x.to_global(all, sbp::broadcast).to_global(all, sbp::split(2));
    const Tensor result =
        second(split, index.to_global(all, sbp::broadcast),
               values.to_global(all, sbp::broadcast).to_global(all, sbp::split(0)));
    EXPECT_EQ(result.full().to_vector<float>(), expected);
  });
}

TEST(GlobalGradients, LocalGradientOfAGlobalOutputThrows) {
  run_ranks(2, [] {
    const Tensor x = global({1, 2}, {2}, sbp::broadcast).requires_grad_();

    EXPECT_THROW((x * 2).backward(ones({2})), InvalidArgument);
  });
}

TEST(GlobalGradients, PlacementGuardDoesNotReachGradientsOfLocalTensors) {
  const Tensor x = tensor({3.f}).requires_grad_();
  const PlacementGuard guard(Placement("cpu", {0}), sbp::broadcast);

  (x * x).backward();

  EXPECT_FALSE(x.grad().is_global());
}

}  // namespace
}  // namespace flow
