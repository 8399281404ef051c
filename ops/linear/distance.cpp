#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/linear/distance_op.h"
#include "ops/linear/matmul.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow::ops {
namespace {

// The number of leading dims.
int64_t num_leading(const OpContext& ctx) {
  return ctx.input(0).dim() - 2;
}

// Checks that the input has the leading dims and the dtype of input 0 and the given rows.
void check_rows(const OpContext& ctx, int i, int64_t rows, int64_t columns) {
  Shape expected = ctx.input(0).shape;
  expected[expected.size() - 2] = rows;
  expected[expected.size() - 1] = columns;
  ctx.check(ctx.input(i).shape == expected && ctx.input(i).dtype == ctx.input(0).dtype, "input ", i,
            " must have the shape ", expected, " and the dtype of the first");
}

void check_first(const OpContext& ctx) {
  ctx.check(is_floating(ctx.input(0).dtype) && ctx.input(0).dim() >= 2,
            "takes floating matrices; cast the inputs");
}

int64_t size_from_end(const TensorMeta& meta, int64_t i) {
  return meta.shape[meta.dim() - i];
}

void infer_cdist(InferContext& ctx) {
  check_first(ctx);
  ctx.check(ctx.input(1).dim() == ctx.input(0).dim(), "inputs must have as many dims");
  check_rows(ctx, 1, size_from_end(ctx.input(1), 2), size_from_end(ctx.input(0), 1));
  Shape y = ctx.input(0).shape;
  y[y.size() - 1] = size_from_end(ctx.input(1), 2);
  ctx.add_output(y, ctx.input(0).dtype);
}

// All pairs of rows are independent.
void sbp_cdist(SbpContext& ctx) {
  using sbp::broadcast, sbp::split;
  const int64_t leading = num_leading(ctx);
  for (int64_t i = 0; i < leading; ++i)
    ctx.add({split(i), split(i)}, {split(i)});
  ctx.add({split(leading), broadcast}, {split(leading)});
  ctx.add({broadcast, split(leading)}, {split(leading + 1)});
}

Tensor sum_differences(const Tensor& w, const Tensor& a, const Tensor& b) {
  return dispatch(kSumDifferences, {&w, &a, &b}, Site::here());
}

// With w = dy / d, and 0 where d is: da[i] = sum_j w[i][j] (a[i] - b[j]), and so with b.
void grad_cdist(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor a = ctx.input(0), b = ctx.input(1), d = ctx.output();
  const Tensor w = masked_fill(div(ctx.dy(), d), eq(d, 0), 0);
  if (ctx.needs(0)) ctx.set(0, sum_differences(w, a, b));
  if (ctx.needs(1)) ctx.set(1, sum_differences(transpose(w, -1, -2), b, a));
}

void infer_differences(InferContext& ctx) {
  check_first(ctx);
  ctx.check(ctx.input(1).dim() == ctx.input(0).dim(), "inputs must have as many dims");
  const int64_t columns = size_from_end(ctx.input(1), 1);
  check_rows(ctx, 1, size_from_end(ctx.input(0), 2), columns);
  check_rows(ctx, 2, size_from_end(ctx.input(0), 1), columns);
  ctx.add_output_like(1);
}

// Rows of y and their elements are independent; rows of b are summed. The result is linear in w,
// and in a and b together.
void sbp_differences(SbpContext& ctx) {
  using sbp::broadcast, sbp::partial_sum, sbp::split;
  const int64_t rows = num_leading(ctx);
  const int64_t columns = rows + 1;
  for (int64_t i = 0; i < rows; ++i)
    ctx.add({split(i), split(i), split(i)}, {split(i)});
  ctx.add({split(rows), split(rows), broadcast}, {split(rows)});
  ctx.add({split(columns), broadcast, split(rows)}, {partial_sum});
  ctx.add({broadcast, split(columns), split(columns)}, {split(columns)});
  ctx.add({partial_sum, broadcast, broadcast}, {partial_sum});
  ctx.add({broadcast, partial_sum, partial_sum}, {partial_sum});
}

// dw[i][j] = u[i] (a[i] - b[j]),  da[i] = u[i] sum_j w[i][j],  db[j] = -sum_i w[i][j] u[i]
void grad_differences(GradContext& ctx) {
  const Tensor& u = ctx.dy();
  if (!u.defined()) return;
  const Tensor w = ctx.input(0), a = ctx.input(1), b = ctx.input(2);
  if (ctx.needs(0)) {
    const Tensor own = sum(mul(u, a), -1, {.keepdim = true});
    ctx.set(0, sub(own, matmul(u, transpose(b, -1, -2))));
  }
  if (ctx.needs(1)) ctx.set(1, mul(u, sum(w, -1, {.keepdim = true})));
  if (ctx.needs(2)) ctx.set(2, neg(matmul(transpose(w, -1, -2), u)));
}

// Three operations for each element of each pair.
Cost cost_cdist(const SbpContext& ctx) {
  return {.flops = 3.0 * static_cast<double>(ctx.output(0).shape.numel()) *
                   static_cast<double>(size_from_end(ctx.input(0), 1))};
}

Cost cost_differences(const SbpContext& ctx) {
  return {.flops = 3.0 * static_cast<double>(ctx.input(0).numel) *
                   static_cast<double>(size_from_end(ctx.input(1), 1))};
}

}  // namespace

const OpDef kCdist{.name = "cdist",
                   .num_inputs = 2,
                   .infer = infer_cdist,
                   .sbp = sbp_cdist,
                   .grad = grad_cdist,
                   .cost = cost_cdist,
                   .saved_inputs = 0b11,
                   .saved_outputs = 0b1,
                   .autocast = AutocastRule::kFloat32};

const OpDef kSumDifferences{.name = "sum_differences",
                            .num_inputs = 3,
                            .infer = infer_differences,
                            .sbp = sbp_differences,
                            .grad = grad_differences,
                            .cost = cost_differences,
                            .saved_inputs = 0b111};

void register_distance(OpTable& table);

void register_distance(OpTable& table) {
  table.add(kCdist);
  table.add(kSumDifferences);
}

}  // namespace flow::ops
