// One small training step through every room of the house: eager on one rank, eager on global
// tensors, traced and lowered, and as a pipeline. Each way gives the numbers of the first.
#include <mutex>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "graph/ir/ir_text.h"
#include "graph/passes/pass.h"
#include "graph/passes/settle_stages.h"
#include "graph/program/lower.h"
#include "graph/program/program.h"
#include "graph/run/executor.h"
#include "graph/trace/tracer.h"
#include "nn/flow.h"
#include "pipeline/order.h"

namespace {

namespace sbp = flow::sbp;
using flow::Tensor;

constexpr int64_t kRows = 6, kIn = 5, kHidden = 8, kOut = 3;

// Numbers that are no round binary fractions, so that a changed order of additions would show.
std::vector<float> numbers(int64_t count, int64_t seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>((i * 37 + seed * 101) % 97 - 48) / 31.0F);
  }
  return values;
}

// Where each tensor of the step lies; the default is local.
struct Layouts {
  flow::TensorOptions x = {}, w1 = {}, w2 = {}, y = {};
};

struct Step {
  Tensor x, w1, w2, y;

  explicit Step(Layouts layouts) {
    layouts.w1.requires_grad = layouts.w2.requires_grad = true;
    x = flow::tensor(numbers(kRows * kIn, 1), {kRows, kIn}, layouts.x);
    w1 = flow::tensor(numbers(kIn * kHidden, 2), {kIn, kHidden}, layouts.w1);
    w2 = flow::tensor(numbers(kHidden * kOut, 3), {kHidden, kOut}, layouts.w2);
    y = flow::tensor(numbers(kRows * kOut, 4), {kRows, kOut}, layouts.y);
  }

  // Forward, backward and update; gives the loss.
  Tensor run(const Tensor& in, const Tensor& target) const {
    const Tensor loss = flow::mse_loss(flow::matmul(flow::relu(flow::matmul(in, w1)), w2), target);
    for (const Tensor& w : {w1, w2})
      w.set_grad(Tensor());
    loss.backward();
    const flow::NoGradGuard no_grad;
    for (const Tensor& w : {w1, w2})
      w.sub_(w.grad(), {.alpha = 0.1});
    return loss;
  }
};

struct Result {
  std::vector<float> loss, w1, w2, grad1, grad2;
};

Result result_of(const Step& step, const Tensor& loss) {
  return {loss.to_vector<float>(), step.w1.to_vector<float>(), step.w2.to_vector<float>(),
          step.w1.grad().to_vector<float>(), step.w2.grad().to_vector<float>()};
}

Result on_one_rank() {
  const Step step({});
  return result_of(step, step.run(step.x, step.y));
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-5) << what << " " << i;
}

void expect_near(const Result& got, const Result& want) {
  expect_near(got.loss, want.loss, "loss");
  expect_near(got.grad1, want.grad1, "grad of w1");
  expect_near(got.grad2, want.grad2, "grad of w2");
  expect_near(got.w1, want.w1, "w1");
  expect_near(got.w2, want.w2, "w2");
}

