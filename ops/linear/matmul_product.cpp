#include "ops/linear/matmul_product.h"

#include <algorithm>

namespace flow::ops {

namespace {

// Strides of the batch dims of `meta` (all but the last two), aligned from the right to those of
// the output.
Strides batch_strides(const TensorMeta& meta, const Shape& batch) {
  Strides strides;
  const int64_t own = std::max<int64_t>(meta.local_shape.size() - 2, 0);
  for (int64_t i = 0; i < batch.size(); ++i) {
    const int64_t dim = i - (batch.size() - own);
    const bool repeats = dim < 0 || (meta.local_shape[dim] == 1 && batch[i] != 1);
    strides.push_back(repeats ? 0 : meta.strides[dim]);
  }
  return strides;
}

}  // namespace

MatrixProduct matmul_product(const KernelQuery& query) {
  const TensorMeta& a = query.input(0);
  const TensorMeta& b = query.input(1);
  const Shape& out = query.output(0).local_shape;
  const int64_t a_dims = a.local_shape.size();
  const int64_t b_dims = b.local_shape.size();
  const int64_t num_batch = out.size() - (a_dims > 1 ? 1 : 0) - (b_dims > 1 ? 1 : 0);
  MatrixProduct product;
  for (int64_t i = 0; i < num_batch; ++i)
    product.batch.push_back(out[i]);
  product.k = a.local_shape.back();
  product.a = {batch_strides(a, product.batch), 0, a.strides.back()};
  product.b = {batch_strides(b, product.batch), b.strides[std::max<int64_t>(b_dims - 2, 0)], 0};
  if (a_dims > 1) {
    product.m = a.local_shape[a_dims - 2];
    product.a.row = a.strides[a_dims - 2];
  }
  if (b_dims > 1) {
    product.n = b.local_shape.back();
    product.b.column = b.strides.back();
  }
  return product;
}

MatrixProduct linear_product(const KernelQuery& query) {
  const TensorMeta& x = query.input(0);
  const TensorMeta& weight = query.input(1);
  const int64_t last = x.local_shape.size() - 1;
  MatrixProduct product;
  product.k = x.local_shape[last];
  product.n = weight.local_shape[0];
  product.a.column = x.strides[last];
  if (last > 0) {
    product.m = x.local_shape[last - 1];
    product.a.row = x.strides[last - 1];
  }
  for (int64_t i = 0; i < last - 1; ++i) {
    product.batch.push_back(x.local_shape[i]);
    product.a.batch.push_back(x.strides[i]);
    product.b.batch.push_back(0);
  }
  product.b.row = weight.strides[1];
  product.b.column = weight.strides[0];
  if (query.has_input(2)) product.bias_stride = query.input(2).strides[0];
  return product;
}

bool collapse(const Shape& shape, const Strides& strides, int64_t num_dims, int64_t& count,
              int64_t& stride) {
  count = 1;
  stride = 0;
  for (int64_t i = num_dims - 1; i >= 0; --i) {
    if (shape[i] == 1) continue;
    if (count != 1 && strides[i] != stride * count) return false;
    if (count == 1) stride = strides[i];
    count *= shape[i];
  }
  return true;
}

}  // namespace flow::ops
