// Reductions, extrema, order statistics, running sums.
#include <cmath>

#include "ops/elementwise/binary.h"
#include "ops/index/sort.h"
#include "ops/linear/similarity.h"
#include "ops/reduce/extrema.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/reduce_rows.h"
#include "ops/reduce/scan.h"
#include "ops/reduce/statistics.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

const Names kDim = {"dim", "axis"};

KeepdimOptions keepdim_options(Case& c) {
  return {.keepdim = c.attrs.get<bool>("keepdim", false)};
}

// x in the dtype that the arguments request, for functions without such an option.
Tensor as_dtype(Case& c) {
  const auto dtype = c.attrs.dtype();
  return dtype ? c.in(0).to(*dtype) : c.in(0);
}

// Binds fn(x, dims, options); without dims it reduces all dims.
template <class Options>
auto over_dims(Tensor (*fn)(const TensorArg&, const Ints&, const Options&)) {
  return [fn](Case& c) {
    Options options;
    c.attrs.read("keepdim", options.keepdim);
    if constexpr (requires { options.dtype; }) options.dtype = c.attrs.dtype();
    return fn(c.in(0), c.attrs.get<Ints>(kDim, Ints()), options);
  };
}

// Binds fn(x) and fn(x, dim, options).
template <class Options>
auto over_dim(Tensor (*whole)(const TensorArg&),
              Tensor (*along_dim)(const TensorArg&, int64_t, const Options&)) {
  return [=](Case& c) -> Tensor {
    if (!c.attrs.has(kDim)) {
      c.attrs.only("keepdim", false);
      return whole(c.in(0));
    }
    Options options;
    c.attrs.read("keepdim", options.keepdim);
    if constexpr (requires { options.dtype; }) options.dtype = c.attrs.dtype();
    return along_dim(c.in(0), c.attrs.get<int64_t>(kDim), options);
  };
}

template <class Whole, class AlongDim, class OfTwo>
auto extremum(Whole whole, AlongDim along_dim, OfTwo of_two) {
  return [=](Case& c) -> Outputs {
    if (c.num_inputs() == 2) return {of_two(c.in(0), c.in(1))};
    if (!c.attrs.has(kDim)) return {whole(c.in(0))};
    const auto dim = c.attrs.get<int64_t>(kDim);
    const ValuesIndices y = along_dim(c.in(0), dim, keepdim_options(c));
    return {y.values, y.indices};
  };
}

VarOptions var_options(Case& c) {
  VarOptions options;
  c.attrs.read("unbiased", options.unbiased);
  c.attrs.read("keepdim", options.keepdim);
  c.attrs.read("correction", options.correction);
  return options;
}

double norm_order(Case& c, const Names& names) {
  if (!c.attrs.has(names)) return 2;
  const Json& order = c.attrs.json(names);
  double p = 2;
  if (order != "fro") convert(order, p);
  return p;
}

void bind_order(Bindings& table) {
  table.add({"sort", "argsort"}, [](Case& c) -> Outputs {
    SortOptions options;
    c.attrs.read(kDim, options.dim);
    c.attrs.read("descending", options.descending);
    c.attrs.read("stable", options.stable);
    if (c.op() == "argsort") return {argsort(c.in(0), options)};
    const ValuesIndices y = sort(c.in(0), options);
    return {y.values, y.indices};
  });
  table.add("topk", [](Case& c) {
    TopkOptions options;
    c.attrs.read(kDim, options.dim);
    c.attrs.read("largest", options.largest);
    c.attrs.read("sorted", options.sorted);
    return topk(c.in(0), c.attrs.get<int64_t>("k"), options);
  });
  table.add("cumsum", [](Case& c) {
    return cumsum(c.in(0), c.attrs.get<int64_t>(kDim), {.dtype = c.attrs.dtype()});
  });
  table.add("cumprod", [](Case& c) {
    return cumprod(c.in(0), c.attrs.get<int64_t>(kDim), {.dtype = c.attrs.dtype()});
  });
}

