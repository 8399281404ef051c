#include "autograd/recompute.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "autograd/gradcheck.h"
#include "autograd/hooks.h"
#include "core/context.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"

namespace flow {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<Tensor>;

Tensor leaf(float value) {
  return tensor({value}).requires_grad_();
}

TEST(Recompute, GivesTheGradientsOfThePlainCall) {
  const Tensor x = leaf(0.5f), w = leaf(0.25f);
  const auto block = [&](const Tensors& in) { return (in[0] * w).exp() * in[0]; };

  (block({x * 3}) * 2).backward();
  const Floats dx = x.grad().to_vector<float>(), dw = w.grad().to_vector<float>();
  x.set_grad({});
  w.set_grad({});
  const Tensor y = recompute(block, {x * 3});
  (y * 2).backward();

  EXPECT_EQ(x.grad().to_vector<float>(), dx);
  EXPECT_EQ(w.grad().to_vector<float>(), dw);
}

TEST(Recompute, RunsTheFunctionOnceMoreInBackward) {
  const Tensor x = leaf(0.5f);
  int runs = 0, second_runs = 0;
  const auto block = [&](const Tensors& in) {
    ++runs;
    second_runs += is_recomputing() ? 1 : 0;
    EXPECT_GE(recompute_region(), 0);
    return in[0].exp().exp();
  };

  const Tensor y = recompute(block, {x});
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(recompute_region(), -1);
  y.backward();

  EXPECT_EQ(runs, 2);
  EXPECT_EQ(second_runs, 1);
}

TEST(Recompute, KeepsNoIntermediateValues) {
  const Tensor x = zeros({1000}).requires_grad_();
  const auto allocated = [] { return thread_state().context->allocator().stats().bytes_in_use; };
  const auto block = [](const Tensors& in) { return in[0].exp().exp().exp().exp(); };

  const auto before = allocated();
  const Tensor plain = block({x});
  const auto plain_bytes = allocated() - before;
  const Tensor again = recompute(block, {x});
  const auto again_bytes = allocated() - before - plain_bytes;

  EXPECT_GE(plain_bytes, 4 * 4000);
  EXPECT_LT(again_bytes, 2 * 4000);
}

TEST(Recompute, ValuesAreFreedAsBackwardUsesThem) {
  const Tensor x = zeros({1000}).requires_grad_();
  const auto allocated = [] { return thread_state().context->allocator().stats().bytes_in_use; };
  const auto before = allocated();
  {
    const Tensor y =
        recompute([](const Tensors& in) { return in[0].exp().exp().exp().exp(); }, {x});
    y.sum().backward();
    EXPECT_LT(allocated() - before, 3 * 4096 + 1024);  // y and the gradient
  }
}

TEST(Recompute, DrawsTheSameNumbersAgain) {
  const Tensor x = leaf(2);
  manual_seed(7);
  Floats draws;
  const auto block = [&](const Tensors& in) {
    const RandomStream stream = thread_state().context->generator().next();
    draws.push_back(uniform_float(philox(stream, 0)[0]));
    return in[0] * in[0] * draws.back();
  };

  const Tensor y = recompute(block, {x});
  const Generator::State after = generator_state();
  y.backward();

  ASSERT_EQ(draws.size(), 2u);
  EXPECT_EQ(draws[0], draws[1]);
  EXPECT_EQ(generator_state(), after);
}

TEST(Recompute, SecondRunHasTheSurroundingsOfTheFirst) {
  const Tensor x = tensor(Floats{2}, {1}, {.placement = {"cpu", {0}}, .requires_grad = true});
  Tensor y;
  {
    const PlacementGuard guard(Placement("cpu", {0}), sbp::broadcast);
    y = recompute([](const Tensors& in) { return (in[0] * ones({1})).exp() * in[0]; }, {x});
  }

  y.backward();

  EXPECT_NEAR(x.grad().item<float>(), 3 * std::exp(2.f), 1e-4);
}

TEST(Recompute, NestsAndHasHigherDerivatives) {
  const Tensor x = tensor(std::vector<double>{0.3, -0.2}, {2}, {.requires_grad = true});
  const auto inner = [](const Tensors& in) { return (in[0] * in[0]).exp(); };
  const auto outer = [&](const Tensors& in) {
    return recompute(inner, {recompute(inner, {in[0].exp()}) * in[0]});
  };
  const auto fn = [&](const Tensors& in) { return recompute(outer, {in[0]}); };

  EXPECT_TRUE(gradcheck(fn, {x}));
  EXPECT_TRUE(gradgradcheck(fn, {x}));
}

TEST(Recompute, WorksWithGradAndRetainedGraphs) {
  const Tensor x = leaf(0.5f), w = leaf(2);
  const Tensor y = recompute([&](const Tensors& in) { return (in[0] * w).exp(); }, {x * 1});

  const auto first = grad({y}, {x, w}, {.retain_graph = true});
  const auto second = grad({y}, {x, w});

  EXPECT_EQ(first[0].to_vector<float>(), second[0].to_vector<float>());
  EXPECT_EQ(first[1].to_vector<float>(), second[1].to_vector<float>());
  EXPECT_FALSE(w.grad().defined());
  EXPECT_THROW(y.backward(), InvalidArgument);
}

TEST(Recompute, LeafHooksRunOncePerBackward) {
  const Tensor w = leaf(2), x = leaf(1);
  int calls = 0;
  register_post_accumulate_grad_hook(w, [&](const Tensor&) { ++calls; });
  const auto block = [&](const Tensors& in) { return in[0] * w; };

  recompute(block, {recompute(block, {x})}).backward();

  EXPECT_EQ(calls, 1);
  EXPECT_EQ(w.grad().to_vector<float>(), Floats({4}));
}

TEST(Recompute, AnotherWayTheSecondTimeThrows) {
  const Tensor x = leaf(2);
  int runs = 0;
  const Tensor y = recompute(
      [&](const Tensors& in) { return ++runs == 1 ? in[0].exp() : in[0].exp().exp(); }, {x});

  EXPECT_THROW(y.backward(), InvalidArgument);
}

TEST(Recompute, ChangedInputIsNoticed) {
  const Tensor x = leaf(2);
  const Tensor h = x * 1;
  const Tensor y = recompute([](const Tensors& in) { return in[0].exp(); }, {h});
  h.add_(1);

  EXPECT_THROW(y.backward(), InvalidArgument);
}

TEST(Recompute, ChangedParameterIsNoticed) {
  const Tensor x = leaf(2), w = leaf(3);
  const Tensor y = recompute([&](const Tensors& in) { return in[0] * w; }, {x * 1});
  {
    const NoGradGuard no_grad;
    w.add_(1);
  }

  EXPECT_THROW(y.backward(), InvalidArgument);
}

TEST(Recompute, WithoutRecordingIsThePlainCall) {
  const Tensor x = leaf(2);
  const NoGradGuard no_grad;
  int runs = 0;

  const Tensor y = recompute(
      [&](const Tensors& in) {
        ++runs;
        return in[0] * 3;
      },
      {x});

  EXPECT_EQ(runs, 1);
  EXPECT_FALSE(y.requires_grad());
  EXPECT_EQ(y.to_vector<float>(), Floats({6}));
}

TEST(Recompute, AnotherWayIsAnErrorEachTime) {
  const Tensor x = leaf(2);
  int runs = 0;
  const Tensor y = recompute(
      [&](const Tensors& in) {
        const Tensor square = in[0] * in[0];
        return runs++ == 0 ? exp(exp(square)) * in[0] : square;
      },
      {x});

  EXPECT_THROW(backward({y}, {}, {.retain_graph = true}), InvalidArgument);
  EXPECT_THROW(backward({y}, {}, {.retain_graph = true}), InvalidArgument);
}

}  // namespace
}  // namespace flow
