#include "ops/index/count.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/dispatch.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/index/count_op.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/index_op.h"
#include "ops/index/sort.h"
#include "ops/named_errors.h"
#include "ops/promotion.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace ops {

namespace {

void infer_histc(InferContext& ctx) {
  const int64_t bins = ctx.attrs<HistcAttrs>().bins;
  ctx.check(is_floating(ctx.input(0).dtype) && bins > 0, "takes floating numbers and bins > 0");
  for (const int i : {1, 2}) {
    ctx.check(ctx.input(i).dim() == 0 && ctx.input(i).dtype == ctx.input(0).dtype,
              "the ends of the range must be scalars of the dtype of the numbers");
  }
  ctx.add_output({bins}, ctx.input(0).dtype);
}

// The counts of parts add up.
void sbp_histc(SbpContext& ctx) {
  for (int64_t dim = 0; dim < ctx.input(0).dim(); ++dim)
    ctx.add({sbp::split(dim), sbp::broadcast, sbp::broadcast}, {sbp::partial_sum});
}

}  // namespace

const OpDef kHistc{.name = "histc",
                   .num_inputs = 3,
                   .attrs = attrs_def<HistcAttrs>(),
                   .infer = infer_histc,
                   .sbp = sbp_histc,
                   .grad = not_differentiable};

void register_count(OpTable& table);

void register_count(OpTable& table) {
  table.add(kHistc);
}

}  // namespace ops

namespace {

// Returns `count` positions in the layout of x, whole on every rank.
Tensor positions(const Tensor& x, int64_t count, Site site) {
  const TensorOptions layout = ops::whole_like(x, DType::kInt64);
  return arange(count, layout, site);
}

// Returns (n), true for each row of (n, m) that differs from the row before it and for the first
// row.
Tensor starts_run(const Tensor& rows, Site site) {
  const int64_t n = rows.size(0);
  const Tensor unequal =
      ne({narrow({rows, site}, 0, 1, n - 1), site}, {narrow({rows, site}, 0, 0, n - 1), site});
  const Tensor differs =
      rows.size(1) == 1 ? reshape({unequal, site}, {-1}) : any({unequal, site}, 1);
  const Tensor first = eq({positions(rows, 1, site), site}, 0);
  return cat({{first, differs}, site}, 0);
}

// The order that sorts the rows of (n, m) by their first element, then by the second, …
Tensor row_order(const Tensor& rows, Site site) {
  Tensor order = positions(rows, rows.size(0), site);
  for (int64_t column = rows.size(1) - 1; column >= 0; --column) {
    const Tensor values = select({rows, site}, 1, column);
    const Tensor moved = index_select({values, site}, 0, {order, site});
    order = index_select({order, site}, 0, {argsort({moved, site}, {.dim = 0}), site});
  }
  return order;
}

UniqueResult unique_of(const TensorArg& input, bool sorts, bool with_inverse, bool with_counts,
                       std::optional<int64_t> dim, const char* name) {
  return ops::named(name, input.site(), [&]() -> UniqueResult {
    const Site site = input.site();
    const Tensor x = input->detach();
    const int64_t d = dim ? normalize_dim(*dim, x.dim(), name) : 0;
    // Returns the slices as rows.
    const Tensor slices = dim && x.dim() > 0 ? movedim({x, site}, d, 0) : x.reshape({-1}, site);
    const int64_t n = slices.size(0);
    if (n == 0) {
      const Tensor none = positions(x, 0, site);
      return {dim ? x : slices,
              with_inverse ? dim ? none : none.reshape(x.shape(), site) : Tensor(),
              with_counts ? none : Tensor()};
    }
    Tensor rows = slices.reshape({n, slices.numel() / n}, site);
    Tensor order;
    if (sorts && rows.size(1) == 1) {
      ValuesIndices sorted = sort({rows, site}, {.dim = 0});
      rows = std::move(sorted.values);
      order = reshape({sorted.indices, site}, {-1});
    } else if (sorts) {
      order = row_order(rows, site);
      rows = index_select({rows, site}, 0, {order, site});
    }
    const Tensor is_first = starts_run(rows, site);
    const Tensor places =
        reshape({nonzero({is_first, site}), site}, {-1});  // of the first of each run
    Shape shape = slices.shape();
    shape[0] = places.size(0);
    UniqueResult result;
    const Tensor found = index_select({rows, site}, 0, {places, site}).reshape(shape, site);
    result.output = dim && x.dim() > 0 ? movedim({found, site}, 0, d) : found;
    if (with_inverse) {
      Tensor group = sub({cumsum({is_first, site}, 0), site}, 1);
      if (sorts)
        group = scatter({zeros_like({group, site}), site}, 0, {order, site}, {group, site});
      result.inverse_indices = dim ? group : group.reshape(x.shape(), site);
    }
    if (with_counts) {
      const Tensor end = mul({ones_like({narrow({places, site}, 0, 0, 1), site}), site}, n);
      result.counts = diff({places, site}, {.append = end});
    }
    return result;
  });
}

}  // namespace

