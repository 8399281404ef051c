// Bitwise ops, special functions, order statistics, counts and positions.
#include "ops/elementwise/compare.h"
#include "ops/elementwise/special.h"
#include "ops/index/count.h"
#include "ops/index/histogram.h"
#include "ops/index/search.h"
#include "ops/reduce/differences.h"
#include "ops/reduce/order_statistics.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/diagonal.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

using OfOne = Tensor (*)(const TensorArg&);

const Names kDim = {"dim", "axis"};

void bind_special(Bindings& table) {
  const auto unary = [&](const Names& names, OfOne function) {
    table.add(names, [function](Case& c) { return function(c.in(0)); });
  };
  unary("lgamma", lgamma);
  unary("digamma", digamma);
  unary("erfinv", erfinv);
  unary("deg2rad", deg2rad);
  unary("rad2deg", rad2deg);
  unary("trace", trace);
  table.add("polygamma", [](Case& c) { return polygamma(c.attrs.get<int64_t>("n"), c.in(0)); });
  table.add("logit", [](Case& c) {
    LogitOptions options;
    c.attrs.read("eps", options.eps);
    return logit(c.in(0), options);
  });
  table.add("frexp", [](Case& c) -> Outputs {
    const FrexpResult y = frexp(c.in(0));
    return {y.mantissa, y.exponent};
  });
  table.add("heaviside", [](Case& c) { return heaviside(c.in(0), c.in(1)); });
  table.add("logaddexp2", [](Case& c) { return logaddexp2(c.in(0), c.in(1)); });
}

// Pairs of a flat list.
std::vector<std::pair<double, double>> read_range(Case& c) {
  std::vector<double> ends;
  c.attrs.read("range", ends);
  std::vector<std::pair<double, double>> pairs;
  for (size_t i = 0; i + 1 < ends.size(); i += 2)
    pairs.emplace_back(ends[i], ends[i + 1]);
  return pairs;
}

template <class Whole, class AlongDim>
auto whole_or_along_dim(Whole whole, AlongDim along_dim) {
  return [=](Case& c) -> Outputs {
    if (!c.attrs.has(kDim)) return {whole(c.in(0))};
    const bool keepdim = c.attrs.get<bool>("keepdim", false);
    const ValuesIndices y = along_dim(c.in(0), c.attrs.get<int64_t>(kDim), {.keepdim = keepdim});
    return {y.values, y.indices};
  };
}

template <class OfOneRank, class OfRanks>
auto at_quantile(OfOneRank one, OfRanks many) {
  return [=](Case& c) {
    QuantileOptions options;
    c.attrs.read(kDim, options.dim);
    c.attrs.read("keepdim", options.keepdim);
    c.attrs.read("interpolation", options.interpolation);
    if (c.attrs.json("q").is_array()) {
      return many(c.in(0), c.attrs.get<std::vector<double>>("q"), options);
    }
    return one(c.in(0), c.attrs.get<double>("q"), options);
  };
}

void bind_order_statistics(Bindings& table) {
  using Whole = Tensor (*)(const TensorArg&);
  using AlongDim = ValuesIndices (*)(const TensorArg&, int64_t, const KeepdimOptions&);
  table.add("median", whole_or_along_dim(Whole(median), AlongDim(median)));
  table.add("nanmedian", whole_or_along_dim(Whole(nanmedian), AlongDim(nanmedian)));
  table.add("mode", [](Case& c) {
    const bool keepdim = c.attrs.get<bool>("keepdim", false);
    return mode(c.in(0), c.attrs.get<int64_t>(kDim, -1), {.keepdim = keepdim});
  });
  table.add("kthvalue", [](Case& c) {
    KthvalueOptions options;
    c.attrs.read(kDim, options.dim);
    c.attrs.read("keepdim", options.keepdim);
    return kthvalue(c.in(0), c.attrs.get<int64_t>("k"), options);
  });
  using Of = Tensor (*)(const TensorArg&, double, const QuantileOptions&);
  using OfMany = Tensor (*)(const TensorArg&, const std::vector<double>&, const QuantileOptions&);
  table.add("quantile", at_quantile(Of(quantile), OfMany(quantile)));
  table.add("nanquantile", at_quantile(Of(nanquantile), OfMany(nanquantile)));
  table.add("cummax", [](Case& c) { return cummax(c.in(0), c.attrs.get<int64_t>(kDim)); });
  table.add("cummin", [](Case& c) { return cummin(c.in(0), c.attrs.get<int64_t>(kDim)); });
  table.add("logcumsumexp",
            [](Case& c) { return logcumsumexp(c.in(0), c.attrs.get<int64_t>(kDim)); });
  table.add("diff", [](Case& c) {
    DiffOptions options{.prepend = c.named("prepend"), .append = c.named("append")};
    c.attrs.read("n", options.n);
    c.attrs.read(kDim, options.dim);
    return diff(c.in(0), options);
  });
  table.add("nanmean", [](Case& c) {
    const bool keepdim = c.attrs.get<bool>("keepdim", false);
    return nanmean(c.in(0), c.attrs.get<Ints>(kDim, Ints()),
                   {.keepdim = keepdim, .dtype = c.attrs.dtype()});
  });
  table.add("count_nonzero",
            [](Case& c) { return count_nonzero(c.in(0), c.attrs.get<Ints>(kDim, Ints())); });
  table.add("unfold_dim", [](Case& c) {
    return c.in(0).unfold(c.attrs.get<int64_t>("dimension"), c.attrs.get<int64_t>("size"),
                          c.attrs.get<int64_t>("step"));
  });
}

