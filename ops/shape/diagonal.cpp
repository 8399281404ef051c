#include "ops/shape/diagonal.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/diagonal_op.h"
#include "ops/shape/view_op.h"

namespace flow {

namespace ops {

namespace {

// The number of elements on the diagonal of (size1, size2).
int64_t diagonal_length(int64_t size1, int64_t size2, int64_t offset) {
  return std::max<int64_t>(
      0, std::min(size1 + std::min<int64_t>(offset, 0), size2 - std::max<int64_t>(offset, 0)));
}

// The dims other than dim1 and dim2, in order.
template <class Attrs>
Shape other_dims(int64_t ndim, const Attrs& attrs) {
  Shape dims;
  for (int64_t i = 0; i < ndim; ++i) {
    if (i != attrs.dim1 && i != attrs.dim2) dims.push_back(i);
  }
  return dims;
}

Shape diagonal_shape(const Shape& x, const DiagonalAttrs& attrs) {
  Shape shape;
  for (const int64_t dim : other_dims(x.size(), attrs))
    shape.push_back(x[dim]);
  shape.push_back(diagonal_length(x[attrs.dim1], x[attrs.dim2], attrs.offset));
  return shape;
}

void infer_diagonal(InferContext& ctx) {
  const Shape shape = diagonal_shape(ctx.input(0).shape, ctx.attrs<DiagonalAttrs>());
  ctx.add_output(shape, ctx.input(0).dtype);
}

void infer_undiagonal(InferContext& ctx) {
  const auto& attrs = ctx.attrs<UndiagonalAttrs>();
  const Shape& x = ctx.input(0).shape;
  Shape shape = Shape::filled(x.size() + 1, 0);
  int64_t next = 0;
  for (const int64_t dim : other_dims(shape.size(), attrs))
    shape[dim] = x[next++];
  shape[attrs.dim1] = attrs.size1;
  shape[attrs.dim2] = attrs.size2;
  ctx.check(x.back() == diagonal_length(attrs.size1, attrs.size2, attrs.offset),
            "the last dim does not fit the diagonal; give one of its length");
  ctx.add_output(shape, ctx.input(0).dtype);
}

void infer_diagonal_scatter(InferContext& ctx) {
  const Shape shape = diagonal_shape(ctx.input(0).shape, ctx.attrs<DiagonalAttrs>());
  ctx.check(ctx.input(1).shape == shape, "takes a source of the shape of the diagonal, ", shape);
  ctx.check(ctx.input(1).dtype == ctx.input(0).dtype, "takes a source of the same dtype; cast it");
  ctx.add_output_like(0);
}

// Returns true if splitting a dim of `size` elements and its `length` elements from `shift` on into
// balanced parts puts the boundaries at the same elements.
bool cuts_alike(int64_t size, int64_t shift, int64_t length, int64_t parts) {
  if (shift == 0 && size == length) return true;
  for (int64_t part = 0; part < parts; ++part) {
    const Range in_dim = balanced_part(size, parts, part);
    const Range in_line = balanced_part(length, parts, part);
    const int64_t begin = std::clamp<int64_t>(in_dim.begin - shift, 0, length);
    const int64_t end = std::clamp<int64_t>(in_dim.begin + in_dim.size - shift, 0, length);
    if (end - begin != in_line.size || (end > begin && begin != in_line.begin)) return false;
  }
  return parts > 0;
}

// The dims of a matrix that may be split in the same way as its diagonal of `length` elements.
template <class Attrs>
std::vector<int64_t> dims_cut_alike(const Shape& matrix, int64_t length, const Attrs& attrs,
                                    int64_t parts) {
  std::vector<int64_t> dims;
  const int64_t below = std::max<int64_t>(0, -attrs.offset);
  const int64_t above = std::max<int64_t>(0, attrs.offset);
  if (cuts_alike(matrix[attrs.dim1], below, length, parts)) dims.push_back(attrs.dim1);
  if (cuts_alike(matrix[attrs.dim2], above, length, parts)) dims.push_back(attrs.dim2);
  return dims;
}

// A rank that holds part of the matrix fills in its part of the diagonal and zeros elsewhere.
void sbp_diagonal(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<DiagonalAttrs>();
  int64_t next = 0;
  for (const int64_t dim : other_dims(ctx.input(0).dim(), attrs))
    ctx.add({sbp::split(dim)}, {sbp::split(next++)});
  for (const int64_t dim : {attrs.dim1, attrs.dim2})
    ctx.add_positional({sbp::split(dim)}, {sbp::partial_sum});
  const int64_t length = ctx.output(0).shape.back();
  for (const int64_t dim : dims_cut_alike(ctx.input(0).shape, length, attrs, ctx.num_ranks()))
    ctx.add_positional({sbp::split(dim)}, {sbp::split(next)});
  add_all_partials(ctx);
}

// The dual: a whole diagonal gives each rank its part of the matrix.
void sbp_undiagonal(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<UndiagonalAttrs>();
  const int64_t ndim = ctx.output(0).shape.size();
  int64_t next = 0;
  for (const int64_t dim : other_dims(ndim, attrs))
    ctx.add({sbp::split(next++)}, {sbp::split(dim)});
  for (const int64_t dim : {attrs.dim1, attrs.dim2})
    ctx.add_positional({sbp::broadcast}, {sbp::split(dim)});
  ctx.add_positional({sbp::split(next)}, {sbp::partial_sum});
  const int64_t length = ctx.input(0).shape.back();
  for (const int64_t dim : dims_cut_alike(ctx.output(0).shape, length, attrs, ctx.num_ranks()))
    ctx.add_positional({sbp::split(next)}, {sbp::split(dim)});
  add_all_partials(ctx);
}

// Every rank has the whole source and uses the elements that belong to its part of the matrix.
void sbp_diagonal_scatter(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<DiagonalAttrs>();
  int64_t next = 0;
  for (const int64_t dim : other_dims(ctx.input(0).dim(), attrs))
    ctx.add({sbp::split(dim), sbp::split(next++)}, {sbp::split(dim)});
  for (const int64_t dim : {attrs.dim1, attrs.dim2})
    ctx.add_positional({sbp::split(dim), sbp::broadcast}, {sbp::split(dim)});
  const int64_t length = ctx.input(1).shape.back();
  for (const int64_t dim : dims_cut_alike(ctx.input(0).shape, length, attrs, ctx.num_ranks()))
    ctx.add_positional({sbp::split(dim), sbp::split(next)}, {sbp::split(dim)});
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, partial}, {partial});
}

// dx = dy on the diagonal, and 0 elsewhere.
void grad_diagonal(GradContext& ctx) {
  const auto& attrs = ctx.attrs<DiagonalAttrs>();
  const Shape& x = ctx.input_meta(0)->shape;
  const UndiagonalAttrs inverse{attrs.offset, attrs.dim1, attrs.dim2, x[attrs.dim1], x[attrs.dim2]};
  ctx.set(0, dispatch(kUndiagonal, {&ctx.dy()}, inverse, Site::here()));
}

// dsource is the diagonal of dy; dx = dy elsewhere.
void grad_diagonal_scatter(GradContext& ctx) {
  const auto& attrs = ctx.attrs<DiagonalAttrs>();
  const Tensor written = diagonal(ctx.dy(), attrs.offset, attrs.dim1, attrs.dim2);
  if (ctx.needs(0)) {
    const Tensor nothing = zeros_like(written);
    ctx.set(0, dispatch(kDiagonalScatter, {&ctx.dy(), &nothing}, attrs, Site::here()));
  }
  if (ctx.needs(1)) ctx.set(1, written);
}

// dx is the diagonal of dy.
void grad_undiagonal(GradContext& ctx) {
  const auto& attrs = ctx.attrs<UndiagonalAttrs>();
  ctx.set(0, diagonal(ctx.dy(), attrs.offset, attrs.dim1, attrs.dim2));
}

bool view_diagonal(const TensorMeta& input, const Shape& output, const void* attrs,
                   ViewSpec& view) {
  const auto& diagonal = *static_cast<const DiagonalAttrs*>(attrs);
  if (!input.is_held) {
    view = {contiguous_strides(output), 0};
    return true;
  }
  for (const int64_t dim : other_dims(input.dim(), diagonal))
    view.strides.push_back(input.strides[dim]);
  view.strides.push_back(input.strides[diagonal.dim1] + input.strides[diagonal.dim2]);
  if (output.numel() > 0) {
    view.offset = diagonal.offset >= 0 ? diagonal.offset * input.strides[diagonal.dim2]
                                       : -diagonal.offset * input.strides[diagonal.dim1];
  }
  const auto holds_whole = [&](int64_t dim) { return input.local_shape[dim] == input.shape[dim]; };
  return holds_whole(diagonal.dim1) && holds_whole(diagonal.dim2);
}

void write_back_diagonal(const Tensor& base, const Tensor& part, const void* attrs, Site site) {
  dispatch_in_place(kDiagonalScatter, {&base, &part}, attrs, site);
}

}  // namespace