// The step in plain double loops.
Result by_hand() {
  const auto x = numbers(kRows * kIn, 1), w1 = numbers(kIn * kHidden, 2),
             w2 = numbers(kHidden * kOut, 3), y = numbers(kRows * kOut, 4);
  const auto at = [](const std::vector<float>& m, int64_t width, int64_t i, int64_t j) {
    return static_cast<double>(m[static_cast<size_t>(i * width + j)]);
  };
  std::vector<double> g1(kIn * kHidden, 0), g2(kHidden * kOut, 0);
  double loss = 0;
  for (int64_t r = 0; r < kRows; ++r) {
    std::vector<double> pre(kHidden, 0), dh(kHidden, 0);
    for (int64_t h = 0; h < kHidden; ++h) {
      for (int64_t i = 0; i < kIn; ++i) {
        pre[static_cast<size_t>(h)] += at(x, kIn, r, i) * at(w1, kHidden, i, h);
      }
    }
    for (int64_t o = 0; o < kOut; ++o) {
      double z = 0;
      for (int64_t h = 0; h < kHidden; ++h) {
        z += std::max(0.0, pre[static_cast<size_t>(h)]) * at(w2, kOut, h, o);
      }
      const double difference = z - at(y, kOut, r, o);
      loss += difference * difference / (kRows * kOut);
      const double dz = 2 * difference / (kRows * kOut);
      for (int64_t h = 0; h < kHidden; ++h) {
        g2[static_cast<size_t>(h * kOut + o)] += dz * std::max(0.0, pre[static_cast<size_t>(h)]);
        if (pre[static_cast<size_t>(h)] > 0) {
          dh[static_cast<size_t>(h)] += dz * at(w2, kOut, h, o);
        }
      }
    }
    for (int64_t h = 0; h < kHidden; ++h) {
      for (int64_t i = 0; i < kIn; ++i) {
        g1[static_cast<size_t>(i * kHidden + h)] += dh[static_cast<size_t>(h)] * at(x, kIn, r, i);
      }
    }
  }
  Result result{.loss = {static_cast<float>(loss)}, .w1 = w1, .w2 = w2, .grad1 = {}, .grad2 = {}};
  for (size_t i = 0; i < g1.size(); ++i) {
    result.grad1.push_back(static_cast<float>(g1[i]));
    result.w1[i] -= static_cast<float>(0.1 * g1[i]);
  }
  for (size_t i = 0; i < g2.size(); ++i) {
    result.grad2.push_back(static_cast<float>(g2[i]));
    result.w2[i] -= static_cast<float>(0.1 * g2[i]);
  }
  return result;
}

const flow::Placement& both() {
  static const flow::Placement placement("cpu", {0, 1});
  return placement;
}

Layouts data_parallel() {
  return {.x = {.placement = both(), .sbp = sbp::split(0)},
          .w1 = {.placement = both(), .sbp = sbp::broadcast},
          .w2 = {.placement = both(), .sbp = sbp::broadcast},
          .y = {.placement = both(), .sbp = sbp::split(0)}};
}

// Columns of w1, rows of w2: the second product is a partial sum.
Layouts tensor_parallel() {
  return {.x = {.placement = both(), .sbp = sbp::broadcast},
          .w1 = {.placement = both(), .sbp = sbp::split(1)},
          .w2 = {.placement = both(), .sbp = sbp::split(0)},
          .y = {.placement = both(), .sbp = sbp::broadcast}};
}

TEST(WalkingSkeleton, EagerStepEqualsTheOneByHand) {
  expect_near(on_one_rank(), by_hand());
}

TEST(WalkingSkeleton, GlobalStepsEqualTheLocalOne) {
  const Result want = on_one_rank();
  for (const Layouts& layouts : {data_parallel(), tensor_parallel()}) {
    flow::run_ranks(2, [&] {
      const Step step(layouts);
      const Tensor loss = step.run(step.x, step.y);
      EXPECT_EQ(step.w1.grad().sbp(), step.w1.sbp());
      expect_near(result_of(step, loss), want);
    });
  }
}

TEST(WalkingSkeleton, LayoutsChangeWithoutChangingValues) {
  const std::vector<float> values = numbers(7 * 2, 5);
  flow::run_ranks(2, [&] {
    const Tensor split = flow::tensor(values, {7, 2}, {.placement = both(), .sbp = sbp::split(0)});
    EXPECT_EQ(split.to_local().shape(), (flow::Shape{flow::env::rank() == 0 ? 4 : 3, 2}));
    const Tensor whole = split.to_global({.sbp = sbp::broadcast});
    EXPECT_EQ(whole.to_local().to_vector<float>(), values);
    const Tensor again = whole.to_global({.sbp = sbp::split(1)});
    EXPECT_EQ(again.to_local().shape(), (flow::Shape{7, 1}));
    EXPECT_EQ(again.to_vector<float>(), values);
    const Tensor partial = whole.to_global({.sbp = sbp::partial_sum});
    EXPECT_EQ(partial.to_global({.sbp = sbp::broadcast}).to_local().to_vector<float>(), values);
    EXPECT_EQ(partial.to_global({.sbp = sbp::split(0)}).to_vector<float>(), values);
  });
}

