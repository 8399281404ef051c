#include "ops/reduce/reduce.h"

#include <algorithm>

#include "core/dispatch.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/named_errors.h"
#include "ops/reduce/reduce_op.h"
#include "ops/reduce/reduce_rows.h"
#include "ops/reduce/scan.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

Shape reduction_dims(const Ints& dims, int64_t ndim, const char* op) {
  Shape result;
  if (dims.empty()) {
    for (int64_t i = 0; i < ndim; ++i)
      result.push_back(i);
    return result;
  }
  for (const int64_t d : dims) {
    const int64_t dim = normalize_dim(d, ndim, op);
    if (ndim == 0) continue;  // a scalar has nothing to name, but accepts 0 and -1
    if (std::find(result.begin(), result.end(), dim) != result.end()) {
      throw InvalidArgument(str("[", op, "] dim ", dim, " is given twice; received dims ",
                                Shape(dims.values()), "; name each dim once"));
    }
    result.push_back(dim);
  }
  std::sort(result.begin(), result.end());
  return result;
}

DimSet dim_set(const Shape& dims) {
  DimSet set = 0;
  for (const int64_t dim : dims)
    set |= 1U << dim;
  return set;
}

Shape reduced_shape(const Shape& shape, const Shape& dims, bool keepdim) {
  const DimSet reduced = dim_set(dims);
  Shape result;
  for (int64_t i = 0; i < shape.size(); ++i) {
    if ((reduced >> i & 1U) == 0) {
      result.push_back(shape[i]);
    } else if (keepdim) {
      result.push_back(1);
    }
  }
  return result;
}

int64_t reduced_count(const Shape& shape, const Shape& dims) {
  int64_t count = 1;
  for (const int64_t dim : dims)
    count *= shape[dim];
  return count;
}

int64_t reduced_dim(int64_t dim, const Shape& dims, bool keepdim) {
  if (keepdim) return dim;
  return dim - std::count_if(dims.begin(), dims.end(), [&](int64_t d) { return d < dim; });
}

Tensor with_reduced_dims(const Tensor& y, const Shape& shape, const Shape& dims, bool keepdim) {
  return keepdim || dims.empty() ? y : reshape(y, reduced_shape(shape, dims, true));
}

namespace {

// The dims that are repeated or added when `shape` is broadcast. One of size 1 counts also if it is
// not repeated: a rank that holds none of it gives zeros, as for other reduced dims.
DimSet broadcast_dims(int64_t num_dims, const Shape& shape) {
  const int64_t added = num_dims - shape.size();
  DimSet set = 0;
  for (int64_t i = 0; i < num_dims; ++i) {
    if (i < added || shape[i - added] == 1) set |= 1U << i;
  }
  return set;
}

bool is_reduced(DimSet set, int64_t dim) {
  return (set >> dim & 1U) != 0;
}

DType sum_dtype(DType dtype) {
  return is_floating(dtype) ? dtype : DType::kInt64;
}

template <class Row>
void infer(InferContext& ctx) {
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  ctx.add_output(reduced_shape(ctx.input(0).shape, attrs.dims, attrs.keepdim),
                 Row::kFacts.gives_bools ? DType::kBool : sum_dtype(ctx.input(0).dtype));
}

void infer_mean(InferContext& ctx) {
  const auto& attrs = ctx.attrs<MeanAttrs>();
  const TensorMeta& x = ctx.input(0);
  ctx.check(is_floating(x.dtype), "the mean of ", x.dtype,
            " is not defined; cast to a floating dtype first");
  ctx.add_output(reduced_shape(x.shape, attrs.dims, attrs.keepdim), x.dtype);
}

void infer_sum_to(InferContext& ctx) {
  const auto& attrs = ctx.attrs<SumToAttrs>();
  const TensorMeta& x = ctx.input(0);
  const int64_t added = x.dim() - attrs.shape.size();
  ctx.check(added >= 0, "shape ", attrs.shape,
            " does not broadcast to the input; give one that does");
  for (int64_t i = added; i < x.dim(); ++i) {
    const int64_t size = attrs.shape[i - added];
    ctx.check(size == x.shape[i] || size == 1, "shape ", attrs.shape,
              " does not broadcast to the input");
  }
  ctx.add_output(attrs.shape, sum_dtype(x.dtype));
}

// The position in the result of dim `dim` of the input, which is not reduced.
int64_t output_dim(const OpContext& ctx, int64_t dim) {
  if (&ctx.op() == &kSumTo)
    return dim - (ctx.input(0).dim() - ctx.attrs<SumToAttrs>().shape.size());
  if (&ctx.op() == &kMean) {
    const auto& attrs = ctx.attrs<MeanAttrs>();
    return reduced_dim(dim, attrs.dims, attrs.keepdim);
  }
  const auto& attrs = ctx.attrs<ReduceAttrs>();
  return reduced_dim(dim, attrs.dims, attrs.keepdim);
}

// A rank that holds part of a reduced dim has its part of the result.
void add_reduced_dims(SbpContext& ctx, Sbp partial) {
  const DimSet reduced = reduced_dims_of(ctx.op(), ctx.input(0), ctx.raw_attrs());
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (is_reduced(reduced, i)) ctx.add({sbp::split(i)}, {partial});
  }
}

