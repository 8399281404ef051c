#include "ops/index/gather.h"

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/cast.h"
#include "ops/index/gather_op.h"
#include "ops/index/scatter_reduce.h"
#include "ops/named_errors.h"
#include "ops/number_range.h"
#include "ops/shape/concat.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void check_index(const OpContext& ctx, int i) {
  ctx.check(ctx.input(i).dtype == DType::kInt64, "indices must be integers; cast them to int64");
}

// index must fit `shape` in all dims but the one it indexes, unless it has no elements.
void check_fits(const OpContext& ctx, const Shape& index, const Shape& shape, int64_t dim) {
  ctx.check(index.size() == shape.size(),
            "index must have as many dims as the tensor; reshape or expand it");
  for (int64_t i = 0; i < shape.size(); ++i) {
    ctx.check(i == dim || index[i] <= shape[i] || index.numel() == 0, "index has size ", index[i],
              " in dim ", i, ", more than the tensor's ", shape[i], "; narrow it");
  }
}

}  // namespace

bool parts_hold(int64_t outer, int64_t inner, int64_t num_ranks) {
  if (inner == outer) return true;
  for (int64_t r = 0; r < num_ranks; ++r) {
    const Range own = balanced_part(inner, num_ranks, r);
    const Range around = balanced_part(outer, num_ranks, r);
    if (own.size == 0) continue;
    if (own.begin < around.begin || own.begin + own.size > around.begin + around.size) return false;
  }
  return num_ranks > 0;
}

namespace {

void infer_gather(InferContext& ctx) {
  check_index(ctx, 1);
  check_fits(ctx, ctx.input(1).shape, ctx.input(0).shape, ctx.attrs<DimAttrs>().dim);
  ctx.add_output(ctx.input(1).shape, ctx.input(0).dtype);
}

// Index entries are independent, and an entry may read anywhere in a whole x. A rank that holds
// part of x gives the elements it has and zeros elsewhere, which is a partial sum.
void sbp_gather(SbpContext& ctx) {
  const int64_t dim = ctx.attrs<DimAttrs>().dim;
  const Shape& x = ctx.input(0).shape;
  const Shape& index = ctx.input(1).shape;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (i != dim && parts_hold(x[i], index[i], ctx.num_ranks())) {
      ctx.add({sbp::split(i), sbp::split(i)}, {sbp::split(i)});
    }
    ctx.add({{sbp::broadcast, sbp::split(i)}, {sbp::split(i)}, i != dim});
    ctx.add_positional({sbp::split(i), sbp::broadcast}, {sbp::partial_sum});
  }
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, sbp::broadcast}, {partial});
}

// dx is dy added up at the positions that were read.
void grad_gather(GradContext& ctx) {
  ctx.set(0, ungather(ctx.dy(), ctx.attrs<DimAttrs>().dim, ctx.input(1), ctx.input_meta(0)->shape));
}

void infer_ungather(InferContext& ctx) {
  const auto& attrs = ctx.attrs<UngatherAttrs>();
  check_index(ctx, 1);
  check_fits(ctx, ctx.input(1).shape, attrs.shape, attrs.dim);
  ctx.add_output(attrs.shape, ctx.input(0).dtype);
}

// The dual of gather.
void sbp_ungather(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<UngatherAttrs>();
  for (int64_t i = 0; i < attrs.shape.size(); ++i) {
    const Sbp split = sbp::split(i);
    if (i != attrs.dim && parts_hold(attrs.shape[i], ctx.input(1).shape[i], ctx.num_ranks())) {
      ctx.add({split, split}, {split});
    }
    ctx.add({{split, split}, {sbp::partial_sum}, i != attrs.dim});
    ctx.add_positional({sbp::broadcast, sbp::broadcast}, {split});
  }
  ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
}

// Linear in y, which gather reads back.
void grad_ungather(GradContext& ctx) {
  ctx.set(0, gather(ctx.dy(), ctx.attrs<UngatherAttrs>().dim, ctx.input(1)));
}

}  // namespace