// Traces one step and runs its program twice in place of two eager steps.
void expect_traced_equals_eager(const Layouts& layouts) {
  const Step eager(layouts);
  std::vector<float> eager_losses;
  for (int i = 0; i < 2; ++i)
    eager_losses.push_back(eager.run(eager.x, eager.y).item<float>());

  const Step step(layouts);
  flow::graph::TracedStep traced;
  {
    flow::graph::Trace trace;
    const Tensor x = trace.add_input(step.x), y = trace.add_input(step.y);
    traced = trace.finish({step.run(x, y)});
  }
  EXPECT_FALSE(step.w1.grad().defined()) << "the trace put the gradients back";
  EXPECT_EQ(flow::graph::parse_graph(to_string(traced.graph), flow::op_table()), traced.graph);

  const flow::graph::Program program =
      flow::graph::lower(traced.graph, flow::graph::plain_order(traced.graph), flow::env::rank(),
                         flow::kernel_table());
  flow::graph::Executor executor(program);
  const Tensor loss =
      Tensor::make(traced.graph.value(traced.graph.outputs[0]).meta_on(flow::env::rank()), nullptr);
  std::vector<Tensor> externals = {step.x, step.y};
  externals.insert(externals.end(), traced.captures.begin(), traced.captures.end());
  flow::TensorOptions options = flow::options_like(loss);
  externals.push_back(flow::empty(loss.shape(), options));
  for (int i = 0; i < 2; ++i) {
    executor.run(externals);
    EXPECT_EQ(externals.back().item<float>(), eager_losses[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(step.w1.to_vector<float>(), eager.w1.to_vector<float>());
  EXPECT_EQ(step.w2.to_vector<float>(), eager.w2.to_vector<float>());
}

TEST(WalkingSkeleton, TracedStepEqualsEagerBitForBit) {
  expect_traced_equals_eager({});
  for (const Layouts& layouts : {data_parallel(), tensor_parallel()}) {
    flow::run_ranks(2, [&] { expect_traced_equals_eager(layouts); });
  }
}

TEST(WalkingSkeleton, PipelineGradientsEqualThoseOfOneRank) {
  const Result want = on_one_rank();
  const flow::Placement first("cpu", {0}), second("cpu", {1});
  flow::run_ranks(2, [&] {
    const Step step({.x = {.placement = first, .sbp = sbp::broadcast},
                     .w1 = {.placement = first, .sbp = sbp::broadcast},
                     .w2 = {.placement = second, .sbp = sbp::broadcast},
                     .y = {.placement = second, .sbp = sbp::broadcast}});
    flow::graph::TracedStep traced;
    {
      flow::graph::Trace trace;
      const Tensor x = trace.add_input(step.x), y = trace.add_input(step.y);
      Tensor hidden, loss;
      {
        const flow::graph::StageGuard stage(0);
        hidden = flow::relu(flow::matmul(x, step.w1));
      }
      {
        const flow::graph::StageGuard stage(1);
        const Tensor moved = hidden.to_global({.placement = second, .sbp = sbp::broadcast});
        loss = flow::mse_loss(flow::matmul(moved, step.w2), y);
      }
      loss.backward();
      traced = trace.finish({loss, step.w1.grad(), step.w2.grad()});
    }
    flow::graph::settle_stages(traced.graph);
    const flow::graph::Order order = flow::pipeline::make_order(
        traced.graph, flow::pipeline::plan_micro_batches(traced.graph, 2),
        flow::pipeline::gpipe(2, 2));
    const flow::graph::Program program =
        flow::graph::lower(traced.graph, order, flow::env::rank(), flow::kernel_table());
    std::vector<Tensor> externals = {step.x, step.y};
    externals.insert(externals.end(), traced.captures.begin(), traced.captures.end());
    externals.push_back(flow::empty({}, flow::options_like(step.y)));
    externals.push_back(flow::empty({kIn, kHidden}, flow::options_like(step.w1)));
    externals.push_back(flow::empty({kHidden, kOut}, flow::options_like(step.w2)));
    flow::graph::Executor executor(program);
    for (int i = 0; i < 2; ++i) {
      executor.run(externals);
      const size_t results = externals.size() - 3;
      expect_near(externals[results].to_vector<float>(), want.loss, "loss");
      expect_near(externals[results + 1].to_vector<float>(), want.grad1, "grad of w1");
      expect_near(externals[results + 2].to_vector<float>(), want.grad2, "grad of w2");
    }
  });
}

}  // namespace
