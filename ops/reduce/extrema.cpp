#include "ops/reduce/extrema.h"

#include <array>

#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/index/gather_op.h"
#include "ops/named_errors.h"
#include "ops/reduce/extrema_op.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

Shape checked_shape(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  const Shape& shape = ctx.input(0).shape;
  for (const int64_t dim : attrs.dims) {
    ctx.check(shape[dim] != 0, "dim ", dim, " has no elements to compare");
  }
  return reduced_shape(shape, attrs.dims, attrs.keepdim);
}

void infer_extremum(InferContext& ctx) {
  ctx.add_output(checked_shape(ctx), ctx.input(0).dtype);
}

void infer_with_indices(InferContext& ctx) {
  const Shape shape = checked_shape(ctx);
  ctx.add_output(shape, ctx.input(0).dtype);
  ctx.add_output(shape, DType::kInt64);
}

void infer_position(InferContext& ctx) {
  ctx.add_output(checked_shape(ctx), DType::kInt64);
}

// Dims that are kept may be split.
void sbp_kept(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  const DimSet reduced = dim_set(attrs.dims);
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if ((reduced >> i & 1U) != 0) continue;
    const Sbp split = sbp::split(reduced_dim(i, attrs.dims, attrs.keepdim));
    ctx.add({sbp::split(i)}, std::vector<Sbp>(static_cast<size_t>(ctx.num_outputs()), split));
  }
}

// The maximum over parts, or over ranks, is the maximum of their maxima.
template <Sbp::Kind kPartial>
void sbp_extremum(SbpContext& ctx) {
  sbp_kept(ctx);
  for (const int64_t dim : ctx.attrs<ReduceAttrs>().dims)
    ctx.add({sbp::split(dim)}, {Sbp(kPartial)});
  ctx.add({Sbp(kPartial)}, {Sbp(kPartial)});
}

// True at the elements that are equal to y, the extremum over all dims or some. A NaN is not equal
// to itself: if all dims are reduced, it is an extremum nevertheless, as for PyTorch's max(x). Over
// some dims no element of its line is one, so the whole line gets the gradient NaN, as for
// PyTorch's amax.
Tensor find_extrema(const Tensor& x, const Tensor& y, const ReduceAttrs& attrs) {
  const Tensor is_equal = eq(x, y);
  const bool is_over_all = static_cast<int64_t>(attrs.dims.size()) == x.dim();
  return is_over_all ? logical_or(is_equal, isnan(x)) : is_equal;
}

// dx = dy / k at the k elements that are extrema, and 0 elsewhere.
void grad_extremum(GradContext& ctx) {
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  const Tensor x = ctx.input(0);
  const auto restored = [&](const Tensor& y) {
    return with_reduced_dims(y, x.shape(), attrs.dims, attrs.keepdim);
  };
  const Tensor is_extremum = cast(find_extrema(x, restored(ctx.output()), attrs), x.dtype());
  if (attrs.dims.empty()) {
    ctx.set(0, mul(is_extremum, ctx.dy()));
    return;
  }
  const Ints dims(std::vector<int64_t>(attrs.dims.begin(), attrs.dims.end()));
  const Tensor count = sum(is_extremum, dims, {.keepdim = true});
  ctx.set(0, mul(is_extremum, div(restored(ctx.dy()), count)));
}

// dx = dy at the position that was found, and 0 elsewhere.
void grad_with_indices(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  const Shape& shape = ctx.input_meta(0)->shape;
  if (attrs.dims.empty()) {
    ctx.set(0, ctx.dy());
    return;
  }
  const Tensor dy = with_reduced_dims(ctx.dy(), shape, attrs.dims, attrs.keepdim);
  const Tensor indices = with_reduced_dims(ctx.output(1), shape, attrs.dims, attrs.keepdim);
  ctx.set(0, ungather(dy, attrs.dims[0], indices, shape));
}

Cost cost(const SbpContext& ctx) {
  return {.flops = static_cast<double>(ctx.input(0).numel)};
}

}  // namespace

const OpDef kAmax{.name = "amax",
                  .attrs = attrs_def<ReduceAttrs>(),
                  .infer = infer_extremum,
                  .sbp = sbp_extremum<Sbp::Kind::kPartialMax>,
                  .grad = grad_extremum,
                  .cost = cost,
                  .saved_inputs = 1,
                  .saved_outputs = 1};
const OpDef kAmin{.name = "amin",
                  .attrs = attrs_def<ReduceAttrs>(),
                  .infer = infer_extremum,
                  .sbp = sbp_extremum<Sbp::Kind::kPartialMin>,
                  .grad = grad_extremum,
                  .cost = cost,
                  .saved_inputs = 1,
                  .saved_outputs = 1};
const OpDef kMaxDim{.name = "max",
                    .num_outputs = 2,
                    .attrs = attrs_def<ReduceAttrs>(),
                    .infer = infer_with_indices,
                    .sbp = sbp_kept,
                    .grad = grad_with_indices,
                    .cost = cost,
                    .saved_outputs = 0b10};
const OpDef kMinDim{.name = "min",
                    .num_outputs = 2,
                    .attrs = attrs_def<ReduceAttrs>(),
                    .infer = infer_with_indices,
                    .sbp = sbp_kept,
                    .grad = grad_with_indices,
                    .cost = cost,
                    .saved_outputs = 0b10};
const OpDef kArgmax{.name = "argmax",
                    .attrs = attrs_def<ReduceAttrs>(),
                    .infer = infer_position,
                    .sbp = sbp_kept,
                    .grad = not_differentiable,
                    .cost = cost};