void bind_row(Bindings& table, const ops::ReduceFacts& facts) {
  if (facts.over_dims != nullptr) table.add(facts.name, over_dims(facts.over_dims));
  if (facts.over_kept != nullptr) table.add(facts.name, over_dims(facts.over_kept));
  if (facts.over_dim != nullptr) table.add(facts.name, over_dim(facts.whole, facts.over_dim));
}

template <class... Row>
void bind_rows(Bindings& table, ops::Rows<Row...> /*rows*/) {
  (bind_row(table, Row::kFacts), ...);
}

}  // namespace

void bind_reductions(Bindings& table) {
  bind_rows(table, ops::ReduceRows());
  using Sum = Tensor (*)(const TensorArg&, const Ints&, const ReduceOptions&);
  table.add("mean", over_dims(Sum(mean)));
  using OverDims = Tensor (*)(const TensorArg&, const Ints&, const KeepdimOptions&);
  table.add("amax", over_dims(OverDims(amax)));
  table.add("amin", over_dims(OverDims(amin)));
  table.add("logsumexp", over_dims(OverDims(logsumexp)));

  using Whole = Tensor (*)(const TensorArg&);
  using AlongDim = Tensor (*)(const TensorArg&, int64_t, const KeepdimOptions&);
  table.add("argmax", over_dim(Whole(argmax), AlongDim(argmax)));
  table.add("argmin", over_dim(Whole(argmin), AlongDim(argmin)));

  using Pair = ValuesIndices (*)(const TensorArg&, int64_t, const KeepdimOptions&);
  using OfTwo = Tensor (*)(const TensorArg&, const TensorArg&);
  table.add("max", extremum(Whole(max), Pair(max), OfTwo(maximum)));
  table.add("min", extremum(Whole(min), Pair(min), OfTwo(minimum)));

  table.add("var",
            [](Case& c) { return var(c.in(0), c.attrs.get<Ints>(kDim, Ints()), var_options(c)); });
  table.add("std", [](Case& c) {
    return flow::std(c.in(0), c.attrs.get<Ints>(kDim, Ints()), var_options(c));
  });
  table.add({"var_mean", "std_mean"}, [](Case& c) -> Outputs {
    const Ints dims = c.attrs.get<Ints>(kDim, Ints());
    const VarOptions options = var_options(c);
    if (c.op() == "std_mean") {
      const StdMean y = std_mean(c.in(0), dims, options);
      return {y.std, y.mean};
    }
    const VarMean y = var_mean(c.in(0), dims, options);
    return {y.var, y.mean};
  });
  table.add("aminmax", [](Case& c) -> Outputs {
    AminmaxOptions options;
    c.attrs.read(kDim, options.dim);
    c.attrs.read("keepdim", options.keepdim);
    const MinMax y = aminmax(c.in(0), options);
    return {y.min, y.max};
  });
  table.add("norm", [](Case& c) {
    NormOptions options{.p = norm_order(c, {"p", "ord"})};
    c.attrs.read(kDim, options.dim);
    c.attrs.read("keepdim", options.keepdim);
    return norm(as_dtype(c), options);
  });
  table.add("vector_norm", [](Case& c) {
    VectorNormOptions options{.ord = norm_order(c, {"ord", "p"})};
    c.attrs.read(kDim, options.dim);
    c.attrs.read("keepdim", options.keepdim);
    return vector_norm(as_dtype(c), options);
  });
  table.add("normalize", [](Case& c) {
    NormalizeOptions options;
    c.attrs.read("p", options.p);
    c.attrs.read(kDim, options.dim);
    c.attrs.read("eps", options.eps);
    return normalize(c.in(0), options);
  });
  table.add("cosine_similarity", [](Case& c) {
    CosineOptions options;
    c.attrs.read(kDim, options.dim);
    c.attrs.read("eps", options.eps);
    return cosine_similarity(c.in(0), c.in(1), options);
  });
  table.add("pairwise_distance", [](Case& c) {
    DistanceOptions options;
    c.attrs.read("p", options.p);
    c.attrs.read("eps", options.eps);
    c.attrs.read("keepdim", options.keepdim);
    return pairwise_distance(c.in(0), c.in(1), options);
  });
  bind_order(table);
}

}  // namespace flow::conform
