#include "pipeline/micro_batch.h"

#include <gtest/gtest.h>

#include "autograd/engine.h"
#include "eager/runtime.h"
#include "graph/trace/tracer.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/linear/matmul.h"
#include "ops/loss/loss.h"
#include "ops/random/dropout.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/slice.h"

namespace flow::pipeline {
namespace {

TEST(MicroBatch, WeightGradientsArePartialInTime) {
  const Tensor x = ones({4, 3}), y = ones({4, 2}), w = ones({3, 2}, {.requires_grad = true});
  graph::Trace trace;
  const Tensor tx = trace.add_input(x), ty = trace.add_input(y);
  const Tensor out = matmul(tx, w), loss = mse_loss(out, ty);
  loss.backward();
  const graph::TracedStep step = trace.finish({out, loss, w.grad()});

  const MicroBatchCut plan = plan_micro_batches(step.graph, 2);

  const auto at = [&](int64_t i) {
    return plan.sbp_of(step.graph.outputs[static_cast<size_t>(i)]);
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

  const MicroBatchCut plan = plan_micro_batches(step.graph, 2);

  EXPECT_EQ(plan.node_time, (std::vector<NodeTime>{NodeTime::kEach, NodeTime::kAfter}));
}

TEST(MicroBatch, SumsOfInputsAreMadeBeforeWhereTheyAreNeeded) {
  graph::Trace trace;
  const Tensor x = trace.add_input(ones({4, 3})), t = trace.add_input(ones({4, 3}));
  const graph::TracedStep step = trace.finish({x / t.sum()});

  const MicroBatchCut plan = plan_micro_batches(step.graph, 2);

  EXPECT_EQ(plan.node_time, (std::vector<NodeTime>{NodeTime::kBefore, NodeTime::kEach}));
}

TEST(MicroBatch, ASumOfTrainedValuesCannotBeKnownBefore) {
  const Tensor x = ones({4, 3}), w = ones({3, 3});
  graph::Trace trace;
  const Tensor tx = trace.add_input(x);
  const Tensor y = tx * w.sum(0);
  const Tensor normed = y / y.sum();
  w.mul_(0.5);
  const graph::TracedStep step = trace.finish({normed});
  try {
    plan_micro_batches(step.graph, 2);
    FAIL() << "no error";
  } catch (const Unsupported& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("div at "), std::string::npos) << message;
    EXPECT_NE(message.find("micro_batch_test.cpp"), std::string::npos) << message;
    EXPECT_NE(message.find("needs a sum over all micro-batches"), std::string::npos) << message;
  }
}

TEST(MicroBatch, ConstantsOfTheWholeBatchAreTakenInParts) {
  graph::Trace trace;
  const Tensor x = trace.add_input(ones({4, 3}));
  const graph::TracedStep step = trace.finish({x + ones({4, 3})});

  const MicroBatchCut plan = plan_micro_batches(step.graph, 3);

  EXPECT_EQ(plan.node_time, (std::vector<NodeTime>{NodeTime::kBefore, NodeTime::kEach}));
  EXPECT_EQ(plan.input_sbp[1], (std::vector<Sbp>{sbp::split(0), sbp::split(0)}));
}

TEST(MicroBatch, RowsThatFollowSamplesAreCutWithThem) {
  graph::Trace trace;
  const Tensor x = trace.add_input(ones({5, 4, 3}));
  const graph::TracedStep step = trace.finish({x.reshape({20, 3})});

  const MicroBatchCut plan = plan_micro_batches(step.graph, 3);

  EXPECT_EQ(plan.sbp_of(step.graph.outputs[0]), sbp::split(0));
}

TEST(MicroBatch, RandomOpsDrawForEach) {
  graph::Trace trace;
  const Tensor dropped = dropout(trace.add_input(ones({4, 3})), {.p = 0.5});
  const graph::TracedStep step = trace.finish({dropped});

  EXPECT_EQ(plan_micro_batches(step.graph, 2).node_time, (std::vector<NodeTime>{NodeTime::kEach}));
}

TEST(MicroBatch, OnlyWhatDependsOnRowsNeedsTheirPositions) {
  graph::Trace trace;
  const Tensor x = trace.add_input(ones({4, 3}));
  const graph::TracedStep step = trace.finish({select(x, 0, 1), select(x, 1, 1)});

  const MicroBatchCut plan = plan_micro_batches(step.graph, 2);

  EXPECT_EQ(plan.sbp_of(step.graph.outputs[0]), sbp::partial_sum);
  EXPECT_EQ(plan.sbp_of(step.graph.outputs[1]), sbp::split(0));
  EXPECT_EQ(plan.is_positional, (std::vector<bool>{true, false}));
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
