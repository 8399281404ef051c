#include "ops/linalg/matrix_loop.h"

#include "core/error.h"

namespace flow::ops {

MatrixState matrix_state(const KernelQuery& query) {
  const Shape& a = query.input(0).local_shape;
  MatrixState state;
  for (int64_t i = 0; i + 2 < a.size(); ++i)
    state.batch *= a[i];
  state.rows = a[a.size() - 2];
  state.columns = a[a.size() - 1];
  if (query.has_input(1)) state.sides = query.input(1).local_shape.back();
  return state;
}

int64_t line_offset(const TensorView& view, int64_t line) {
  int64_t offset = 0;
  for (int64_t d = view.shape().size() - 1; d-- > 0;) {
    offset += line % view.shape()[d] * view.strides()[d];
    line /= view.shape()[d];
  }
  return offset;
}

void refuse_matrix(const KernelContext& ctx, const char* op, int64_t position,
                   const std::string& text) {
  const TensorMeta& meta = *ctx.in(0).meta;
  const int64_t batch_dims = meta.dim() - 2;
  Shape index = Shape::filled(batch_dims, 0);
  for (int64_t d = batch_dims; d-- > 0;) {
    index[d] = position % meta.local_shape[d] + (meta.is_global() ? meta.local_begin[d] : 0);
    position /= meta.local_shape[d];
  }
  std::string which = "the matrix ";
  if (batch_dims == 1) which = str("matrix ", index[0], " of the batch ");
  if (batch_dims > 1) which = str("matrix ", index, " of the batch ");
  throw InvalidArgument(str("[", op, "] ", which, text), ctx.site);
}

bool fits_lapack(const KernelQuery& query) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const MatrixState state = matrix_state(query);
  // The workspace of a decomposition, in elements, is also an int.
  const int64_t least = std::min(state.rows, state.columns);
  if (4 * least * least + 64 * (state.rows + state.columns + 1) > kMost) return false;
  return state.rows <= kMost && state.columns <= kMost && state.sides <= kMost;
}

}  // namespace flow::ops
