// Ops over a dim that is split among ranks give the values and gradients of the unsplit op, and
// only rows are communicated.
#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <gtest/gtest.h>

#include "boxing/ranks/run_ranks.h"
#include "boxing/report.h"
#include "core/context.h"
#include "eager/runtime.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/loss/cross_entropy.h"
#include "ops/norm/softmax.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "tests/support/largest_difference.h"

namespace flow {
namespace {

constexpr int64_t kRows = 6, kClasses = 5000;

using Fn = std::function<Tensor(const Tensor& x)>;

struct Result {
  Tensor y, dx;
};

// y = fn(x), and the gradient of a weighted sum of y, as local tensors.
Result run(const Fn& fn, DType dtype, const Placement& placement, const NdSbp& sbp) {
  manual_seed(3);
  TensorOptions options{.dtype = float64, .placement = placement, .sbp = sbp};
  Tensor x = mul(randn({kRows, kClasses}, options), 3.0).to(dtype).detach();
  x.requires_grad_();
  const Tensor y = fn(x);
  const Tensor weights = rand(
      y.shape(), placement.defined() ? TensorOptions{.dtype = y.dtype(),
                                                     .placement = placement,
                                                     .sbp = NdSbp::broadcast(placement.num_axes())}
                                     : TensorOptions{.dtype = y.dtype()});
  sum(mul(y, weights)).backward();
  return {y.full().to(float64), x.grad().full().to(float64)};
}

// As a part of the largest magnitude in b.
double relative_difference(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double scale = 0;
  for (const double value : y)
    scale = std::max(scale, std::abs(value));
  return largest_difference(x, y) / scale;
}

void expect_like_one_rank(const Fn& fn, DType dtype, double tolerance) {
  const Result whole = run(fn, dtype, {}, {});
  const Placement three("cpu", {0, 1, 2}), grid("cpu", {{0, 1}, {2, 3}});
  const std::vector<std::pair<Placement, NdSbp>> layouts = {{three, sbp::split(1)},
                                                            {grid, {sbp::split(0), sbp::split(1)}},
                                                            {grid, {sbp::split(1), sbp::split(1)}}};
  for (const auto& [placement, sbp] : layouts) {
    run_ranks(static_cast<int>(placement.num_ranks()), [&, p = placement, s = sbp] {
      reset_boxing_report();
      const Result cut = run(fn, dtype, p, s);
      EXPECT_LE(relative_difference(cut.y, whole.y), tolerance) << s;
      EXPECT_LE(relative_difference(cut.dx, whole.dx), tolerance) << s;
    });
  }
}

Tensor targets_like(const Tensor& x) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < kRows; ++i)
    values.push_back(i == 2 ? -100 : i * 977 % kClasses);
  if (!x.is_global()) return tensor(values, {kRows});
  return tensor(values, {kRows},
                {.placement = x.placement(), .sbp = NdSbp::broadcast(x.placement().num_axes())});
}

TEST(Decompose, SoftmaxOverACutDim) {
  expect_like_one_rank([](const Tensor& x) { return softmax(x, 1); }, float64, 1e-12);
  expect_like_one_rank([](const Tensor& x) { return softmax(x, 1); }, bfloat16, 2e-2);
}

TEST(Decompose, LogSoftmaxOverACutDim) {
  expect_like_one_rank([](const Tensor& x) { return log_softmax(x, -1); }, float64, 1e-12);
}

TEST(Decompose, CrossEntropyWithCutClasses) {
  for (const char* reduction : {"mean", "sum", "none"}) {
    expect_like_one_rank(
        [&](const Tensor& x) {
          return cross_entropy(x, targets_like(x), {.reduction = reduction});
        },
        float64, 1e-12);
  }
}

TEST(Decompose, OnlyRowsMove) {
  run_ranks(2, [] {
    const Placement pair("cpu", {0, 1});
    const Tensor x = randn({kRows, kClasses}, {.placement = pair, .sbp = sbp::split(1)});
    reset_boxing_report();

    const Tensor y = softmax(x, 1);
    const Tensor loss = cross_entropy(x, targets_like(x));

    EXPECT_EQ(y.sbp(), NdSbp(sbp::split(1)));
    EXPECT_EQ(loss.sbp(), NdSbp(sbp::broadcast));
    for (const BoxingEntry& entry : boxing_report().entries)
      EXPECT_LE(entry.bytes, kRows * 4) << entry;
    EXPECT_FALSE(boxing_report().entries.empty());
  });
}

TEST(Decompose, SmallTensorsAreGatheredInstead) {
  run_ranks(2, [] {
    const Placement pair("cpu", {0, 1});
    const Tensor x = randn({4, 4}, {.placement = pair, .sbp = sbp::split(1)});
    const Tensor y = softmax(x, 1);
    EXPECT_NE(y.sbp(), NdSbp(sbp::split(1)));
  });
}

}  // namespace
}  // namespace flow
