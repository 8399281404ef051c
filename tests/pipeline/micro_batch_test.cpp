#include "pipeline/micro_batch.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "eager/runtime.h"
#include "graph/tracer.h"
#include "ops/binary.h"
#include "ops/creation.h"
#include "ops/dropout.h"
#include "ops/loss.h"
#include "ops/matmul.h"
#include "ops/reduce.h"

namespace flow::pipeline {
namespace {

TEST(MicroBatch, WeightGradientsArePartialInTime) {
  const Tensor x = ones({4, 3}), y = ones({4, 2}), w = ones({3, 2}, {.requires_grad = true});
  graph::Trace trace;
  const Tensor tx = trace.add_input(x), ty = trace.add_input(y);
  const Tensor out = matmul(tx, w), loss = mse_loss(out, ty);
  loss.backward();
  const graph::TracedStep step = trace.finish({out, loss, w.grad()});

  const MicroBatchPlan plan = plan_micro_batches(step.graph, 2);

  const auto at = [&](int64_t i) {
    return plan.value_sbp[static_cast<size_t>(step.graph.outputs[static_cast<size_t>(i)])];
  };
  EXPECT_EQ(at(0), sbp::split(0));
  EXPECT_EQ(at(1), sbp::partial_sum);
  EXPECT_EQ(at(2), sbp::partial_sum);
}

TEST(MicroBatch, WhatNeedsTheSumRunsAfterAll) {
  const Tensor x = ones({4, 3});
  graph::Trace trace;
  const Tensor total = trace.add_input(x).sum();
  const graph::TracedStep step = trace.finish({total * total});

  const MicroBatchPlan plan = plan_micro_batches(step.graph, 2);

  EXPECT_EQ(plan.node_time, (std::vector<NodeTime>{NodeTime::kEach, NodeTime::kAfter}));
}

TEST(MicroBatch, RandomOpsRunInOneMicroBatchOnly) {
  graph::Trace trace;
  const Tensor dropped = dropout(trace.add_input(ones({4, 3})), {.p = 0.5});
  const graph::TracedStep step = trace.finish({dropped});

  EXPECT_EQ(plan_micro_batches(step.graph, 1).node_time, (std::vector<NodeTime>{NodeTime::kEach}));
  EXPECT_THROW(plan_micro_batches(step.graph, 2), Unsupported);
}

TEST(MicroBatch, AnOpThatMixesSamplesIsRefusedWithItsLine) {
  const Tensor x = ones({4, 3});
  graph::Trace trace;
  const Tensor tx = trace.add_input(x);
  const Tensor gram = matmul(tx, tx.t());  // every sample with every other
  const graph::TracedStep step = trace.finish({gram});
  try {
    plan_micro_batches(step.graph, 2);
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what()).find("micro_batch_test.cpp"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace flow::pipeline
