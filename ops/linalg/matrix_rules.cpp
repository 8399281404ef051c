#include "ops/linalg/matrix_rules.h"

#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow::ops {

void check_matrices(const OpContext& ctx, int i) {
  const TensorMeta& x = ctx.input(i);
  ctx.check(x.dtype == DType::kFloat32 || x.dtype == DType::kFloat64,
            "takes matrices of float32 or float64; cast the input");
  ctx.check(x.dim() >= 2, "takes matrices of at least two dims; reshape the input");
}

void check_square(const OpContext& ctx, int i) {
  check_matrices(ctx, i);
  const Shape& shape = ctx.input(i).shape;
  ctx.check(size_from_end(shape, 0) == size_from_end(shape, 1),
            "takes square matrices; the last two dims are ", size_from_end(shape, 1), " and ",
            size_from_end(shape, 0));
}

void check_right_side(const OpContext& ctx) {
  check_matrices(ctx, 1);
  const TensorMeta& a = ctx.input(0);
  const TensorMeta& b = ctx.input(1);
  ctx.check(a.dtype == b.dtype, "operands have different dtypes, ", a.dtype, " and ", b.dtype,
            "; cast one of them");
  ctx.check(size_from_end(b.shape, 1) == size_from_end(a.shape, 0),
            "the right-hand sides must have ", size_from_end(a.shape, 0), " rows");
  ctx.check(leading_dims(a.shape, 2) == leading_dims(b.shape, 2), "batches must be equal");
}

int64_t size_from_end(const Shape& shape, int64_t from_end) {
  return shape[shape.size() - 1 - from_end];
}

Shape leading_dims(const Shape& shape, int64_t count) {
  Shape leading;
  for (int64_t i = 0; i + count < shape.size(); ++i)
    leading.push_back(shape[i]);
  return leading;
}

Shape matrix_shape(const Shape& batch, int64_t rows, int64_t columns) {
  Shape shape = batch;
  shape.push_back(rows);
  shape.push_back(columns);
  return shape;
}

void batch_sbp(SbpContext& ctx, int64_t core) {
  const auto num_inputs = static_cast<size_t>(ctx.num_inputs());
  const auto num_outputs = static_cast<size_t>(ctx.num_outputs());
  for (int64_t i = 0; i + core < ctx.input(0).dim(); ++i)
    ctx.add(std::vector<Sbp>(num_inputs, sbp::split(i)),
            std::vector<Sbp>(num_outputs, sbp::split(i)));
}

void system_sbp(SbpContext& ctx) {
  batch_sbp(ctx);
  const int64_t columns = ctx.input(1).dim() - 1;
  ctx.add({sbp::broadcast, sbp::split(columns)}, {sbp::split(columns)});
  ctx.add({sbp::broadcast, sbp::partial_sum}, {sbp::partial_sum});
}

Tensor transposed(const Tensor& x) {
  return transpose(x, -1, -2);
}

Tensor with_batch(const TensorArg& x, const Shape& batch) {
  const Shape& own = x->shape();
  return expand(x, matrix_shape(batch, size_from_end(own, 1), size_from_end(own, 0)));
}

Tensor identity_like(const Tensor& x, int64_t rows, int64_t columns) {
  return eye(rows, columns, whole_like(x));
}

Tensor counting_like(const Tensor& x, int64_t n, DType dtype) {
  return arange(n, whole_like(x, dtype));
}

Tensor lower_half(const Tensor& x) {
  return mul(add(tril(x), tril(x, -1)), 0.5);
}

}  // namespace flow::ops