// y = sum(x) / count:  dx = dy / count.
void grad_mean(GradContext& ctx) {
  const auto& attrs = ctx.attrs<MeanAttrs>();
  const Shape& shape = ctx.input_meta(0)->shape;
  const Tensor dy = div(ctx.dy(), static_cast<double>(attrs.count));
  ctx.set(0, expand(with_reduced_dims(dy, shape, attrs.dims, attrs.keepdim), shape));
}

// The product x[0] … x[i - 1] at each i along the last dim.
Tensor products_before(const Tensor& x) {
  const Tensor first = ones_like(narrow(x, -1, 0, 1));
  return x.size(-1) == 1 ? first : cat({first, cumprod(narrow(x, -1, 0, x.size(-1) - 1), -1)}, -1);
}

// What the gradient of a row reads.
class ReduceGradInputs {
 public:
  explicit ReduceGradInputs(const GradContext& ctx)
      : ctx_(ctx), attrs_(ctx.attrs<ReduceAttrs>()), shape_(ctx.input_meta(0)->shape) {}

  Tensor dy() const { return with_reduced_dims(ctx_.dy(), shape_, attrs_.dims, attrs_.keepdim); }

  Tensor x() const { return ctx_.input(0); }

  const Shape& dims() const { return attrs_.dims; }

  Tensor spread(const Tensor& t) const { return expand(t, shape_); }

 private:
  const GradContext& ctx_;
  const ReduceAttrs& attrs_;
  const Shape& shape_;
};

template <class Row>
void grad(GradContext& ctx) {
  ctx.set(0, Row::dx(ReduceGradInputs(ctx)));
}

void grad_sum_to(GradContext& ctx) {
  ctx.set(0, expand(ctx.dy(), ctx.input_meta(0)->shape));
}

Cost cost(const SbpContext& ctx) {
  return {.flops = static_cast<double>(ctx.input(0).numel)};
}

template <class Row>
constexpr OpDef op_for() {
  constexpr ReduceFacts kFacts = Row::kFacts;
  OpDef op = {.name = kFacts.name,
              .attrs = attrs_def<ReduceAttrs>(),
              .infer = infer<Row>,
              .sbp = kFacts.sbp,
              .grad = not_differentiable,
              .cost = cost,
              .saved_inputs = kFacts.reads_x ? 1U : 0U,
              .autocast = kFacts.autocast};
  if constexpr (!kFacts.gives_bools) op.grad = grad<Row>;
  return op;
}

template <class... Row>
constexpr std::array<OpDef, sizeof...(Row)> ops_for(Rows<Row...> /*rows*/) {
  return {op_for<Row>()...};
}

}  // namespace

// A split kept dim stays split: each result is made from one rank's elements.
void sbp_kept_dims(SbpContext& ctx) {
  const DimSet reduced = reduced_dims_of(ctx.op(), ctx.input(0), ctx.raw_attrs());
  for (int64_t i = 0; i < ctx.input(0).dim(); ++i) {
    if (!is_reduced(reduced, i)) ctx.add({sbp::split(i)}, {sbp::split(output_dim(ctx, i))});
  }
}

// Sums over ranks and over elements commute if both have the same dtype: int64 does not wrap around
// where narrower integers do.
void sbp_sum(SbpContext& ctx) {
  sbp_kept_dims(ctx);
  add_reduced_dims(ctx, sbp::partial_sum);
  if (ctx.input(0).dtype == ctx.output(0).dtype) {
    ctx.add({sbp::partial_sum}, {sbp::partial_sum});
  }
}

