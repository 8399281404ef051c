#include "ops/index/scatter_reduce.h"

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/gather_op.h"
#include "ops/named_errors.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

// Products and extrema are an op; sums and means are composed of other ops.
namespace flow {

namespace ops {

namespace {

Tensor scatter_reduce_of(const Tensor& x, const Tensor& index, const Tensor& src,
                         const ScatterReduceAttrs& attrs) {
  return dispatch(kScatterReduce, {&x, &index, &src}, attrs, Site::here());
}

void infer(InferContext& ctx) {
  check_scatter(ctx, ctx.attrs<ScatterReduceAttrs>().dim);
  ctx.add_output_like(0);
}

// A product is linear in x, and a value that replaces x is its own maximum. Each rank may compare
// some of the entries if elements that no entry meets stay unchanged. A maximum with the same
// numbers on all ranks also keeps minima.
void sbp(SbpContext& ctx) {
  constexpr Sbp kB = sbp::broadcast;
  const auto& attrs = ctx.attrs<ScatterReduceAttrs>();
  add_split_targets(ctx, attrs.dim, true);
  if (attrs.kind() == ScatterReduction::kProduct) {
    if (attrs.include_self) {
      ctx.add({sbp::partial_sum, kB, kB}, {sbp::partial_sum});
    } else {
      for (const Sbp partial : {sbp::partial_max, sbp::partial_min})
        ctx.add({partial, kB, kB}, {partial});
    }
    return;
  }
  const bool is_max = attrs.kind() == ScatterReduction::kLargest;
  const Sbp same = is_max ? sbp::partial_max : sbp::partial_min;
  const Sbp other = is_max ? sbp::partial_min : sbp::partial_max;
  for (const Sbp x : {kB, same}) {
    ctx.add({x, kB, same}, {same});
    if (x == same) ctx.add({x, kB, kB}, {same});
    if (!attrs.include_self) continue;
    const Shape& index = ctx.input(1).shape;
    for (int64_t i = 0; i < index.size(); ++i) {
      ctx.add_positional({x, sbp::split(i), kB}, {same});
      if (!parts_hold(ctx.input(2).shape[i], index[i], ctx.num_ranks())) continue;
      ctx.add({{x, sbp::split(i), sbp::split(i)}, {same}, i != attrs.dim});
    }
  }
  ctx.add({other, kB, kB}, {other});
}

// The counterparts of the entries in src.
Tensor corner_of(const Tensor& src, const Shape& shape) {
  Tensor corner = src;
  for (int64_t i = 0; i < shape.size(); ++i) {
    if (corner.shape()[i] != shape[i]) corner = narrow(corner, i, 0, shape[i]);
  }
  return corner;
}

// Uses the product of the other factors at each position, with zeros taken as 1 and counted
// separately (so second derivatives are those away from zeros): dx = dy prod(src),  dsrc = dy
// (product of the others), 0 where another factor is 0.
void grad_prod(GradContext& ctx, const ScatterReduceAttrs& attrs) {
  const Tensor& dy = ctx.dy();
  const Tensor x = ctx.input(0);
  const Tensor index = ctx.input(1);
  const Tensor src = corner_of(ctx.input(2), index.shape());
  const ScatterReduceAttrs with_self{attrs.dim, attrs.reduction, true};
  if (ctx.needs(0)) {
    ctx.set(0, attrs.include_self ? mul(dy, scatter_reduce_of(ones_like(x), index, src, with_self))
                                  : scatter(dy, attrs.dim, index, 0));
  }
  if (!ctx.needs(2)) return;
  const Tensor is_zero = eq(src, 0);
  const Tensor factors = masked_fill(src, is_zero, 1);
  const Tensor own = attrs.include_self ? masked_fill(x, eq(x, 0), 1) : ones_like(x);
  const Tensor own_zeros = attrs.include_self ? cast(eq(x, 0), x.dtype()) : zeros_like(x);
  const Tensor product = scatter_reduce_of(own, index, factors, with_self);
  const Tensor zero = cast(is_zero, x.dtype());
  const Tensor zeros = scatter_add(own_zeros, attrs.dim, index, zero);
  const Tensor others = div(gather(mul(dy, product), attrs.dim, index), factors);
  const Tensor has_other_zero = gt(sub(gather(zeros, attrs.dim, index), zero), 0);
  ctx.set(2, padded_to(masked_fill(others, has_other_zero, 0), ctx.input_meta(2)->shape));
}

// dy is divided evenly among the elements of x and src that are equal to the result.
void grad_extremum(GradContext& ctx, const ScatterReduceAttrs& attrs) {
  const Tensor x = ctx.input(0);
  const Tensor index = ctx.input(1);
  const Tensor src = corner_of(ctx.input(2), index.shape());
  const Tensor y = ctx.output();
  const Tensor is_self =
      attrs.include_self ? cast(eq(x, y), x.dtype()) : scatter(ones_like(x), attrs.dim, index, 0);
  const Tensor is_src = cast(eq(src, gather(y, attrs.dim, index)), x.dtype());
  const Tensor share = div(ctx.dy(), scatter_add(is_self, attrs.dim, index, is_src));
  if (ctx.needs(0)) ctx.set(0, mul(share, is_self));
  if (!ctx.needs(2)) return;
  const Tensor dsrc = mul(gather(share, attrs.dim, index), is_src);
  ctx.set(2, padded_to(dsrc, ctx.input_meta(2)->shape));
}

void grad(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const auto& attrs = ctx.attrs<ScatterReduceAttrs>();
  if (attrs.kind() == ScatterReduction::kProduct) {
    grad_prod(ctx, attrs);
  } else {
    grad_extremum(ctx, attrs);
  }
}

}  // namespace

const OpDef kScatterReduce{.name = "scatter_reduce",
                           .num_inputs = 3,
                           .attrs = attrs_def<ScatterReduceAttrs>(),
                           .infer = infer,
                           .sbp = sbp,
                           .grad = grad,
                           .saved_inputs = 0b111,
                           .saved_outputs = 1};

void register_scatter_reduce(OpTable& table) {
  table.add(kScatterReduce);
}

}  // namespace ops

namespace {

// The number of values of which each element of the result is the mean.
Tensor counts(const TensorArg& x, int64_t dim, const Tensor& index, const Tensor& src,
              bool include_self) {
  const Tensor own = full_like(x, include_self ? 1 : 0);
  const Tensor all = scatter_add({own, x.site()}, dim, index, ones_like({src, x.site()}));
  return clamp({all, x.site()}, {.min = 1});
}

}  // namespace

Tensor scatter_reduce(const TensorArg& x, int64_t dim, const TensorArg& index, const TensorArg& src,
                      const std::string& reduce, const ScatterReduceOptions& options) {
  return ops::named("scatter_reduce", x.site(), [&]() -> Tensor {
    using ops::ScatterReduction;
    if (x->dim() == 0 || index->dim() == 0) {
      const Tensor y = scatter_reduce({ops::as_vector(x), x.site()}, dim, ops::as_vector(index),
                                      ops::as_vector(src), reduce, options);
      return reshape({y, x.site()}, x->shape());
    }
    const int64_t d = normalize_dim(dim, x->dim(), "scatter_reduce");
    const Tensor indices = ops::as_indices(index);
    if (reduce == "sum" || reduce == "mean") {
      const Tensor base = options.include_self ? x.tensor() : scatter(x, d, indices, 0);
      Tensor total = scatter_add({base, x.site()}, d, indices, src);
      if (reduce == "sum") return total;
      const Tensor count = counts(x, d, indices, src, options.include_self);
      const DivOptions rounding{is_floating(x->dtype()) ? "" : "floor"};
      return div({total, x.site()}, count, rounding);
    }
    if (reduce != "prod" && reduce != "amax" && reduce != "amin") {
      throw InvalidArgument(
          str("[scatter_reduce] reduce is '", reduce, "'; give sum, prod, mean, amax or amin"),
          x.site());
    }
    const ScatterReduction kind = reduce == "prod"   ? ScatterReduction::kProduct
                                  : reduce == "amax" ? ScatterReduction::kLargest
                                                     : ScatterReduction::kSmallest;
    const ops::ScatterReduceAttrs attrs{d, static_cast<int64_t>(kind), options.include_self};
    return dispatch(ops::kScatterReduce, {&x.tensor(), &indices, &src.tensor()}, attrs, x.site());
  });
}

Tensor IndexMethods::scatter_reduce(int64_t dim, const TensorArg& index, const TensorArg& src,
                                    const std::string& reduce,
                                    const ScatterReduceOptions& options) const {
  return flow::scatter_reduce(TensorArg(self(), index.site()), dim, index, src, reduce, options);
}

const Tensor& InPlaceMethods::scatter_reduce_(int64_t dim, const TensorArg& index,
                                              const TensorArg& src, const std::string& reduce,
                                              const ScatterReduceOptions& options) const {
  return ops::write_over("scatter_reduce_", {self(), index.site()}, {&src.tensor()},
                         [&](const TensorArg& old) {
                           return flow::scatter_reduce(old, dim, index, src, reduce, options);
                         });
}

}  // namespace flow
