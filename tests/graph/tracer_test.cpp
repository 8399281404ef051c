#include "graph/trace/tracer.h"

#include <algorithm>
#include <functional>
#include <memory>

#include <gtest/gtest.h>

#include "autograd/autocast.h"
#include "autograd/engine.h"
#include "autograd/recompute.h"
#include "autograd/shape_in_place.h"
#include "core/context.h"
#include "core/grad_mode.h"
#include "eager/runtime.h"
#include "graph/program/lower.h"
#include "graph/program/program.h"
#include "graph/run/executor.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast_op.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/index/index.h"
#include "ops/linear/matmul.h"
#include "ops/random/dropout.h"
#include "ops/random/random.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow::graph {
namespace {

// Runs a traced step of local tensors once and gives its results.
std::vector<Tensor> run(const TracedStep& step, const std::vector<Tensor>& inputs) {
  const Program program = lower(step.graph, plain_order(step.graph), 0, kernel_table());
  std::vector<Tensor> externals = inputs;
  externals.insert(externals.end(), step.captures.begin(), step.captures.end());
  std::vector<Tensor> results;
  for (const ValueId output : step.graph.outputs) {
    const Value& value = step.graph.value(output);
    results.push_back(empty(value.shape, {.dtype = value.dtype}));
    externals.push_back(results.back());
  }
  Executor(program).run(externals);
  return results;
}

TEST(Tracer, WritesToOutsideTensorsHappenWhenTheProgramRuns) {
  const Tensor x = ones({3}), counter = zeros({3});
  TracedStep step;
  {
    Trace trace;
    const Tensor tx = trace.add_input(x);
    counter.add_(tx);
    step = trace.finish({counter * 10.0});
  }
  EXPECT_EQ(counter.to_vector<float>(), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(run(step, {x})[0].to_vector<float>(), (std::vector<float>{10, 10, 10}));
  EXPECT_EQ(run(step, {x})[0].to_vector<float>(), (std::vector<float>{20, 20, 20}));
  EXPECT_EQ(counter.to_vector<float>(), (std::vector<float>{2, 2, 2}));
}

// Also inside a guard that has cast the weight before, and goes on after the trace.
TEST(Tracer, AutocastCastsAWeightOnceAsEagerModeDoes) {
  const Tensor x = tensor(std::vector<float>{0.1f, 0.2f, 0.3f, 0.4f}, {2, 2});
  const Tensor w = tensor(std::vector<float>{1.1f, -0.7f, 0.3f, 2.9f}, {2, 2}).requires_grad_();
  const auto gradient = [&](const Tensor& in) {
    const AutocastGuard autocast;
    w.set_grad(Tensor());
    const Tensor loss = square(linear(relu(linear(in, w)), w)).sum();
    loss.backward();
    return w.grad() * 1.0;
  };
  const AutocastGuard autocast;
  const std::vector<float> expected = gradient(x).to_vector<float>();
  TracedStep step;
  {
    Trace trace;
    step = trace.finish({gradient(trace.add_input(x))});
  }
  EXPECT_EQ(std::count_if(step.graph.nodes.begin(), step.graph.nodes.end(),
                          [&](const Node& node) {
                            return node.op == &ops::kCast && node.inputs[0] != kNoValue &&
                                   node.inputs[0] == step.graph.captures[0].initial;
                          }),
            1);
  EXPECT_EQ(run(step, {x})[0].to_vector<float>(), expected);
  EXPECT_EQ(gradient(x).to_vector<float>(), expected);
}

TEST(Tracer, ValuesReadBeforeAWriteKeepTheOldVersion) {
  const Tensor state = ones({2});
  TracedStep step;
  {
    Trace trace;
    const Tensor old = state * 1.0;
    state.mul_(5);
    step = trace.finish({old, state * 1.0});
  }
  const auto results = run(step, {});
  EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{1, 1}));
  EXPECT_EQ(results[1].to_vector<float>(), (std::vector<float>{5, 5}));
}

