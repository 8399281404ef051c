// Copies between a diagonal and its matrix. Each rank copies its share and writes zeros elsewhere.
#include <algorithm>

#include "core/kernel.h"
#include "ops/kernel/box_copy.h"
#include "ops/shape/diagonal_op.h"

#include "ops/kernel/isa_begin.h"

void register_diagonal_cpu(KernelTable& table);

#if FLOW_ISA == 0

namespace {

// Copies every element of the diagonal that both tensors hold.
template <bool kToMatrix, class Attrs>
void copy_diagonal(const TensorView& target, const TensorView& source, const Attrs& attrs) {
  const TensorView& matrix = kToMatrix ? target : source;
  const TensorView& line = kToMatrix ? source : target;
  const auto bytes = static_cast<int64_t>(dtype_size(target.meta->dtype));
  const int64_t last = line.shape().size() - 1;
  Shape size = line.shape();
  size.erase(last);
  Strides in_line = line.strides();
  in_line.erase(last);
  Strides in_matrix;
  for (int64_t i = 0; i < matrix.shape().size(); ++i) {
    if (i != attrs.dim1 && i != attrs.dim2) in_matrix.push_back(matrix.strides()[i]);
  }
  const Range rows = local_range(*matrix.meta, attrs.dim1);
  const Range columns = local_range(*matrix.meta, attrs.dim2);
  const Range positions = local_range(*line.meta, last);
  for (int64_t k = 0; k < positions.size; ++k) {
    const int64_t position = positions.begin + k;
    const int64_t row = position + std::max<int64_t>(0, -attrs.offset) - rows.begin;
    const int64_t column = position + std::max<int64_t>(0, attrs.offset) - columns.begin;
    if (row < 0 || row >= rows.size || column < 0 || column >= columns.size) continue;
    std::byte* on_line = line.data + k * line.strides()[last] * bytes;
    std::byte* on_matrix =
        matrix.data +
        (row * matrix.strides()[attrs.dim1] + column * matrix.strides()[attrs.dim2]) * bytes;
    copy_box(size, {kToMatrix ? on_matrix : on_line, kToMatrix ? in_matrix : in_line},
             {kToMatrix ? on_line : on_matrix, kToMatrix ? in_line : in_matrix},
             static_cast<size_t>(bytes));
  }
}

void diagonal(const KernelContext& ctx) {
  zero_part(ctx.out(0));
  copy_diagonal<false>(ctx.out(0), ctx.in(0), ctx.attrs_as<DiagonalAttrs>());
}

void undiagonal(const KernelContext& ctx) {
  zero_part(ctx.out(0));
  copy_diagonal<true>(ctx.out(0), ctx.in(0), ctx.attrs_as<UndiagonalAttrs>());
}

void diagonal_scatter(const KernelContext& ctx) {
  copy_part(ctx.out(0), ctx.in(0));
  copy_diagonal<true>(ctx.out(0), ctx.in(1), ctx.attrs_as<DiagonalAttrs>());
}

}  // namespace

void register_diagonal_cpu(KernelTable& table) {
  table.add(kDiagonal, DeviceType::kCpu, {"reference", always<diagonal>});
  table.add(kUndiagonal, DeviceType::kCpu, {"reference", always<undiagonal>});
  table.add(kDiagonalScatter, DeviceType::kCpu, {"reference", always<diagonal_scatter>});
}

#else

void register_diagonal_cpu(KernelTable& /*table*/) {}

#endif

#include "ops/kernel/isa_end.h"