const OpDef kDiagonal{.name = "diagonal",
                      .attrs = attrs_def<DiagonalAttrs>(),
                      .infer = infer_diagonal,
                      .sbp = sbp_diagonal,
                      .grad = grad_diagonal,
                      .view = view_diagonal,
                      .write_back = write_back_diagonal};
const OpDef kUndiagonal{.name = "undiagonal",
                        .attrs = attrs_def<UndiagonalAttrs>(),
                        .infer = infer_undiagonal,
                        .sbp = sbp_undiagonal,
                        .grad = grad_undiagonal};

const OpDef kDiagonalScatter{.name = "diagonal_scatter",
                             .num_inputs = 2,
                             .attrs = attrs_def<DiagonalAttrs>(),
                             .infer = infer_diagonal_scatter,
                             .sbp = sbp_diagonal_scatter,
                             .grad = grad_diagonal_scatter,
                             .allows_in_place = true};

void register_diagonal(OpTable& table) {
  for (const OpDef* op : {&kDiagonal, &kUndiagonal, &kDiagonalScatter})
    table.add(*op);
}

}  // namespace ops

namespace {

void check_dims(const char* op, const TensorArg& x, int64_t dim1, int64_t dim2, bool is_valid) {
  if (is_valid) return;
  throw InvalidArgument(str("[", op, "] dims ", dim1, " and ", dim2,
                            " must be two different dims; received a tensor of shape ", x->shape()),
                        x.site());
}

ops::DiagonalAttrs parse_diagonal(const TensorArg& x, int64_t offset, int64_t dim1, int64_t dim2,
                                  const char* op) {
  check_dims(op, x, dim1, dim2, x->dim() >= 2);
  const ops::DiagonalAttrs attrs{offset, normalize_dim(dim1, x->dim(), op),
                                 normalize_dim(dim2, x->dim(), op)};
  check_dims(op, x, dim1, dim2, attrs.dim1 != attrs.dim2);
  return attrs;
}

}  // namespace