Outputs defined_of(const UniqueResult& result) {
  Outputs outputs = {result.output};
  for (const Tensor& more : {result.inverse_indices, result.counts}) {
    if (more.defined()) outputs.push_back(more);
  }
  return outputs;
}

void bind_counts(Bindings& table) {
  table.add("unique", [](Case& c) -> Outputs {
    UniqueOptions options;
    c.attrs.read("sorted", options.sorted);
    c.attrs.read("return_inverse", options.return_inverse);
    c.attrs.read("return_counts", options.return_counts);
    c.attrs.read(kDim, options.dim);
    return defined_of(unique(c.in(0), options));
  });
  table.add("unique_consecutive", [](Case& c) -> Outputs {
    UniqueConsecutiveOptions options;
    c.attrs.read("return_inverse", options.return_inverse);
    c.attrs.read("return_counts", options.return_counts);
    c.attrs.read(kDim, options.dim);
    return defined_of(unique_consecutive(c.in(0), options));
  });
  table.add("bincount", [](Case& c) {
    BincountOptions options{.weights = c.named("weights")};
    c.attrs.read("minlength", options.minlength);
    return bincount(c.in(0), options);
  });
  table.add("histc", [](Case& c) {
    HistcOptions options;
    c.attrs.read("bins", options.bins);
    c.attrs.read("min", options.min);
    c.attrs.read("max", options.max);
    return histc(c.in(0), options);
  });
  table.add("histogram", [](Case& c) -> Outputs {
    HistogramOptions options;
    options.weight = c.named("weight");
    options.range = read_range(c);
    c.attrs.read("density", options.density);
    const Tensor edges = c.named("edges");
    const HistogramResult y = edges.defined()
                                  ? histogram(c.in(0), edges, options)
                                  : histogram(c.in(0), c.attrs.get<int64_t>("bins"), options);
    return {y.hist, y.bin_edges};
  });
  table.add("histogramdd", [](Case& c) {
    HistogramOptions options;
    options.weight = c.named("weight");
    options.range = read_range(c);
    c.attrs.read("density", options.density);
    const auto bins = c.attrs.get<Ints>("bins");
    const HistogramddResult y =
        histogramdd(c.in(0), std::vector<int64_t>(bins.begin(), bins.end()), options);
    Outputs outputs = {y.hist};
    outputs.insert(outputs.end(), y.bin_edges.begin(), y.bin_edges.end());
    return outputs;
  });
  table.add("gradient", [](Case& c) -> Outputs {
    GradientOptions options;
    c.attrs.read("spacing", options.spacing);
    c.attrs.read("edge_order", options.edge_order);
    const auto dims = c.attrs.get<Ints>(kDim, Ints());
    options.dim.assign(dims.begin(), dims.end());
    if (const Tensor places = c.named("coordinates"); places.defined()) {
      options.coordinates = {places};
    }
    return gradient(c.in(0), options);
  });
  table.add("searchsorted", [](Case& c) {
    SearchsortedOptions options{.sorter = c.named("sorter")};
    c.attrs.read("right", options.right);
    c.attrs.read("out_int32", options.out_int32);
    return searchsorted(c.in(0), c.in(1), options);
  });
  table.add("bucketize", [](Case& c) {
    BucketizeOptions options;
    c.attrs.read("right", options.right);
    c.attrs.read("out_int32", options.out_int32);
    return bucketize(c.in(0), c.in(1), options);
  });
}

}  // namespace

void bind_ranks(Bindings& table) {
  bind_special(table);
  bind_order_statistics(table);
  bind_counts(table);
}

}  // namespace flow::conform
