#include "ops/reduce/order_statistics.h"

#include <array>
#include <cmath>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/gather_op.h"
#include "ops/index/sort.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/order_statistics_op.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_along_dim(InferContext& ctx) {
  const auto& attrs = ctx.attrs<RankAttrs>();
  Shape shape = ctx.input(0).shape;
  const int64_t size = shape.empty() ? 1 : shape[attrs.dim];
  ctx.check(size > 0, "dim ", attrs.dim, " has no elements to choose from");
  ctx.check(attrs.k >= 0 && attrs.k <= size, "k is ", attrs.k, "; dim ", attrs.dim, " has ", size,
            " elements; give a k from 1 to that number");
  if (!shape.empty()) {
    shape[attrs.dim] = 1;
    if (!attrs.keepdim) shape.erase(attrs.dim);
  }
  ctx.add_output(shape, ctx.input(0).dtype);
  ctx.add_output(shape, DType::kInt64);
}

void infer_numbers(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype != DType::kBool, "is not defined for bool; cast first");
  infer_along_dim(ctx);
}

void infer_of_all(InferContext& ctx) {
  ctx.check(ctx.input(0).dtype != DType::kBool, "is not defined for bool; cast first");
  ctx.add_output(Shape(), ctx.input(0).dtype);
}

// Lines along `dim` are independent of each other.
void sbp_along_dim(SbpContext& ctx) {
  const auto& attrs = ctx.attrs<RankAttrs>();
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (i == attrs.dim) continue;
    const Sbp out = sbp::split(i > attrs.dim && !attrs.keepdim ? i - 1 : i);
    ctx.add({sbp::split(i)}, {out, out});
  }
}

// dx = dy at the position of the value.
void grad_along_dim(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const auto& attrs = ctx.attrs<RankAttrs>();
  const Shape& shape = ctx.input_meta(0)->shape;
  if (shape.empty()) {
    ctx.set(0, ctx.dy());
    return;
  }
  Tensor dy = ctx.dy();
  Tensor indices = ctx.output(1);
  if (!attrs.keepdim) {
    dy = unsqueeze(dy, attrs.dim);
    indices = unsqueeze(indices, attrs.dim);
  }
  ctx.set(0, ungather(dy, attrs.dim, indices, shape));
}

// dx = dy / k at the k elements that are equal to y or, like y, NaN; 0 elsewhere.
void grad_of_all(GradContext& ctx) {
  if (!ctx.dy().defined()) return;
  const Tensor x = ctx.input(0);
  const Tensor y = ctx.output();
  const Tensor is_it = logical_or(eq(x, y), logical_and(isnan(x), isnan(y)));
  const Tensor share = cast(is_it, x.dtype());
  ctx.set(0, mul(share, div(ctx.dy(), sum(share))));
}

// Selection takes time linear in the number of elements.
Cost cost(const SbpContext& ctx) {
  return {.flops = 4 * static_cast<double>(ctx.input(0).numel)};
}

constexpr OpDef along_dim(const char* name, InferFn infer) {
  return {.name = name,
          .num_outputs = 2,
          .attrs = attrs_def<RankAttrs>(),
          .infer = infer,
          .sbp = sbp_along_dim,
          .grad = grad_along_dim,
          .cost = cost,
          .saved_outputs = 0b10};
}

constexpr OpDef of_all(const char* name) {
  return {.name = name,
          .infer = infer_of_all,
          .sbp = only_broadcast,  // a rank needs all elements
          .grad = grad_of_all,
          .cost = cost,
          .saved_inputs = 1,
          .saved_outputs = 1};
}

}  // namespace

const OpDef kKthvalue = along_dim("kthvalue", infer_numbers);
const OpDef kMedian = along_dim("median", infer_numbers);
const OpDef kNanmedian = along_dim("nanmedian", infer_numbers);
const OpDef kMode = along_dim("mode", infer_along_dim);
const OpDef kMedianOfAll = of_all("median_of_all");
const OpDef kNanmedianOfAll = of_all("nanmedian_of_all");

DType rank_dtype(DType elements, int64_t size) {
  constexpr int64_t kLastOfWholeFloats = int64_t{1} << 24;
  return size > kLastOfWholeFloats ? DType::kFloat64 : elements;
}

