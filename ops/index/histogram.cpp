#include "ops/index/histogram.h"

#include <cmath>

#include "core/context.h"
#include "core/error.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/ternary.h"
#include "ops/elementwise/where.h"
#include "ops/index/gather.h"
#include "ops/index/search.h"
#include "ops/named_errors.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"

namespace flow {

namespace {

void check_points(const char* name, const TensorArg& x, size_t dims,
                  const HistogramOptions& options) {
  if (!is_floating(x->dtype())) {
    throw InvalidArgument(
        str("[", name, "] needs a floating dtype; received ", x->dtype(), "; cast x"), x.site());
  }
  if (x->dim() < 1 || static_cast<size_t>(x->size(-1)) != dims) {
    throw InvalidArgument(str("[", name, "] takes x (…, D) and bins for each of the D dims; ",
                              "received x ", x->shape(), " and bins for ", dims, " dims"),
                          x.site());
  }
  if (!options.range.empty() && options.range.size() != dims) {
    throw InvalidArgument(str("[", name, "] range has ", options.range.size(),
                              " pairs; give one for each of the ", dims, " dims, or none"),
                          x.site());
  }
  Shape points = x->shape();
  points.erase(points.size() - 1);
  if (options.weight.defined() && options.weight.shape() != points) {
    throw InvalidArgument(str("[", name, "] weight has the shape ", options.weight.shape(),
                              "; give ", points, ", one number for each point"),
                          x.site());
  }
}

void check_extent(const char* name, double low, double high, size_t dim, Site site) {
  if (std::isfinite(low) && std::isfinite(high) && low <= high) return;
  throw InvalidArgument(str("[", name, "] needs a finite range with low <= high; received ", low,
                            " to ", high, " for dim ", dim),
                        site);
}

// The edges of bins of equal width, over the given range or that of the elements. A trace has no
// values to look at.
Tensor equal_edges(const char* name, const Tensor& column, size_t dim, int64_t bins,
                   const HistogramOptions& options, Site site) {
  const TensorOptions layout = ops::whole_like(column);
  if (!options.range.empty() || column.numel() == 0) {
    auto [low, high] = options.range.empty() ? std::pair(0.0, 1.0) : options.range[dim];
    check_extent(name, low, high, dim, site);
    if (low == high) {
      low -= 0.5;
      high += 0.5;
    }
    return linspace(low, high, bins + 1, layout, site);
  }
  const Tensor low = min({column, site});
  const Tensor high = max({column, site});
  if (thread_state().trace == nullptr) {
    check_extent(name, low.item<double>(site), high.item<double>(site), dim, site);
  }
  const Tensor margin =
      mul({cast({eq({low, site}, {high, site}), site}, column.dtype()), site}, 0.5);
  const Tensor shares = linspace(0, 1, bins + 1, layout, site);
  return lerp({sub({low, site}, {margin, site}), site}, {add({high, site}, {margin, site}), site},
              {shares, site});
}

// The elements of each dim, as vectors.
std::vector<Tensor> columns_of(const TensorArg& x) {
  std::vector<Tensor> columns;
  for (int64_t d = 0; d < x->size(-1); ++d) {
    const Tensor column = select({x->detach(), x.site()}, -1, d);
    columns.push_back(reshape({column, x.site()}, {-1}));
  }
  return columns;
}

HistogramddResult count_points(const TensorArg& x, const std::vector<Tensor>& columns,
                               const std::vector<Tensor>& edges, const HistogramOptions& options) {
  const Site site = x.site();
  Shape shape;
  Tensor place;
  Tensor is_inside;
  for (size_t d = 0; d < edges.size(); ++d) {
    const int64_t bins = edges[d].numel() - 1;
    const Tensor& column = columns[d];
    const Tensor last = select({edges[d], site}, 0, bins);
    const Tensor above = bucketize({column, site}, {edges[d], site}, {.right = true});
    const Tensor bin =
        where({eq({column, site}, {last, site}), site}, bins - 1, {sub({above, site}, 1), site});
    const Tensor is_within = logical_and({ge({bin, site}, 0), site}, {lt({bin, site}, bins), site});
    place = d == 0 ? bin : add({mul({place, site}, bins), site}, {bin, site});
    is_inside = d == 0 ? is_within : logical_and({is_inside, site}, {is_within, site});
    shape.push_back(bins);
  }
  const Tensor weight =
      options.weight.defined()
          ? cast({reshape({options.weight.detach(), site}, {-1}), site}, x->dtype())
          : ones_like({columns[0], site});
  const Tensor counted = where({is_inside, site}, {weight, site}, 0);
  const Tensor target = where({is_inside, site}, {place, site}, 0);
  const Tensor none = zeros({shape.numel()}, ops::whole_like(x), site);
  Tensor hist =
      reshape({scatter_add({none, site}, 0, {target, site}, {counted, site}), site}, shape);
  if (options.density) {
    hist = div({hist, site}, {sum({hist, site}), site});
    for (size_t d = 0; d < edges.size(); ++d) {
      Shape along(std::vector<int64_t>(edges.size(), 1));
      along[static_cast<int64_t>(d)] = edges[d].numel() - 1;
      hist = div({hist, site}, {reshape({diff({edges[d], site}), site}, along), site});
    }
  }
  return {hist, edges};
}

HistogramddResult in_bins(const char* name, const TensorArg& x, const std::vector<int64_t>& bins,
                          const HistogramOptions& options) {
  check_points(name, x, bins.size(), options);
  const std::vector<Tensor> columns = columns_of(x);
  std::vector<Tensor> edges;
  for (size_t d = 0; d < bins.size(); ++d) {
    if (bins[d] < 1) {
      throw InvalidArgument(str("[", name, "] needs at least one bin; received ", bins[d]),
                            x.site());
    }
    edges.push_back(equal_edges(name, columns[d], d, bins[d], options, x.site()));
  }
  return count_points(x, columns, edges, options);
}

HistogramddResult in_edges(const char* name, const TensorArg& x, const std::vector<Tensor>& bins,
                           const HistogramOptions& options) {
  check_points(name, x, bins.size(), options);
  if (!options.range.empty()) {
    throw InvalidArgument(str("[", name, "] takes a range only with a number of bins"), x.site());
  }
  std::vector<Tensor> edges;
  for (const Tensor& own : bins) {
    if (own.dim() != 1 || own.numel() < 2) {
      throw InvalidArgument(
          str("[", name, "] takes a vector of at least two edges; received ", own.meta()),
          x.site());
    }
    edges.push_back(cast({own.detach(), x.site()}, x->dtype()));
  }
  return count_points(x, columns_of(x), edges, options);
}

HistogramResult only_dim(const HistogramddResult& result) {
  return {result.hist, result.bin_edges[0]};
}

}  // namespace

HistogramResult histogram(const TensorArg& x, int64_t bins, const HistogramOptions& options) {
  return ops::named("histogram", x.site(), [&] {
    const Tensor points = unsqueeze(x, -1);
    return only_dim(in_bins("histogram", {points, x.site()}, {bins}, options));
  });
}

HistogramResult histogram(const TensorArg& x, const TensorArg& bins,
                          const HistogramOptions& options) {
  return ops::named("histogram", x.site(), [&] {
    const Tensor points = unsqueeze(x, -1);
    return only_dim(in_edges("histogram", {points, x.site()}, {bins.tensor()}, options));
  });
}

HistogramddResult histogramdd(const TensorArg& x, const std::vector<int64_t>& bins,
                              const HistogramOptions& options) {
  return ops::named("histogramdd", x.site(),
                    [&] { return in_bins("histogramdd", x, bins, options); });
}

HistogramddResult histogramdd(const TensorArg& x, const std::vector<Tensor>& bins,
                              const HistogramOptions& options) {
  return ops::named("histogramdd", x.site(),
                    [&] { return in_edges("histogramdd", x, bins, options); });
}

HistogramResult ReduceMethods::histogram(int64_t bins, Site site) const {
  return flow::histogram({self(), site}, bins);
}

HistogramResult ReduceMethods::histogram(int64_t bins, const HistogramOptions& options,
                                         Site site) const {
  return flow::histogram({self(), site}, bins, options);
}

HistogramResult ReduceMethods::histogram(const TensorArg& bins) const {
  return flow::histogram({self(), bins.site()}, bins);
}

HistogramResult ReduceMethods::histogram(const TensorArg& bins,
                                         const HistogramOptions& options) const {
  return flow::histogram({self(), bins.site()}, bins, options);
}

}  // namespace flow
