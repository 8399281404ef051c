#include "ops/index/embedding.h"

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/where.h"
#include "ops/index/embedding_op.h"
#include "ops/index/index.h"
#include "ops/named_errors.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer(InferContext& ctx) {
  const TensorMeta& indices = ctx.input(0);
  const TensorMeta& weight = ctx.input(1);
  ctx.check(indices.dtype == DType::kInt64 || indices.dtype == DType::kInt32,
            "indices must be int64 or int32");
  ctx.check(weight.dim() == 2, "weight must be a matrix (rows, D)");
  ctx.check(ctx.attrs<EmbeddingAttrs>().padding_idx < weight.shape[0], "padding_idx ",
            ctx.attrs<EmbeddingAttrs>().padding_idx,
            " is not a row of the weight; name one of its rows");
  Shape shape = indices.shape;
  shape.push_back(weight.shape[1]);
  ctx.add_output(shape, weight.dtype);
}

// Each index reads a separate row. A rank that holds some rows gives those, and zeros for the
// others, which is a partial sum. Columns are independent. From a sample by parts, each rank reads
// its own rows.
void sbp(SbpContext& ctx) {
  const int64_t ndim = ctx.input(0).dim();
  if (ctx.attrs<EmbeddingAttrs>().held_alike(ctx.input(1).shape[0], ctx.input(0).numel,
                                             ctx.num_ranks()))
    ctx.add_positional({sbp::split(0), sbp::split(0)}, {sbp::split(0)});
  for (int64_t i = 0; i < ndim; ++i)
    ctx.add({sbp::split(i), sbp::broadcast}, {sbp::split(i)});
  ctx.add_positional({sbp::broadcast, sbp::split(0)}, {sbp::partial_sum});
  ctx.add({sbp::broadcast, sbp::split(1)}, {sbp::split(ndim)});
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({sbp::broadcast, partial}, {partial});
}

// The number of times each row is read, at each index: (…, 1).
Tensor frequencies(const Tensor& indices, const Tensor& dy, int64_t rows) {
  const Tensor once = ones_like(narrow(dy, -1, 0, 1));
  const EmbeddingBackwardAttrs attrs{{.num_rows = rows}, -1};
  const Tensor counts = dispatch(kEmbeddingBackward, {&indices, &once}, attrs, Site::none());
  return embedding(indices, counts);
}

// dweight[r] = sum of dy[i] over the i with index r, 0 for the padding row; the mean over them if
// scaled by frequency.
void grad(GradContext& ctx) {
  if (!ctx.needs(1)) return;
  const auto& forward = ctx.attrs<EmbeddingAttrs>();
  const Tensor indices = ctx.input(0);
  const int64_t rows = ctx.input_meta(1)->shape[0];
  Tensor dy = ctx.dy();
  if (forward.scale_grad_by_freq && dy.numel() > 0) dy = div(dy, frequencies(indices, dy, rows));
  const EmbeddingBackwardAttrs attrs{{rows, forward.num_sample, forward.num_parts},
                                     forward.padding_idx};
  ctx.set(1, dispatch(kEmbeddingBackward, {&indices, &dy}, attrs, Site::none()));
}

void infer_backward(InferContext& ctx) {
  const TensorMeta& rows = ctx.input(1);
  Shape expected = ctx.input(0).shape;
  expected.push_back(rows.shape.empty() ? 0 : rows.shape.back());
  ctx.check(rows.shape == expected, "needs one row for each index");
  ctx.add_output({ctx.attrs<EmbeddingBackwardAttrs>().num_rows, rows.shape.back()}, rows.dtype);
}

// The dual of embedding.
void sbp_backward(SbpContext& ctx) {
  const int64_t ndim = ctx.input(0).dim();
  if (ctx.attrs<EmbeddingBackwardAttrs>().held_alike(ctx.output(0).shape[0], ctx.input(0).numel,
                                                     ctx.num_ranks()))
    ctx.add_positional({sbp::split(0), sbp::split(0)}, {sbp::split(0)});
  for (int64_t i = 0; i < ndim; ++i)
    ctx.add({sbp::split(i), sbp::split(i)}, {sbp::partial_sum});
  ctx.add_positional({sbp::broadcast, sbp::broadcast}, {sbp::split(0)});
  ctx.add({sbp::broadcast, sbp::split(ndim)}, {sbp::split(1)});
  ctx.add({sbp::broadcast, sbp::partial_sum}, {sbp::partial_sum});
  // Rows with equal indices are added; a sample contains each row once.
  if (ctx.input(0).numel != 1 && ctx.attrs<EmbeddingBackwardAttrs>().num_parts == 0) return;
  for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
    ctx.add({sbp::broadcast, partial}, {partial});
}