void register_order_statistics(OpTable& table) {
  for (const OpDef* op :
       {&kKthvalue, &kMedian, &kNanmedian, &kMode, &kMedianOfAll, &kNanmedianOfAll}) {
    table.add(*op);
  }
}

namespace {

ValuesIndices choose(const OpDef& op, const TensorArg& x, int64_t k, int64_t dim, bool keepdim) {
  return located(x.site(), [&]() -> ValuesIndices {
    const RankAttrs attrs{k, normalize_dim(dim, x->dim(), op.name), keepdim};
    std::array<Tensor, 2> outputs = dispatch_multi<2>(op, {&x.tensor()}, attrs, x.site());
    return {std::move(outputs[0]), std::move(outputs[1])};
  });
}

// Combines both neighbours of a rank as `interpolation` says; `weight` is the weight of the upper
// one.
Tensor between(const TensorArg& lower, const Tensor& upper, const Tensor& weight,
               const std::string& interpolation) {
  if (interpolation == "lower") return lower;
  if (interpolation == "higher") return upper;
  const Site site = lower.site();
  if (interpolation == "midpoint") {
    return lerp(lower, upper, cast({mul({ceil({weight, site}), site}, 0.5), site}, lower->dtype()));
  }
  if (interpolation == "linear") return lerp(lower, upper, weight);
  throw InvalidArgument(str("[quantile] interpolation is '", interpolation,
                            "'; give linear, lower, higher, nearest or midpoint"),
                        site);
}

// The elements of the sorted lines (…, n) at rank q (count - 1), where count (…, 1) elements of
// each line are numbers.
Tensor at_rank(const TensorArg& lines, const Tensor& count, double q,
               const std::string& interpolation) {
  const Site site = lines.site();
  if (!(q >= 0 && q <= 1)) {
    throw InvalidArgument(str("[quantile] q is ", q, "; give 0 to 1"), site);
  }
  const Tensor last = clamp({sub({count, site}, 1), site}, {.min = 0});
  Tensor rank = mul({last, site}, q);
  if (interpolation == "nearest") rank = round({rank, site});
  const Tensor below = floor({rank, site});
  const Tensor weight = cast({sub({rank, site}, below), site}, lines->dtype());
  const auto at = [&](const Tensor& place) {
    return gather(lines, -1, {cast({place, site}, DType::kInt64), site});
  };
  Tensor lower = at(below);
  if (interpolation == "nearest") return lower;
  return between({lower, site}, at(ceil({rank, site})), weight, interpolation);
}

Tensor quantiles(const char* name, const TensorArg& x, const std::vector<double>& ranks,
                 const QuantileOptions& options, bool ignores_nan) {
  return named(name, x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (!is_floating(x->dtype()) || x->numel() == 0) {
      throw InvalidArgument(str("[quantile] takes floating numbers, at least one; received ",
                                x->meta(), "; cast them"),
                            site);
    }
    if (is_half(x->dtype())) {
      const Tensor y = quantiles(name, {widened(x), site}, ranks, options, ignores_nan);
      return cast({y, site}, x->dtype());
    }
    const bool is_whole = !options.dim.has_value();
    const int64_t dim = is_whole ? 0 : normalize_dim(*options.dim, x->dim(), name);
    Tensor lines = is_whole || x->dim() == 0 ? reshape(x, {-1}) : movedim(x, dim, -1);
    lines = sort({lines, site}).values;
    const int64_t size = lines.size(-1);
    const DType dtype = rank_dtype(lines.dtype(), size);
    const Tensor last = narrow({lines, site}, -1, size - 1, 1);  // NaN if there is one
    const Tensor count =
        ignores_nan
            ? cast({sum({logical_not({isnan({lines, site}), site}), site}, -1, {.keepdim = true}),
                    site},
                   dtype)
            : full_like({last, site}, size, {.dtype = dtype});
    std::vector<Tensor> results;
    for (const double q : ranks) {
      Tensor y = at_rank({lines, site}, count, q, options.interpolation);
      if (!ignores_nan) y = where({isnan({last, site}), site}, {last, site}, {y, site});
      if (!is_whole && x->dim() > 0) y = movedim({y, site}, -1, dim);
      if (is_whole && options.keepdim) {
        y = reshape({y, site}, Shape(std::vector<int64_t>(static_cast<size_t>(x->dim()), 1)));
      } else if (is_whole || x->dim() == 0) {
        y = reshape({y, site}, {});
      } else if (!options.keepdim) {
        y = squeeze({y, site}, dim);
      }
      results.push_back(y);
    }
    return stack({results, site}, 0);
  });
}

}  // namespace

}  // namespace ops

