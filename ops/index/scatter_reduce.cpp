#include "ops/index/scatter_reduce.h"

#include <limits>

#include "core/context.h"
#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/old_value.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/gather_op.h"
#include "ops/index/search.h"
#include "ops/named_errors.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/concat.h"
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

namespace {

// What a reduction begins with, and its name in scatter_reduce.
struct SegmentKind {
  const char* reduce;
  double start;
};

SegmentKind segment_kind(const std::string& reduce, Site site) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (reduce == "sum" || reduce == "mean") return {"sum", 0};
  if (reduce == "prod") return {"prod", 1};
  if (reduce == "max" || reduce == "amax") return {"amax", -kInfinity};
  if (reduce == "min" || reduce == "amin") return {"amin", kInfinity};
  throw InvalidArgument(
      str("[segment_reduce] reduce is '", reduce, "'; give sum, mean, max, min or prod"), site);
}

void check_segments(const Tensor& lengths, int64_t size, bool is_unsafe, Site site) {
  if (lengths.numel() == 0 || thread_state().trace != nullptr) return;
  const auto least = min({lengths, site}).item<int64_t>(site);
  if (least < 0) {
    throw InvalidArgument(str("[segment_reduce] a length is ", least, "; give 0 or more"), site);
  }
  if (is_unsafe) return;
  const Tensor totals = sum({lengths, site}, -1);
  const Tensor fits = all({eq({totals, site}, size), site});
  if (fits.item<bool>(site)) return;
  throw InvalidArgument(str("[segment_reduce] the lengths do not add up to ", size,
                            ", the size of the axis; set unsafe to leave elements out"),
                        site);
}

// Where the segments begin and the last one ends: (…, S + 1) int64.
Tensor segment_ends(const TensorArg& data, const SegmentReduceOptions& options) {
  const Site site = data.site();
  const Tensor& given = options.lengths.defined() ? options.lengths : options.offsets;
  if (options.lengths.defined() == options.offsets.defined()) {
    throw InvalidArgument("[segment_reduce] takes lengths or offsets; give one of both", site);
  }
  const int64_t axis = options.axis < 0 ? options.axis + data->dim() : options.axis;
  bool fits = !is_floating(given.dtype()) && given.dtype() != DType::kBool && axis >= 0 &&
              axis < data->dim() && given.dim() == axis + 1;
  for (int64_t d = 0; fits && d < axis; ++d)
    fits = given.size(d) == data->size(d);
  if (!fits || (options.offsets.defined() && given.size(-1) == 0)) {
    throw InvalidArgument(
        str("[segment_reduce] takes integers of the dims of the data in front of ",
            "the axis, and one dim of segments; received ", given.meta(), " for data of shape ",
            data->shape(), " and axis ", options.axis),
        site);
  }
  Tensor whole = cast({given.detach(), site}, DType::kInt64);
  if (options.offsets.defined()) {
    check_segments(diff({whole, site}), data->size(axis), true, site);
    return whole;
  }
  check_segments(whole, data->size(axis), options.unsafe, site);
  return pad({cumsum({whole, site}, -1), site}, {1, 0});
}

}  // namespace

Tensor segment_reduce(const TensorArg& data, const std::string& reduce,
                      const SegmentReduceOptions& options) {
  return ops::named("segment_reduce", data.site(), [&]() -> Tensor {
    const Site site = data.site();
    const SegmentKind kind = segment_kind(reduce, site);
    if (!is_floating(data->dtype())) {
      throw InvalidArgument(str("[segment_reduce] needs floating data; received ", data->meta()),
                            site);
    }
    const Tensor ends = segment_ends(data, options);
    const int64_t axis = ends.dim() - 1;
    const int64_t segments = ends.size(-1) - 1;
    Shape rows = ends.shape();
    rows[axis] = data->size(axis);
    const TensorOptions layout = ops::whole_like(ends);
    const Tensor places = expand({arange(data->size(axis), layout, site), site}, rows);
    // 0 in front of the first segment, and segments + 1 behind the last one.
    Tensor index = searchsorted({ends, site}, {contiguous({places, site}), site}, {.right = true});
    Shape along = rows;
    while (along.size() < data->dim())
      along.push_back(1);
    index = expand({reshape({index, site}, along), site}, data->shape());
    Shape shape = data->shape();
    shape[axis] = segments + 2;
    const TensorOptions values = ops::whole_like(data);
    const Tensor start = full(shape, options.initial.value_or(kind.start), values, site);
    const Tensor reduced = scatter_reduce({start, site}, axis, {index, site}, data, kind.reduce);
    Tensor inside = narrow({reduced, site}, axis, 1, segments);
    if (reduce != "mean") return inside;
    along[axis] = segments;
    const Tensor counts = cast({reshape({diff({ends, site}), site}, along), site}, data->dtype());
    const Tensor means = div({inside, site}, {counts, site});
    return options.initial ? where({eq({counts, site}, 0), site}, {inside, site}, {means, site})
                           : means;
  });
}

}  // namespace flow
