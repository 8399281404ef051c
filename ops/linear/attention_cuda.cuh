// What the CUDA kernels of attention share: where their operands are, and which keys a query sees.
#pragma once

#include "ops/kernel/rows_cuda.cuh"
#include "ops/linear/attention_op.h"

namespace flow::ops {

// Rows of the matrices of a batch, anywhere in memory.
template <class T>
struct Matrices {
  T* data;
  Places batch;
  int64_t row_stride;
  int64_t column_stride;
  int64_t width;

  explicit Matrices(const TensorView& view) : data(view.as<T>()) {
    Shape size = view.shape();
    Strides strides = view.strides();
    const int64_t rows = size.size() - 2;
    width = size[rows + 1];
    row_stride = strides[rows];
    column_stride = strides[rows + 1];
    for (int i = 0; i < 2; ++i) {
      size.erase(rows);
      strides.erase(rows);
    }
    batch = Places(size, strides);
  }

  __device__ T* matrix(int64_t b) const { return data + batch(b); }
};

// The sizes of the local parts, and their offsets among the logical queries and keys.
struct AttentionSizes {
  int64_t batch = 1;
  int64_t queries = 0;
  int64_t keys = 0;
  int64_t first_query = 0;
  int64_t first_key = 0;
  bool is_causal = false;
  double scale = 1;

  AttentionSizes(const TensorMeta& q, const TensorMeta& k, const AttentionAttrs& attrs)
      : is_causal(attrs.is_causal), scale(attrs.scale) {
    const int64_t rows = q.dim() - 2;
    queries = q.local_shape[rows];
    keys = k.local_shape[rows];
    first_query = q.local_begin[rows];
    first_key = k.local_begin[rows];
    for (int64_t i = 0; i < rows; ++i)
      batch *= q.local_shape[i];
  }

  // The number of keys of this part that query `row` of this part sees.
  __device__ int64_t visible_keys(int64_t row) const {
    if (!is_causal) return keys;
    const int64_t seen = first_query + row + 1 - first_key;
    return seen < 0 ? 0 : seen < keys ? seen : keys;
  }

  // The first query that sees key `row`.
  __device__ int64_t first_seeing(int64_t row) const {
    if (!is_causal) return 0;
    const int64_t first = first_key + row - first_query;
    return first < 0 ? 0 : first;
  }
};

}  // namespace flow::ops