Tensor median(const TensorArg& x) {
  return ops::named("median", x.site(),
                    [&] { return dispatch(ops::kMedianOfAll, {&x.tensor()}, x.site()); });
}

ValuesIndices median(const TensorArg& x, int64_t dim, const KeepdimOptions& options) {
  return ops::choose(ops::kMedian, x, 0, dim, options.keepdim);
}

Tensor nanmedian(const TensorArg& x) {
  return ops::named("nanmedian", x.site(),
                    [&] { return dispatch(ops::kNanmedianOfAll, {&x.tensor()}, x.site()); });
}

ValuesIndices nanmedian(const TensorArg& x, int64_t dim, const KeepdimOptions& options) {
  return ops::choose(ops::kNanmedian, x, 0, dim, options.keepdim);
}

ValuesIndices kthvalue(const TensorArg& x, int64_t k, const KthvalueOptions& options) {
  if (k < 1) {
    throw InvalidArgument(str("[kthvalue] k is ", k, "; give 1 for the smallest element"),
                          x.site());
  }
  return ops::choose(ops::kKthvalue, x, k, options.dim, options.keepdim);
}

ValuesIndices mode(const TensorArg& x, int64_t dim, const KeepdimOptions& options) {
  return ops::choose(ops::kMode, x, 0, dim, options.keepdim);
}

Tensor quantile(const TensorArg& x, double q, const QuantileOptions& options) {
  return squeeze({ops::quantiles("quantile", x, {q}, options, false), x.site()}, 0);
}

Tensor quantile(const TensorArg& x, const std::vector<double>& q, const QuantileOptions& options) {
  return ops::quantiles("quantile", x, q, options, false);
}

Tensor nanquantile(const TensorArg& x, double q, const QuantileOptions& options) {
  return squeeze({ops::quantiles("nanquantile", x, {q}, options, true), x.site()}, 0);
}

Tensor nanquantile(const TensorArg& x, const std::vector<double>& q,
                   const QuantileOptions& options) {
  return ops::quantiles("nanquantile", x, q, options, true);
}

Tensor ReduceMethods::median(Site site) const {
  return flow::median(TensorArg(self(), site));
}

ValuesIndices ReduceMethods::median(int64_t dim, Site site) const {
  return flow::median(TensorArg(self(), site), dim);
}

ValuesIndices ReduceMethods::median(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::median(TensorArg(self(), site), dim, options);
}

Tensor ReduceMethods::nanmedian(Site site) const {
  return flow::nanmedian(TensorArg(self(), site));
}

ValuesIndices ReduceMethods::nanmedian(int64_t dim, Site site) const {
  return flow::nanmedian(TensorArg(self(), site), dim);
}

ValuesIndices ReduceMethods::nanmedian(int64_t dim, const KeepdimOptions& options,
                                       Site site) const {
  return flow::nanmedian(TensorArg(self(), site), dim, options);
}

ValuesIndices ReduceMethods::mode(int64_t dim, Site site) const {
  return flow::mode(TensorArg(self(), site), dim);
}

ValuesIndices ReduceMethods::mode(int64_t dim, const KeepdimOptions& options, Site site) const {
  return flow::mode(TensorArg(self(), site), dim, options);
}

ValuesIndices ReduceMethods::kthvalue(int64_t k, Site site) const {
  return flow::kthvalue(TensorArg(self(), site), k);
}

ValuesIndices ReduceMethods::kthvalue(int64_t k, const KthvalueOptions& options, Site site) const {
  return flow::kthvalue(TensorArg(self(), site), k, options);
}

Tensor ReduceMethods::quantile(double q, Site site) const {
  return flow::quantile(TensorArg(self(), site), q);
}

Tensor ReduceMethods::quantile(double q, const QuantileOptions& options, Site site) const {
  return flow::quantile(TensorArg(self(), site), q, options);
}

Tensor ReduceMethods::nanquantile(double q, Site site) const {
  return flow::nanquantile(TensorArg(self(), site), q);
}

Tensor ReduceMethods::nanquantile(double q, const QuantileOptions& options, Site site) const {
  return flow::nanquantile(TensorArg(self(), site), q, options);
}

}  // namespace flow