Tensor diagonal(const TensorArg& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return ops::located(x.site(), [&] {
    const ops::DiagonalAttrs attrs = parse_diagonal(x, offset, dim1, dim2, "diagonal");
    return dispatch(ops::kDiagonal, {&x.tensor()}, attrs, x.site());
  });
}

Tensor diagonal_scatter(const TensorArg& x, const TensorArg& source, int64_t offset, int64_t dim1,
                        int64_t dim2) {
  return ops::located(x.site(), [&] {
    const ops::DiagonalAttrs attrs = parse_diagonal(x, offset, dim1, dim2, "diagonal_scatter");
    return dispatch(ops::kDiagonalScatter, {&x.tensor(), &source.tensor()}, attrs, x.site());
  });
}

Tensor diag_embed(const TensorArg& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return ops::located(x.site(), [&]() -> Tensor {
    check_dims("diag_embed", x, dim1, dim2, x->dim() >= 1);
    const int64_t size = x->shape().back() + std::abs(offset);
    const ops::UndiagonalAttrs attrs{offset, normalize_dim(dim1, x->dim() + 1, "diag_embed"),
                                     normalize_dim(dim2, x->dim() + 1, "diag_embed"), size, size};
    check_dims("diag_embed", x, dim1, dim2, attrs.dim1 != attrs.dim2);
    return dispatch(ops::kUndiagonal, {&x.tensor()}, attrs, x.site());
  });
}

Tensor diag(const TensorArg& x, int64_t diagonal) {
  if (x->dim() == 1) return diag_embed(x, diagonal);
  if (x->dim() == 2) return flow::diagonal(x, diagonal);
  throw InvalidArgument(
      str("[diag] takes a vector or a matrix; received ", x->meta(), "; use diagonal(x)"),
      x.site());
}

Tensor trace(const TensorArg& x) {
  if (x->dim() != 2) {
    throw InvalidArgument(
        str("[trace] takes a matrix; received ", x->meta(), "; use sum(diagonal(x), -1)"),
        x.site());
  }
  return sum({flow::diagonal(x), x.site()});
}

Tensor IndexMethods::diagonal_scatter(const TensorArg& source, int64_t offset, int64_t dim1,
                                      int64_t dim2) const {
  return flow::diagonal_scatter(TensorArg(self(), source.site()), source, offset, dim1, dim2);
}

Tensor ReduceMethods::trace(Site site) const {
  return flow::trace(TensorArg(self(), site));
}

Tensor ShapeMethods::diagonal(int64_t offset, int64_t dim1, int64_t dim2, Site site) const {
  return flow::diagonal(TensorArg(self(), site), offset, dim1, dim2);
}

Tensor ShapeMethods::diag(int64_t diagonal, Site site) const {
  return flow::diag(TensorArg(self(), site), diagonal);
}

Tensor ShapeMethods::diag_embed(int64_t offset, int64_t dim1, int64_t dim2, Site site) const {
  return flow::diag_embed(TensorArg(self(), site), offset, dim1, dim2);
}

}  // namespace flow