// Linear in the rows: drows[i] = dy[index[i]], 0 for the padding index.
void grad_backward(GradContext& ctx) {
  if (!ctx.needs(1)) return;
  const auto& attrs = ctx.attrs<EmbeddingBackwardAttrs>();
  const int64_t padding = attrs.padding_idx;
  const Tensor indices = ctx.input(0);
  const SampledParts& parts = attrs;
  const EmbeddingAttrs forward{parts};
  Tensor rows = dispatch(kEmbedding, {&indices, &ctx.dy()}, forward, Site::none());
  if (padding >= 0) rows = masked_fill(rows, unsqueeze(eq(indices, padding), -1), 0);
  ctx.set(1, rows);
}

}  // namespace

const OpDef kEmbedding{.name = "embedding",
                       .num_inputs = 2,
                       .attrs = attrs_def<EmbeddingAttrs>(),
                       .infer = infer,
                       .sbp = sbp,
                       .grad = grad,
                       .saved_inputs = 0b01};
const OpDef kEmbeddingBackward{.name = "embedding_backward",
                               .num_inputs = 2,
                               .attrs = attrs_def<EmbeddingBackwardAttrs>(),
                               .infer = infer_backward,
                               .sbp = sbp_backward,
                               .grad = grad_backward,
                               .saved_inputs = 0b01};

void register_embedding(OpTable& table) {
  table.add(kEmbedding);
  table.add(kEmbeddingBackward);
}

}  // namespace ops

namespace {

// Scales the rows that `input` names in place to max_norm.
void shorten_rows(const TensorArg& input, const TensorArg& weight,
                  const EmbeddingOptions& options) {
  if (!(*options.max_norm > 0)) {
    throw InvalidArgument(
        str("[embedding] max_norm is ", *options.max_norm, "; give a positive number"),
        input.site());
  }
  const Tensor table = weight->detach();
  const Tensor indices = reshape(input, {-1});
  const Tensor rows = index_select({table, input.site()}, 0, {indices, input.site()});
  const Tensor length = norm(rows, {.p = options.norm_type, .dim = 1, .keepdim = true});
  const Tensor factor =
      masked_fill(*options.max_norm / (length + 1e-7), le(length, *options.max_norm), 1);
  index_put_(table, IndexArg(indices, input.site()), {mul(rows, factor), input.site()});
}

}  // namespace

Tensor embedding(const TensorArg& input, const TensorArg& weight, const EmbeddingOptions& options) {
  ops::EmbeddingAttrs attrs;
  if (options.padding_idx) {
    const int64_t rows = weight->dim() > 0 ? weight->shape()[0] : 0;
    const int64_t index = *options.padding_idx;
    if (index < -rows || index >= rows) {
      throw InvalidArgument(str("[embedding] padding_idx ", index,
                                " is not a row of the weight; "
                                "received a weight of shape ",
                                weight->shape(), "; name one of its rows"),
                            input.site());
    }
    attrs.padding_idx = index < 0 ? index + rows : index;
  }
  attrs.scale_grad_by_freq = options.scale_grad_by_freq;
  if (options.max_norm) shorten_rows(input, weight, options);
  return dispatch(ops::kEmbedding, {&input.tensor(), &weight.tensor()}, attrs, input.site());
}

const Tensor& embedding_renorm_(const TensorArg& weight, const TensorArg& indices, double max_norm,
                                double norm_type) {
  ops::named("embedding_renorm_", weight.site(), [&] {
    shorten_rows(indices, weight, {.max_norm = max_norm, .norm_type = norm_type});
  });
  return weight;
}

}  // namespace flow