void sbp_nansum(SbpContext& ctx) {
  sbp_kept_dims(ctx);
  add_reduced_dims(ctx, sbp::partial_sum);
}

// any is the maximum of truth values and all is the minimum; the same is true of P(max) and P(min)
// of bytes.
void sbp_any(SbpContext& ctx) {
  sbp_kept_dims(ctx);
  add_reduced_dims(ctx, sbp::partial_max);
  const DType dtype = ctx.input(0).dtype;
  if (dtype == DType::kBool || dtype == DType::kUInt8) {
    ctx.add({sbp::partial_max}, {sbp::partial_max});
  }
}

void sbp_all(SbpContext& ctx) {
  sbp_kept_dims(ctx);
  add_reduced_dims(ctx, sbp::partial_min);
  const DType dtype = ctx.input(0).dtype;
  if (dtype == DType::kBool || dtype == DType::kUInt8) {
    ctx.add({sbp::partial_min}, {sbp::partial_min});
  }
}

Tensor products_of_others(const Tensor& x, const Shape& dims) {
  if (dims.empty() || x.numel() == 0) return ones_like(x);
  const bool is_full = dims.size() == x.dim();
  const Tensor lines = is_full ? reshape(x, {-1}) : movedim(x, dims[0], -1);
  // From both ends, so that zeros need no division.
  const Tensor after = flip(products_before(flip(lines, -1)), -1);
  const Tensor others = mul(products_before(lines), after);
  return is_full ? reshape(others, x.shape()) : movedim(others, -1, dims[0]);
}

constexpr std::array<OpDef, ReduceRows::kSize> kReduceOps = ops_for(ReduceRows());

DimSet reduced_dims_of(const OpDef& op, const TensorMeta& input, const void* attrs) {
  if (&op == &kMean) return dim_set(static_cast<const MeanAttrs*>(attrs)->dims);
  if (&op != &kSumTo) return dim_set(static_cast<const ReduceAttrs*>(attrs)->dims);
  return broadcast_dims(input.dim(), static_cast<const SumToAttrs*>(attrs)->shape);
}

DimSet reduced_dims_of(const KernelQuery& query) {
  if (&query.op != &kSumTo) return reduced_dims_of(query.op, query.input(0), query.attrs);
  const Shape& x = query.input(0).local_shape;
  const Shape& y = query.output(0).local_shape;
  const int64_t added = x.size() - y.size();
  DimSet set = 0;
  for (int64_t i = 0; i < x.size(); ++i) {
    if (i < added || y[i - added] != x[i]) set |= 1U << i;
  }
  return set;
}

const OpDef kMean{.name = "mean",
                  .attrs = attrs_def<MeanAttrs>(),
                  .infer = infer_mean,
                  .sbp = sbp_sum,
                  .grad = grad_mean,
                  .cost = cost};
const OpDef kSumTo{.name = "sum_to",
                   .attrs = attrs_def<SumToAttrs>(),
                   .infer = infer_sum_to,
                   .sbp = sbp_sum,
                   .grad = grad_sum_to,
                   .cost = cost};

void register_reduce(OpTable& table) {
  for (const OpDef& op : kReduceOps)
    table.add(op);
  table.add(kMean);
  table.add(kSumTo);
}

namespace {

template <class Row>
Tensor reduce(const TensorArg& x, const Ints& dims, const ReduceOptions& options) {
  return located(x.site(), [&]() -> Tensor {
    const OpDef& op = reduction_of<Row>();
    const ReduceAttrs attrs{reduction_dims(dims, x->dim(), op.name), options.keepdim};
    if (!options.dtype) [[likely]]
      return dispatch(op, {&x.tensor()}, attrs, x.site());
    const Tensor wide = cast(x, *options.dtype);
    const Tensor y = dispatch(op, {&wide}, attrs, x.site());
    return cast({y, x.site()}, *options.dtype);
  });
}

}  // namespace

}  // namespace ops

Tensor sum(const TensorArg& x) {
  return ops::reduce<ops::Sum>(x, {}, {});
}

Tensor sum(const TensorArg& x, const Ints& dims, const ReduceOptions& options) {
  return ops::reduce<ops::Sum>(x, dims, options);
}

Tensor nansum(const TensorArg& x) {
  return ops::reduce<ops::Nansum>(x, {}, {});
}

Tensor nansum(const TensorArg& x, const Ints& dims, const ReduceOptions& options) {
  return ops::reduce<ops::Nansum>(x, dims, options);
}

