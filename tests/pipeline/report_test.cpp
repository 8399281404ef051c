#include "pipeline/report.h"

#include <gtest/gtest.h>

#include "eager/runtime.h"
#include "graph/trace/tracer.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "pipeline/micro_batch.h"

namespace flow::pipeline {
namespace {

using Step = Tensor (*)(const Tensor& x);

double forward_us(Step step, int64_t micro_batches) {
  graph::Trace trace;
  const Tensor x = trace.add_input(ones({8, 1024}));
  Tensor y;
  {
    const graph::StageGuard stage(0);
    y = step(x);
  }
  const graph::TracedStep traced = trace.finish({y});
  const MicroBatchCut cut = plan_micro_batches(traced.graph, micro_batches);
  return stage_costs(traced.graph, cut).at(0).forward;
}

TEST(StageCosts, AMicroBatchHasItsPartOfTheSamples) {
  const Step step = [](const Tensor& x) { return exp(x); };
  EXPECT_DOUBLE_EQ(forward_us(step, 4), forward_us(step, 1) / 4);
}

TEST(StageCosts, EachMicroBatchReadsAllWeights) {
  const Step step = [](const Tensor& x) { return matmul(x, ones({1024, 1024})); };
  EXPECT_GT(forward_us(step, 4), 0.9 * forward_us(step, 1));
}

}  // namespace
}  // namespace flow::pipeline