const OpDef kArgmin{.name = "argmin",
                    .attrs = attrs_def<ReduceAttrs>(),
                    .infer = infer_position,
                    .sbp = sbp_kept,
                    .grad = not_differentiable,
                    .cost = cost};

void register_extrema(OpTable& table) {
  for (const OpDef* op : {&kAmax, &kAmin, &kMaxDim, &kMinDim, &kArgmax, &kArgmin})
    table.add(*op);
}

namespace {

ReduceAttrs attrs_for(const TensorArg& x, const Ints& dims, const KeepdimOptions& options,
                      const OpDef& op) {
  return {reduction_dims(dims, x->dim(), op.name), options.keepdim};
}

Tensor find(const OpDef& op, const TensorArg& x, const Ints& dims, const KeepdimOptions& options) {
  return located(x.site(), [&] {
    return dispatch(op, {&x.tensor()}, attrs_for(x, dims, options, op), x.site());
  });
}

ValuesIndices find_with_indices(const OpDef& op, const TensorArg& x, int64_t dim,
                                const KeepdimOptions& options) {
  return located(x.site(), [&]() -> ValuesIndices {
    std::array<Tensor, 2> outputs =
        dispatch_multi<2>(op, {&x.tensor()}, attrs_for(x, dim, options, op), x.site());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

}  // namespace

}  // namespace ops

Tensor amax(const TensorArg& x) {
  return ops::find(ops::kAmax, x, {}, {});
}

Tensor amax(const TensorArg& x, const Ints& dims, const KeepdimOptions& options) {
  return ops::find(ops::kAmax, x, dims, options);
}

Tensor amin(const TensorArg& x) {
  return ops::find(ops::kAmin, x, {}, {});
}

Tensor amin(const TensorArg& x, const Ints& dims, const KeepdimOptions& options) {
  return ops::find(ops::kAmin, x, dims, options);
}

Tensor max(const TensorArg& x) {
  return ops::named("max", x.site(), [&] { return ops::find(ops::kAmax, x, {}, {}); });
}

Tensor min(const TensorArg& x) {
  return ops::named("min", x.site(), [&] { return ops::find(ops::kAmin, x, {}, {}); });
}

ValuesIndices max(const TensorArg& x, int64_t dim, const KeepdimOptions& options) {
  return ops::find_with_indices(ops::kMaxDim, x, dim, options);
}

ValuesIndices min(const TensorArg& x, int64_t dim, const KeepdimOptions& options) {
  return ops::find_with_indices(ops::kMinDim, x, dim, options);
}

Tensor argmax(const TensorArg& x) {
  return ops::find(ops::kArgmax, x, {}, {});
}

Tensor argmax(const TensorArg& x, int64_t dim, const KeepdimOptions& options) {
  return ops::find(ops::kArgmax, x, dim, options);
}

Tensor argmin(const TensorArg& x) {
  return ops::find(ops::kArgmin, x, {}, {});
}

Tensor argmin(const TensorArg& x, int64_t dim, const KeepdimOptions& options) {
  return ops::find(ops::kArgmin, x, dim, options);
}

MinMax aminmax(const TensorArg& x, const AminmaxOptions& options) {
  return ops::named("aminmax", x.site(), [&]() -> MinMax {
    const Ints dims = options.dim ? Ints(*options.dim) : Ints();
    const KeepdimOptions kept{.keepdim = options.keepdim};
    return {amin(x, dims, kept), amax(x, dims, kept)};
  });
}

MinMax ReduceMethods::aminmax(Site site) const {
  return flow::aminmax({self(), site});
}

MinMax ReduceMethods::aminmax(const AminmaxOptions& options, Site site) const {
  return flow::aminmax({self(), site}, options);
}

Tensor ReduceMethods::max(Site site) const {
  return flow::max({self(), site});
}

Tensor ReduceMethods::min(Site site) const {
  return flow::min({self(), site});
}

Tensor ReduceMethods::argmax(Site site) const {
  return flow::argmax({self(), site});
}

Tensor ReduceMethods::argmax(int64_t dim, Site site) const {
  return flow::argmax({self(), site}, dim);
}

ValuesIndices ReduceMethods::max(int64_t dim, Site site) const {
  return flow::max(TensorArg(self(), site), dim);
}

ValuesIndices ReduceMethods::max(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::max(TensorArg(self(), site), dim, options);
}

ValuesIndices ReduceMethods::min(int64_t dim, Site site) const {
  return flow::min(TensorArg(self(), site), dim);
}

ValuesIndices ReduceMethods::min(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::min(TensorArg(self(), site), dim, options);
}

Tensor ReduceMethods::amax(Site site) const {
  return flow::amax(TensorArg(self(), site));
}

Tensor ReduceMethods::amax(const Ints& dims, Site site) const {
  return flow::amax(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::amax(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::amax(TensorArg(self(), site), dims, options);
}

Tensor ReduceMethods::amin(Site site) const {
  return flow::amin(TensorArg(self(), site));
}

Tensor ReduceMethods::amin(const Ints& dims, Site site) const {
  return flow::amin(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::amin(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::amin(TensorArg(self(), site), dims, options);
}

Tensor ReduceMethods::argmax(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::argmax(TensorArg(self(), site), dim, options);
}

Tensor ReduceMethods::argmin(Site site) const {
  return flow::argmin(TensorArg(self(), site));
}

Tensor ReduceMethods::argmin(int64_t dim, Site site) const {
  return flow::argmin(TensorArg(self(), site), dim);
}

Tensor ReduceMethods::argmin(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::argmin(TensorArg(self(), site), dim, options);
}

}  // namespace flow
