// Copies between a diagonal and its matrix on CUDA devices. Each rank copies its share and writes
// zeros elsewhere.
#include "ops/kernel/box_copy_cuda.cuh"
#include "ops/shape/diagonal_op.h"

namespace flow::ops {

void register_diagonal_cuda(KernelTable& table);

namespace {

// Copies every element of the diagonal that both tensors hold: along it, rows and columns advance
// together, so it is a box with the sum of their strides.
template <bool kToMatrix, class Attrs>
void copy_diagonal(const KernelContext& ctx, const TensorView& target, const TensorView& source,
                   const Attrs& attrs) {
  const TensorView& matrix = kToMatrix ? target : source;
  const TensorView& line = kToMatrix ? source : target;
  const auto bytes = static_cast<int64_t>(dtype_size(target.meta->dtype));
  const int64_t last = line.shape().size() - 1;
  const Range rows = local_range(*matrix.meta, attrs.dim1);
  const Range columns = local_range(*matrix.meta, attrs.dim2);
  const Range positions = local_range(*line.meta, last);
  const int64_t row_shift = std::max<int64_t>(0, -attrs.offset) - rows.begin;
  const int64_t column_shift = std::max<int64_t>(0, attrs.offset) - columns.begin;
  const int64_t begin = std::max({positions.begin, -row_shift, -column_shift});
  const int64_t end = std::min(
      {positions.begin + positions.size, rows.size - row_shift, columns.size - column_shift});
  if (end <= begin) return;
  Shape size = line.shape();
  size[last] = end - begin;
  Strides in_matrix;
  for (int64_t i = 0; i < matrix.shape().size(); ++i) {
    if (i != attrs.dim1 && i != attrs.dim2) in_matrix.push_back(matrix.strides()[i]);
  }
  const int64_t row_stride = matrix.strides()[attrs.dim1];
  const int64_t column_stride = matrix.strides()[attrs.dim2];
  in_matrix.push_back(row_stride + column_stride);
  std::byte* const on_line = line.data + (begin - positions.begin) * line.strides()[last] * bytes;
  std::byte* const on_matrix =
      matrix.data +
      ((begin + row_shift) * row_stride + (begin + column_shift) * column_stride) * bytes;
  copy_box(ctx, size, {kToMatrix ? on_matrix : on_line, kToMatrix ? in_matrix : line.strides()},
           {kToMatrix ? on_line : on_matrix, kToMatrix ? line.strides() : in_matrix},
           target.meta->dtype);
}

void diagonal(const KernelContext& ctx) {
  zero_part(ctx, ctx.out(0));
  copy_diagonal<false>(ctx, ctx.out(0), ctx.in(0), ctx.attrs_as<DiagonalAttrs>());
}

void undiagonal(const KernelContext& ctx) {
  zero_part(ctx, ctx.out(0));
  copy_diagonal<true>(ctx, ctx.out(0), ctx.in(0), ctx.attrs_as<UndiagonalAttrs>());
}

void diagonal_scatter(const KernelContext& ctx) {
  copy_part(ctx, ctx.out(0), ctx.in(0));
  copy_diagonal<true>(ctx, ctx.out(0), ctx.in(1), ctx.attrs_as<DiagonalAttrs>());
}

}  // namespace

void register_diagonal_cuda(KernelTable& table) {
  table.add(kDiagonal, DeviceType::kCuda, {"cuda", always<diagonal>});
  table.add(kUndiagonal, DeviceType::kCuda, {"cuda", always<undiagonal>});
  table.add(kDiagonalScatter, DeviceType::kCuda, {"cuda", always<diagonal_scatter>});
}

}  // namespace flow::ops
