// Reads rows by index on CUDA devices (one copy per row) and sums rows in the order of the indices.
#include "ops/index/embedding_op.h"
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/kernel/fault_cuda.cuh"
#include "ops/kernel/segments_cuda.cuh"

namespace flow::ops {

void register_embedding_cuda(KernelTable& table);

namespace {

// The rows that indices name, counted in the local part; -1 for rows that another rank holds and
// for rows that do not exist, which are reported.
struct LocalRows {
  const int32_t* narrow;
  const int64_t* wide;
  int64_t num_rows;
  int64_t first;
  int64_t held;
  FaultReport fault;

  LocalRows(const KernelContext& ctx, const DenseInput& indices, int64_t rows, Range local)
      : narrow(nullptr),
        wide(nullptr),
        num_rows(rows),
        first(local.begin),
        held(local.size),
        fault(fault_report(ctx, "embedding", 0, rows - 1)) {
    if (ctx.in(0).meta->dtype == DType::kInt32) {
      narrow = indices.as<int32_t>();
    } else {
      wide = indices.as<int64_t>();
    }
  }

  __device__ int64_t index(int64_t i) const { return narrow != nullptr ? narrow[i] : wide[i]; }

  __device__ int64_t operator()(int64_t i) const {
    const int64_t row = index(i);
    if (row < 0 || row >= num_rows) {
      fault.raise(row);
      return -1;
    }
    return row >= first && row < first + held ? row - first : -1;
  }
};

template <class T>
struct Embed {
  LocalRows rows;
  const T* weight;
  int64_t row_stride;
  int64_t column_stride;
  T* y;
  int64_t columns;

  __device__ void operator()(int64_t i) const {
    const auto [n, column] = divide(i, columns);
    const int64_t row = rows(n);
    y[i] = row < 0 ? T{0} : weight[row * row_stride + column * column_stride];
  }
};

void embed(const KernelContext& ctx) {
  const TensorView& weight = ctx.in(1);
  const DenseInput indices(ctx, 0);
  const LocalRows rows(ctx, indices, weight.meta->shape[0], local_range(*weight.meta, 0));
  dispatch_size(weight.meta->dtype, [&]<class T>() {
    for_each_element(ctx, ctx.out(0).numel(),
                     Embed<T>{rows, weight.as<T>(), weight.strides()[0], weight.strides()[1],
                              ctx.out(0).as<T>(), weight.shape()[1]});
  });
}

struct PlaceRows {
  LocalRows rows;
  PlacedValue* entries;
  int64_t columns;
  int64_t padding_idx;

  __device__ void operator()(int64_t i) const {
    const int64_t row = rows(i);
    const bool counts = row >= 0 && rows.index(i) != padding_idx;
    entries[i] = {counts ? row * columns : -1, i};
  }
};

void embed_backward(const KernelContext& ctx) {
  const auto& attrs = ctx.attrs_as<EmbeddingBackwardAttrs>();
  const TensorView& dweight = ctx.out(0);
  const DenseInput indices(ctx, 0);
  const DenseInput dy(ctx, 1);
  const int64_t columns = dweight.shape()[1];
  const int64_t count = ctx.in(0).numel();
  zero_part(ctx, dweight);
  if (count == 0 || dweight.numel() == 0) return;
  const LocalRows rows(ctx, indices, attrs.num_rows, local_range(*dweight.meta, 0));
  const SortedPlaces places(ctx, count, [&](PlacedValue* entries) {
    for_each_element(ctx, count, PlaceRows{rows, entries, columns, attrs.padding_idx});
  });
  dispatch_floating(dweight.meta->dtype, [&]<class T>() {
    join_segments<AddValues>(
        ctx, Segments<T>{places.view(), columns, dy.as<T>(), nullptr, dense_places(columns),
                         dweight.as<T>(), dense_places(columns)});
  });
}

}  // namespace

void register_embedding_cuda(KernelTable& table) {
  table.add(kEmbedding, DeviceType::kCuda, {"cuda", always<embed>});
  table.add(kEmbeddingBackward, DeviceType::kCuda, {"cuda", always<embed_backward>});
}

}  // namespace flow::ops