Tensor mean(const TensorArg& x) {
  return mean(x, Ints());
}

Tensor mean(const TensorArg& x, const Ints& dims, const ReduceOptions& options) {
  return ops::located(x.site(), [&]() -> Tensor {
    ops::MeanAttrs attrs{ops::reduction_dims(dims, x->dim(), "mean"), options.keepdim};
    attrs.count = ops::reduced_count(x->shape(), attrs.dims);
    if (!options.dtype) [[likely]]
      return dispatch(ops::kMean, {&x.tensor()}, attrs, x.site());
    const Tensor wide = cast(x, *options.dtype);
    return dispatch(ops::kMean, {&wide}, attrs, x.site());
  });
}

Tensor sum_to(const TensorArg& x, const Shape& shape) {
  if (x->shape() == shape) return x;
  return dispatch(ops::kSumTo, {&x.tensor()}, ops::SumToAttrs{shape}, x.site());
}

Tensor prod(const TensorArg& x) {
  return ops::reduce<ops::Prod>(x, {}, {});
}

Tensor prod(const TensorArg& x, int64_t dim, const ReduceOptions& options) {
  return ops::reduce<ops::Prod>(x, dim, options);
}

namespace {

// As in PyTorch, any and all of uint8 are uint8, not bool.
template <class Row>
Tensor truth_of(const TensorArg& x, const Ints& dims, bool keepdim) {
  const Tensor y = ops::reduce<Row>(x, dims, {.keepdim = keepdim});
  return x->dtype() == DType::kUInt8 ? cast({y, x.site()}, DType::kUInt8) : y;
}

}  // namespace

Tensor any(const TensorArg& x) {
  return truth_of<ops::Any>(x, {}, false);
}

Tensor any(const TensorArg& x, const Ints& dims, const KeepdimOptions& options) {
  return truth_of<ops::Any>(x, dims, options.keepdim);
}

Tensor all(const TensorArg& x) {
  return truth_of<ops::All>(x, {}, false);
}

Tensor all(const TensorArg& x, const Ints& dims, const KeepdimOptions& options) {
  return truth_of<ops::All>(x, dims, options.keepdim);
}

Tensor ReduceMethods::sum(Site site) const {
  return flow::sum({self(), site});
}

Tensor ReduceMethods::sum(const Ints& dims, Site site) const {
  return flow::sum({self(), site}, dims);
}

Tensor ReduceMethods::sum(const Ints& dims, const ReduceOptions& options, Site site) const {
  return flow::sum({self(), site}, dims, options);
}

Tensor ReduceMethods::nansum(Site site) const {
  return flow::nansum(TensorArg(self(), site));
}

Tensor ReduceMethods::nansum(const Ints& dims, Site site) const {
  return flow::nansum(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::nansum(const Ints& dims, const ReduceOptions& options, Site site) const {
  return flow::nansum(TensorArg(self(), site), dims, options);
}

Tensor ReduceMethods::mean(Site site) const {
  return flow::mean({self(), site});
}

Tensor ReduceMethods::mean(const Ints& dims, Site site) const {
  return flow::mean({self(), site}, dims);
}

Tensor ReduceMethods::mean(const Ints& dims, const ReduceOptions& options, Site site) const {
  return flow::mean({self(), site}, dims, options);
}

Tensor ReduceMethods::prod(Site site) const {
  return flow::prod(TensorArg(self(), site));
}

Tensor ReduceMethods::prod(int64_t dim, Site site) const {
  return flow::prod(TensorArg(self(), site), dim);
}

Tensor ReduceMethods::prod(int64_t dim, const ReduceOptions& options, Site site) const {
  return flow::prod(TensorArg(self(), site), dim, options);
}

Tensor ReduceMethods::any(Site site) const {
  return flow::any(TensorArg(self(), site));
}

Tensor ReduceMethods::any(const Ints& dims, Site site) const {
  return flow::any(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::any(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::any(TensorArg(self(), site), dims, options);
}

Tensor ReduceMethods::all(Site site) const {
  return flow::all(TensorArg(self(), site));
}

Tensor ReduceMethods::all(const Ints& dims, Site site) const {
  return flow::all(TensorArg(self(), site), dims);
}

Tensor ReduceMethods::all(const Ints& dims, const KeepdimOptions& options, Site site) const {
  return flow::all(TensorArg(self(), site), dims, options);
}

}  // namespace flow
