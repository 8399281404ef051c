// Steps with tensors in oneDNN's blocked layouts: programs see in each call what eager calls see.
#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "core/strided_twin.h"
#include "eager/runtime.h"
#include "graph/program/lower.h"
#include "graph/run/executor.h"
#include "graph/trace/tracer.h"
#include "ops/conv/conv.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/norm/batch_norm.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"
#include "ops/vendor/onednn.h"

namespace flow::graph {
namespace {

class BlockedStep : public testing::Test {
 protected:
  void SetUp() override {
    if (!ops::has_onednn()) GTEST_SKIP() << ops::onednn_description();
  }

  static Tensor values(const Shape& shape) { return sin(arange(shape.numel()).reshape(shape)); }

  // The results of the traced step's program.
  static std::vector<Tensor> run(TracedStep traced, const std::vector<Tensor>& inputs) {
    const Program program = lower(traced.graph, plain_order(traced.graph), 0, kernel_table());
    Executor executor(program);
    std::vector<Tensor> externals = inputs;
    externals.insert(externals.end(), traced.captures.begin(), traced.captures.end());
    std::vector<Tensor> results;
    for (const ValueId output : traced.graph.outputs)
      results.push_back(zeros(traced.graph.value(output).shape));
    externals.insert(externals.end(), results.begin(), results.end());
    executor.run(externals);
    return results;
  }
};

// The blocked r is viewed, detached, and taken together with a strided tensor, before and after
// others take it as it is; backward reads it again.
std::vector<Tensor> loss_and_gradients(const Tensor& x, const std::vector<Tensor>& weights) {
  const Tensor h = conv2d(x, weights[0]);
  const Tensor normed = batch_norm(h, Tensor(), Tensor(),
                                   {.weight = weights[1], .bias = weights[2], .training = true});
  const Tensor r = relu(normed);
  const Tensor side = mul(r, weights[3]);
  const Tensor again = conv2d(r, weights[4]);
  const Tensor flat = reshape(r, {x.size(0), -1});
  const Tensor loss = mean(mul(side, side)) + mean(mul(again, mul(again, again))) +
                      mean(mul(flat, flat)) + mean(mul(relu(r.detach()), r));
  std::vector<Tensor> results = grad({loss}, weights);
  results.insert(results.begin(), loss);
  return results;
}

TEST_F(BlockedStep, GivesTheBitsOfEagerMode) {
  const Tensor x = values({2, 3, 10, 9});
  const std::vector<Tensor> weights{values({20, 3, 3, 3}), values({20}), values({20}),
                                    values({20, 1, 1}), values({12, 20, 3, 3})};
  for (const Tensor& weight : weights)
    weight.requires_grad_();
  const std::vector<Tensor> eager = loss_and_gradients(x, weights);
  Trace trace;
  const Tensor input = trace.add_input(x);

  const std::vector<Tensor> results = run(trace.finish(loss_and_gradients(input, weights)), {x});

  ASSERT_EQ(results.size(), eager.size());
  for (size_t i = 0; i < eager.size(); ++i)
    EXPECT_EQ(results[i].to_vector<float>(), eager[i].to_vector<float>()) << i;
}

TEST_F(BlockedStep, TensorsFromOutsideKeepTheirLayout) {
  const Tensor y = conv2d(values({2, 3, 6, 6}), values({20, 3, 1, 1}));
  const MetaPtr before = y.meta_ptr();
  ASSERT_NE(before->blocked, nullptr);
  Trace trace;
  const Tensor doubled = add(y, y);

  const std::vector<Tensor> results = run(trace.finish({doubled}), {});

  EXPECT_EQ(y.meta_ptr(), before);
  EXPECT_EQ(results[0].to_vector<float>(), add(y, y).to_vector<float>());
}

TEST_F(BlockedStep, WhatAProgramWritesBecomesStrided) {
  const Tensor y = conv2d(values({2, 3, 6, 6}), values({20, 3, 1, 1}));
  const std::vector<float> before = y.to_vector<float>();
  const Tensor flat = reshape(y, {2, 720});
  Trace trace;
  y.mul_(2);

  run(trace.finish({}), {});

  EXPECT_EQ(y.meta().blocked, nullptr);
  EXPECT_FLOAT_EQ(y.to_vector<float>()[7], before[7] * 2);
  EXPECT_FLOAT_EQ(flat.to_vector<float>()[7], before[7] * 2);
}

}  // namespace
}  // namespace flow::graph
