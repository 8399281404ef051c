#include "graph/tracer.h"

#include <gtest/gtest.h>

#include "autograd/grad_mode.h"
#include "eager/runtime.h"
#include "graph/executor.h"
#include "graph/program.h"
#include "ops/binary.h"
#include "ops/creation.h"
#include "ops/random.h"
#include "ops/reduce.h"
#include "ops/unary.h"
#include "ops/view.h"

namespace flow::graph {
namespace {

// Runs a traced step of local tensors once and gives its results.
std::vector<Tensor> run(const TracedStep& step, const std::vector<Tensor>& inputs) {
  const Program program = lower(step.graph, 0, kernel_table());
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

TEST(Tracer, WhatCannotBeTracedIsRefused) {
  const Tensor x = ones({2, 2});
  Trace trace;
  const Tensor tx = trace.add_input(x);
  EXPECT_NE(complaint([&] { tx.sum().item<float>(); }), "");
  EXPECT_NE(complaint([&] { rand({2}); }).find("draws random numbers"), std::string::npos);
  EXPECT_NE(complaint([&] { tx.select(0, 0).add_(1); }).find("through a view"), std::string::npos);
  const Tensor view = x.select(0, 0);
  x.add_(tx);
  EXPECT_NE(complaint([&] { view + 1.0; }).find("[trace]"), std::string::npos);
}

TEST(Tracer, AnEndedTraceLeavesTheThreadEager) {
  const Tensor x = ones({2});
  { Trace trace; }
  EXPECT_EQ((x + x).to_vector<float>(), (std::vector<float>{2, 2}));
}

}  // namespace
}  // namespace flow::graph