TEST(Tracer, ViewsAndTheirCopiesRunAsTraced) {
  const Tensor x = tensor({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  TracedStep step;
  {
    Trace trace;
    const Tensor tx = trace.add_input(x);
    step = trace.finish({tx.transpose(0, 1).reshape({6}), tx.select(0, 1) + 1.0});
  }
  const auto results = run(step, {x});
  EXPECT_EQ(results[0].to_vector<float>(), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(results[1].to_vector<float>(), (std::vector<float>{5, 6, 7}));
}

template <class Body>
std::string complaint(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The results of `step` on `x`, eagerly and by a program.
using Step = std::function<std::vector<Tensor>(const Tensor&)>;

void expect_traced_equals_eager(const Tensor& x, const Step& step) {
  TracedStep traced;
  {
    Trace trace;
    traced = trace.finish(step(trace.add_input(x)));
  }
  const auto expected = step(x.clone());
  const auto actual = run(traced, {x});
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_EQ(actual[i].to_vector<float>(), expected[i].to_vector<float>()) << "result " << i;
}

TEST(Tracer, WritesThroughViewsReachAllThatShareTheMemory) {
  const Tensor x = arange(24, {.dtype = float32}).reshape({2, 3, 4});
  expect_traced_equals_eager(x, [](const Tensor& input) {
    const Tensor y = input * 1.0;
    const Tensor before = y + 0.0;
    const Tensor row = y.select(0, 1);
    const Tensor part = slice(row, 1, 1, 4, 2);
    const Tensor flat = y.reshape({24});
    part.mul_(10);
    y.transpose(1, 2).select(1, 0).add_(0.5);
    slice(flat, 0, -2).fill_(-7);
    diagonal(y.select(0, 0)).add_(100);
    return std::vector{before, y * 1.0, row + 0.0, part + 0.0, flat + 0.0};
  });
}

TEST(Tracer, ViewsThatAreCopiesShareNothing) {
  const Tensor x = arange(6, {.dtype = float32}).reshape({2, 3});
  expect_traced_equals_eager(x, [](const Tensor& input) {
    const Tensor y = input * 1.0;
    const Tensor copy = y.transpose(0, 1).reshape({6});
    copy.add_(1);
    return std::vector{y + 0.0, copy + 0.0};
  });
}

TEST(Tracer, WritesThroughViewsAreRecorded) {
  const Tensor x = arange(6, {.dtype = float32}).reshape({2, 3});
  expect_traced_equals_eager(x, [](const Tensor& input) {
    const Tensor weight = (input.select(0, 0) * 1.0).detach().requires_grad_();
    const Tensor recorded = input * weight;
    const Tensor of_recorded = recorded.select(0, 0);
    const Tensor plain = input * 2.0;
    const Tensor of_plain = plain.select(0, 0);
    of_recorded.mul_(3);
    of_plain.add_(1);
    plain.mul_(weight);  // from here on gradients flow into what of_plain shows
    of_plain.mul_(weight);
    const Tensor loss = square(recorded).sum() + square(plain).sum() + of_plain.sum();
    return std::vector{grad({loss}, {weight})[0], recorded.detach() + 0.0, plain.detach() + 0.0};
  });
}

TEST(Tracer, AShapeChangedInPlaceEndsWithTheTrace) {
  std::weak_ptr<TraceSlot> slot;
  {
    graph::Trace trace;
    const Tensor x = trace.add_input(ones({2, 1, 3})) * 2.0;
    squeeze_(x);
    EXPECT_EQ(x.shape(), Shape({2, 3}));
    slot = x.impl().trace;
  }
  EXPECT_TRUE(slot.expired());
}

TEST(Tracer, RandomOpsDrawWhatAnEagerStepDraws) {
  const Tensor x = ones({64});
  const auto step = [](const Tensor& input) {
    rand({3});  // its result is not used, its number is
    return dropout(input, {.p = 0.5}) + rand({64});
  };
  manual_seed(3);
  TracedStep traced;
  {
    Trace trace;
    traced = trace.finish({step(trace.add_input(x))});
  }
  EXPECT_EQ(generator_state(), (Generator::State{.seed = 3}));
  std::vector<std::vector<float>> expected;
  for (int i = 0; i < 3; ++i)
    expected.push_back(step(x).to_vector<float>());
  const Generator::State after = generator_state();

  manual_seed(3);
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(run(traced, {x})[0].to_vector<float>(), expected[static_cast<size_t>(i)]);
  EXPECT_EQ(generator_state(), after);
}

TEST(Tracer, RecomputedDropoutDrawsAgainWhatItDrew) {
  const Tensor x = ones({32});
  const auto step = [](const Tensor& input) {
    const Tensor leaf = input.detach().requires_grad_();
    const Tensor y = recompute(
        [](const std::vector<Tensor>& in) { return dropout(in[0] * in[0], {.p = 0.5}) * in[0]; },
        {leaf});
    return std::vector{grad({y.sum()}, {leaf})[0], rand({4})};
  };
  manual_seed(5);
  const auto expected = step(x);
  manual_seed(5);
  TracedStep traced;
  {
    Trace trace;
    traced = trace.finish(step(trace.add_input(x)));
  }
  const auto actual = run(traced, {x});
  EXPECT_EQ(actual[0].to_vector<float>(), expected[0].to_vector<float>());
  EXPECT_EQ(actual[1].to_vector<float>(), expected[1].to_vector<float>());
}

TEST(Tracer, WhatCannotBeTracedIsRefused) {
  const Tensor x = ones({2, 2});
  Trace trace;
  const Tensor tx = trace.add_input(x);
  EXPECT_NE(complaint([&] { tx.sum().item<float>(); }), "");
  EXPECT_THROW(nonzero(tx), Unsupported);
  EXPECT_THROW(one_hot(argmax(tx, 0)), Unsupported);
  EXPECT_NE(complaint([&] { masked_select(tx, gt(tx, 1.0)); }).find("depends on data"),
            std::string::npos);
  EXPECT_NE(complaint([&] {
              expand(tx, {3, 2, 2}).add_(1);
            }).find("share memory"),
            std::string::npos);
}

TEST(Tracer, RefusesToSetTheGenerator) {
  manual_seed(0);
  const Generator::State other{.seed = 7, .next_stream = 0};
  {
    Trace trace;
    EXPECT_NE(complaint([] { manual_seed(0); }).find("call manual_seed() before the graph"),
              std::string::npos);
  }
  {
    Trace trace;
    set_generator_state(other);
    EXPECT_NE(complaint([] { rand({2}); }).find("the generator was set within the step"),
              std::string::npos);
  }
  Trace trace;
  const Tensor y = rand({2});
  set_generator_state(other);
  EXPECT_NE(complaint([&] { trace.finish({y}); }).find("the generator was set within the step"),
            std::string::npos);
}

// A graph may be compiled in a hook of an eager backward, or in a region that is recomputed.
TEST(Tracer, DoesNotBelongToTheBackwardAroundIt) {
  const Tensor x = ones({2}).requires_grad_();
  const Tensor y = x * 2;
  Phase phase = Phase::kUpdate;
  y.register_hook([&](const Tensor& dy) {
    Trace trace;
    const Tensor z = trace.add_input(dy) * 3;
    phase = trace.finish({z}).graph.nodes.at(0).phase;
    return dy;
  });

  y.sum().backward();

  EXPECT_EQ(phase, Phase::kForward);
}

TEST(Tracer, DoesNotBelongToTheRecomputedRegionAroundIt) {
  const Tensor x = ones({2}).requires_grad_();
  int num_runs = 0;
  const Tensor y = recompute(
      [&](const std::vector<Tensor>& in) {
        if (++num_runs == 1) {
          Trace trace;
          const Tensor traced = trace.add_input(ones({2}));
          traced.requires_grad_();
          trace.finish({square(traced * 2)});
        }
        return square(in[0]);
      },
      {x});

  y.sum().backward();

  EXPECT_EQ(x.grad().to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(Tracer, AnEndedTraceLeavesTheThreadEager) {
  const Tensor x = ones({2});
  { Trace trace; }
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST(Trace, TheThreadSaysWhetherOneRuns) {
  EXPECT_EQ(thread_state().trace, nullptr);
  {
    const Trace trace;
    EXPECT_EQ(thread_state().trace, &trace);
    {
      const SuspendTracing suspended;
      EXPECT_EQ(thread_state().trace, nullptr);
      EXPECT_EQ((ones({1}) + ones({1})).to_vector<float>(), std::vector<float>{2});
    }
    EXPECT_EQ(thread_state().trace, &trace);
  }
  EXPECT_EQ(thread_state().trace, nullptr);
}

}  // namespace
}  // namespace flow::graph