void check_scatter(const OpContext& ctx, int64_t dim) {
  const TensorMeta& x = ctx.input(0);
  const TensorMeta& index = ctx.input(1);
  const TensorMeta& src = ctx.input(2);
  check_index(ctx, 1);
  check_fits(ctx, index.shape, x.shape, dim);
  ctx.check(src.dtype == x.dtype, "src must have the tensor's dtype; cast it");
  ctx.check(src.dim() == x.dim(), "src must have as many dims as the tensor; reshape or expand it");
  for (int64_t i = 0; i < x.dim(); ++i) {
    ctx.check(index.shape[i] <= src.shape[i], "index has size ", index.shape[i], " in dim ", i,
              ", more than src's ", src.shape[i], "; narrow it");
  }
}

// A rank writes the entries whose targets are in its part of x. The index and src may be split in
// the same way if each rank holds the entries of its targets.
void add_split_targets(SbpContext& ctx, int64_t dim, bool has_src) {
  const Shape& x = ctx.input(0).shape;
  const Shape& index = ctx.input(1).shape;
  for (int64_t i = 0; i < x.size(); ++i) {
    const Sbp split = sbp::split(i);
    std::vector<Sbp> inputs(has_src ? 3 : 2, sbp::broadcast);
    inputs[0] = split;
    ctx.add_positional(inputs, {split});
    if (i == dim || !parts_hold(x[i], index[i], ctx.num_ranks())) continue;
    inputs[1] = split;
    ctx.add({inputs, {split}, has_src});
    if (!has_src || !parts_hold(ctx.input(2).shape[i], index[i], ctx.num_ranks())) continue;
    inputs[2] = split;
    ctx.add(inputs, {split});
  }
}

Tensor padded_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  std::vector<int64_t> padding;
  for (int64_t i = shape.size() - 1; i >= 0; --i) {
    padding.push_back(0);
    padding.push_back(shape[i] - x.shape()[i]);
  }
  return pad(x, std::move(padding));
}

namespace {

// Inputs: x, index, src.
void infer_scatter(InferContext& ctx) {
  check_scatter(ctx, ctx.attrs<DimAttrs>().dim);
  ctx.add_output_like(0);
}

// Each element of the result is one of x or of src.
void sbp_scatter(SbpContext& ctx) {
  add_split_targets(ctx, ctx.attrs<DimAttrs>().dim, true);
  for (const Sbp partial : {sbp::partial_sum, sbp::partial_max, sbp::partial_min})
    ctx.add({partial, sbp::broadcast, partial}, {partial});
}

// Ranks may each add a part of src to a partial x. Floats that are added keep the order of x.
void sbp_scatter_add(SbpContext& ctx) {
  add_split_targets(ctx, ctx.attrs<DimAttrs>().dim, true);
  const Shape& index = ctx.input(1).shape;
  const Sbp partial = sbp::partial_sum;
  ctx.add({partial, sbp::broadcast, partial}, {partial});
  for (int64_t i = 0; i < index.size(); ++i) {
    ctx.add_positional({partial, sbp::split(i), sbp::broadcast}, {partial});
    if (parts_hold(ctx.input(2).shape[i], index[i], ctx.num_ranks())) {
      const bool is_positional = i != ctx.attrs<DimAttrs>().dim;
      ctx.add({{partial, sbp::split(i), sbp::split(i)}, {partial}, is_positional});
    }
  }
  if (!is_floating(ctx.input(0).dtype)) return;
  for (const Sbp extremum : {sbp::partial_max, sbp::partial_min})
    ctx.add({extremum, sbp::broadcast, sbp::broadcast}, {extremum});
}

void infer_scatter_value(InferContext& ctx) {
  check_index(ctx, 1);
  check_fits(ctx, ctx.input(1).shape, ctx.input(0).shape, ctx.attrs<ScatterValueAttrs>().dim);
  ctx.add_output_like(0);
}

// Every rank writes the same value, which is its own maximum, but its own sum only if it is zero.
void sbp_scatter_value(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<ScatterValueAttrs>();
  add_split_targets(ctx, attrs.dim, false);
  if (attrs.value.to<double>() == 0) {
    ctx.add({sbp::partial_sum, sbp::broadcast}, {sbp::partial_sum});
  }
  ctx.add({sbp::partial_max, sbp::broadcast}, {sbp::partial_max});
  ctx.add({sbp::partial_min, sbp::broadcast}, {sbp::partial_min});
}

// The gradient in the corner of src that index covers; zeros in the rest of src.
Tensor grad_of_src(GradContext& ctx) {
  const Tensor taken = gather(ctx.dy(), ctx.attrs<DimAttrs>().dim, ctx.input(1));
  return padded_to(taken, ctx.input_meta(2)->shape);
}

// dx = dy, but 0 where src was written; dsrc = dy at those positions.
void grad_scatter(GradContext& ctx) {
  const int64_t dim = ctx.attrs<DimAttrs>().dim;
  if (ctx.needs(0)) ctx.set(0, scatter(ctx.dy(), dim, ctx.input(1), 0));
  if (ctx.needs(2)) ctx.set(2, grad_of_src(ctx));
}

// dx = dy, dsrc = dy where src was added.
void grad_scatter_add(GradContext& ctx) {
  if (ctx.needs(0)) ctx.set(0, ctx.dy());
  if (ctx.needs(2)) ctx.set(2, grad_of_src(ctx));
}

void grad_scatter_value(GradContext& ctx) {
  ctx.set(0, scatter(ctx.dy(), ctx.attrs<ScatterValueAttrs>().dim, ctx.input(1), 0));
}

}  // namespace