UniqueResult unique(const TensorArg& x, const UniqueOptions& options) {
  return unique_of(x, true, options.return_inverse, options.return_counts, options.dim, "unique");
}

UniqueResult unique_consecutive(const TensorArg& x, const UniqueConsecutiveOptions& options) {
  return unique_of(x, false, options.return_inverse, options.return_counts, options.dim,
                   "unique_consecutive");
}

Tensor bincount(const TensorArg& x, const BincountOptions& options) {
  return ops::named("bincount", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    const bool has_weights = options.weights.defined();
    if (x->dim() != 1 || is_floating(x->dtype()) || x->dtype() == DType::kBool ||
        (has_weights && options.weights.shape() != x->shape()) || options.minlength < 0) {
      throw InvalidArgument(
          str("[bincount] takes a vector of integers, weights of its shape and minlength >= 0; ",
              "received ", x->meta(), ", minlength ", options.minlength),
          site);
    }
    const Tensor places = cast(x, DType::kInt64);
    int64_t count = options.minlength;
    if (x->numel() > 0) {
      const int64_t least = ops::size_in("bincount", min({places, site}), site);
      if (least < 0) {
        throw InvalidArgument(str("[bincount] element ", least, " is negative"), site);
      }
      count = std::max(count, ops::size_in("bincount", max({places, site}), site) + 1);
    }
    // Every element counts as the same one.
    Tensor weights = expand({add({positions(x, 1, site), site}, 1), site}, x->shape());
    if (has_weights) {
      const bool is_narrow = options.weights.dtype() == DType::kFloat32;
      weights =
          cast({options.weights, site}, is_narrow ? DType::kFloat32 : DType::kFloat64).detach();
    }
    const Tensor empty = zeros_like({positions(x, count, site), site});
    const Tensor none = cast({empty, site}, weights.dtype());
    return scatter_add({none, site}, 0, {places, site}, {weights, site});
  });
}

Tensor histc(const TensorArg& x, const HistcOptions& options) {
  return ops::named("histc", x.site(), [&]() -> Tensor {
    const Site site = x.site();
    if (!is_floating(x->dtype()) || options.bins < 1 || !(options.min <= options.max) ||
        !std::isfinite(options.min) || !std::isfinite(options.max)) {
      throw InvalidArgument(
          str("[histc] takes floating numbers, bins > 0 and finite min <= max; received ",
              x->meta(), ", ", options.bins, " bins from ", options.min, " to ", options.max),
          site);
    }
    const Tensor values = x->detach();
    Tensor low;
    Tensor high;
    if (options.min == options.max && x->numel() > 0) {
      low = min({values, site});
      high = max({values, site});
      const Tensor is_point = eq({low, site}, high);
      low = where({is_point, site}, {sub({low, site}, 1), site}, {low, site});
      high = where({is_point, site}, {add({high, site}, 1), site}, {high, site});
    } else {
      const bool is_point = options.min == options.max;
      low = ops::number_like({values, site}, options.min - (is_point ? 1 : 0));
      high = ops::number_like({values, site}, options.max + (is_point ? 1 : 0));
    }
    if (x->device() == DeviceType::kCpu)
      return dispatch(ops::kHistc, {&values, &low, &high}, ops::HistcAttrs{options.bins}, site);
    const Tensor width = sub({high, site}, low);
    const Tensor distance = sub({values, site}, low);
    const Tensor is_inside =
        logical_and({ge({values, site}, low), site}, {le({values, site}, high), site});
    const Tensor bins =
        mul({div({distance, site}, width), site}, static_cast<double>(options.bins));
    const Tensor inside = where({is_inside, site}, {bins, site}, 0);
    const Tensor place =
        clamp({cast({inside, site}, DType::kInt64), site}, {.max = options.bins - 1});
    const Tensor none =
        cast({zeros_like({positions(values, options.bins, site), site}), site}, x->dtype());
    const Tensor counted = cast({is_inside, site}, x->dtype());
    return scatter_add({none, site}, 0, {place.flatten(), site}, {counted.flatten(), site});
  });
}

Tensor ReduceMethods::bincount(Site site) const {
  return flow::bincount({self(), site});
}

Tensor ReduceMethods::bincount(const BincountOptions& options, Site site) const {
  return flow::bincount({self(), site}, options);
}

Tensor ReduceMethods::histc(const HistcOptions& options, Site site) const {
  return flow::histc({self(), site}, options);
}

UniqueResult IndexMethods::unique(Site site) const {
  return flow::unique(TensorArg(self(), site));
}

UniqueResult IndexMethods::unique(const UniqueOptions& options, Site site) const {
  return flow::unique(TensorArg(self(), site), options);
}

UniqueResult IndexMethods::unique_consecutive(Site site) const {
  return flow::unique_consecutive(TensorArg(self(), site));
}

UniqueResult IndexMethods::unique_consecutive(const UniqueConsecutiveOptions& options,
                                              Site site) const {
  return flow::unique_consecutive(TensorArg(self(), site), options);
}

}  // namespace flow