const OpDef kGather{.name = "gather",
                    .num_inputs = 2,
                    .attrs = attrs_def<DimAttrs>(),
                    .infer = infer_gather,
                    .sbp = sbp_gather,
                    .grad = grad_gather,
                    .saved_inputs = 0b10};
const OpDef kUngather{.name = "ungather",
                      .num_inputs = 2,
                      .attrs = attrs_def<UngatherAttrs>(),
                      .infer = infer_ungather,
                      .sbp = sbp_ungather,
                      .grad = grad_ungather,
                      .saved_inputs = 0b10};
const OpDef kScatter{.name = "scatter",
                     .num_inputs = 3,
                     .attrs = attrs_def<DimAttrs>(),
                     .infer = infer_scatter,
                     .sbp = sbp_scatter,
                     .grad = grad_scatter,
                     .saved_inputs = 0b10};
const OpDef kScatterAdd{.name = "scatter_add",
                        .num_inputs = 3,
                        .attrs = attrs_def<DimAttrs>(),
                        .infer = infer_scatter,
                        .sbp = sbp_scatter_add,
                        .grad = grad_scatter_add,
                        .saved_inputs = 0b10,
                        .autocast = AutocastRule::kWidest};
const OpDef kScatterValue{.name = "scatter_value",
                          .num_inputs = 2,
                          .attrs = attrs_def<ScatterValueAttrs>(),
                          .infer = infer_scatter_value,
                          .sbp = sbp_scatter_value,
                          .grad = grad_scatter_value,
                          .saved_inputs = 0b10};

void register_gather(OpTable& table) {
  for (const OpDef* op : {&kGather, &kUngather, &kScatter, &kScatterAdd, &kScatterValue})
    table.add(*op);
}

Tensor ungather(const TensorArg& y, int64_t dim, const TensorArg& index, const Shape& shape) {
  return dispatch(kUngather, {&y.tensor(), &index.tensor()}, UngatherAttrs{dim, shape}, y.site());
}

Tensor as_vector(const TensorArg& x) {
  return x->dim() == 0 ? reshape(x, {1}) : x.tensor();
}

Tensor as_indices(const TensorArg& index) {
  return index->dtype() == DType::kInt32 ? cast(index, DType::kInt64) : index.tensor();
}

}  // namespace ops

Tensor gather(const TensorArg& x, int64_t dim, const TensorArg& index) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (x->dim() == 0 || index->dim() == 0) {
      const Tensor y = gather({ops::as_vector(x), x.site()}, dim, ops::as_vector(index));
      return reshape({y, x.site()}, index->shape());
    }
    const ops::DimAttrs attrs{normalize_dim(dim, x->dim(), "gather")};
    const Tensor indices = ops::as_indices(index);
    return dispatch(ops::kGather, {&x.tensor(), &indices}, attrs, x.site());
  });
}

Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src,
               const ScatterOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (options.reduce == "add") return scatter_add(x, dim, index, src);
    if (options.reduce == "multiply") return scatter_reduce(x, dim, index, src, "prod");
    if (!options.reduce.empty()) {
      throw InvalidArgument(
          str("[scatter] reduce is '", options.reduce, "'; give add or multiply, or leave it out"),
          x.site());
    }
    if (x->dim() == 0 || index->dim() == 0) {
      const Tensor y =
          scatter({ops::as_vector(x), x.site()}, dim, ops::as_vector(index), ops::as_vector(src));
      return reshape({y, x.site()}, x->shape());
    }
    const ops::DimAttrs attrs{normalize_dim(dim, x->dim(), "scatter")};
    const Tensor indices = ops::as_indices(index);
    return dispatch(ops::kScatter, {&x.tensor(), &indices, &src.tensor()}, attrs, x.site());
  });
}

Tensor scatter(const TensorArg& x, int64_t dim, const TensorArg& index, const Scalar& value,
               const ScatterOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (!options.reduce.empty()) {
      TensorOptions like = options_like(index);
      like.dtype = x->dtype();
      const Tensor src = full(index->shape(), value, like, x.site());
      return scatter(x, dim, index, {src, x.site()}, options);
    }
    if (x->dim() == 0 || index->dim() == 0) {
      const Tensor y = scatter({ops::as_vector(x), x.site()}, dim, ops::as_vector(index), value);
      return reshape({y, x.site()}, x->shape());
    }
    const ops::ScatterValueAttrs attrs{normalize_dim(dim, x->dim(), "scatter"), value};
    ops::check_fill_value(x->dtype(), value, "scatter", x.site());
    const Tensor indices = ops::as_indices(index);
    return dispatch(ops::kScatterValue, {&x.tensor(), &indices}, attrs, x.site());
  });
}

Tensor scatter_add(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src) {
  return ops::located(x.site(), [&]() -> Tensor {
    if (x->dim() == 0 || index->dim() == 0) {
      const Tensor y = scatter_add({ops::as_vector(x), x.site()}, dim, ops::as_vector(index),
                                   ops::as_vector(src));
      return reshape({y, x.site()}, x->shape());
    }
    const ops::DimAttrs attrs{normalize_dim(dim, x->dim(), "scatter_add")};
    const Tensor indices = ops::as_indices(index);
    return dispatch(ops::kScatterAdd, {&x.tensor(), &indices, &src.tensor()}, attrs, x.site());
  });
}

const Tensor& InPlaceMethods::scatter_(int64_t dim, const TensorArg& index,
                                       const TensorArg& src) const {
  return ops::named("scatter_", index.site(), [&]() -> const Tensor& {
    return copy_({flow::scatter(TensorArg(self(), index.site()), dim, index, src), index.site()});
  });
}

const Tensor& InPlaceMethods::scatter_(int64_t dim, const TensorArg& index,
                                       const Scalar& value) const {
  return ops::named("scatter_", index.site(), [&]() -> const Tensor& {
    return copy_({flow::scatter(TensorArg(self(), index.site()), dim, index, value), index.site()});
  });
}

const Tensor& InPlaceMethods::scatter_add_(int64_t dim, const TensorArg& index,
                                           const TensorArg& src) const {
  return ops::named("scatter_add_", index.site(), [&]() -> const Tensor& {
    return copy_(
        {flow::scatter_add(TensorArg(self(), index.site()), dim, index, src), index.site()});
  });
}

Tensor IndexMethods::gather(int64_t dim, const TensorArg& index) const {
  return flow::gather(TensorArg(self(), index.site()), dim, index);
}

Tensor IndexMethods::scatter(int64_t dim, const TensorArg& index, const TensorArg& src,
                             const ScatterOptions& options) const {
  return flow::scatter(TensorArg(self(), index.site()), dim, index, src, options);
}

Tensor IndexMethods::scatter(int64_t dim, const TensorArg& index, const Scalar& value,
                             const ScatterOptions& options) const {
  return flow::scatter(TensorArg(self(), index.site()), dim, index, value, options);
}

Tensor IndexMethods::scatter_add(int64_t dim, const TensorArg& index, const TensorArg& src) const {
  return flow::scatter_add(TensorArg(self(), index.site()), dim, index, src);
}

}  // namespace flow
