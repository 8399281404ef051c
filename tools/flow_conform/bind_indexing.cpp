// Gathering, scattering, embedding and x[...].
#include "ops/creation/copy.h"
#include "ops/index/embedding.h"
#include "ops/index/gather.h"
#include "ops/index/index.h"
#include "ops/index/scatter_reduce.h"
#include "ops/index/selection.h"
#include "ops/shape/arrange.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

// The inputs between x and the last one, in order.
std::vector<Tensor> indices_of(Case& c, size_t last) {
  std::vector<Tensor> indices;
  for (size_t i = 1; i < last; ++i)
    indices.push_back(c.in(i));
  return indices;
}

Tensor put(Case& c) {
  IndexPutOptions options;
  c.attrs.read("accumulate", options.accumulate);
  const size_t last = c.num_inputs() - 1;
  return index_put(c.in(0), indices_of(c, last), c.in(last), options);
}

Tensor scattered(Case& c) {
  ScatterOptions options;
  const bool is_plain = !c.attrs.read("reduce", options.reduce);
  const auto dim = c.attrs.get<int64_t>("dim");
  if (c.num_inputs() > 2) {
    return is_plain ? scatter(c.in(0), dim, c.in(1), c.in(2))
                    : scatter(c.in(0), dim, c.in(1), c.in(2), options);
  }
  const auto value = c.attrs.get<Scalar>("value");
  return is_plain ? scatter(c.in(0), dim, c.in(1), value)
                  : scatter(c.in(0), dim, c.in(1), value, options);
}

Tensor scatter_reduced(Case& c) {
  ScatterReduceOptions options;
  c.attrs.read("include_self", options.include_self);
  const auto dim = c.attrs.get<int64_t>("dim");
  return scatter_reduce(c.in(0), dim, c.in(1), c.in(2), c.attrs.get<std::string>("reduce"),
                        options);
}

Tensor embedded(Case& c) {
  EmbeddingOptions options;
  c.attrs.read("padding_idx", options.padding_idx);
  c.attrs.read("max_norm", options.max_norm);
  c.attrs.read("norm_type", options.norm_type);
  c.attrs.read("scale_grad_by_freq", options.scale_grad_by_freq);
  c.attrs.only("sparse", false);
  // Writes the rows that are too long, so it gets a copy of the case's tensor.
  const Tensor weight = options.max_norm ? clone(c.in(1)) : c.in(1);
  return embedding(c.in(0), weight, options);
}

}  // namespace

void bind_indexing(Bindings& table) {
  table.add("slice", index_by_expression);
  table.add("index", [](Case& c) { return index(c.in(0), indices_of(c, c.num_inputs())); });
  table.add({"index_put", "index_put_"}, put);
  table.add("index_select",
            [](Case& c) { return index_select(c.in(0), c.attrs.get<int64_t>("dim"), c.in(1)); });
  table.add("gather", [](Case& c) {
    c.attrs.only("sparse_grad", false);
    return gather(c.in(0), c.attrs.get<int64_t>("dim"), c.in(1));
  });
  table.add({"scatter", "scatter_"}, scattered);
  table.add({"scatter_reduce", "scatter_reduce_"}, scatter_reduced);
  table.add({"scatter_add", "scatter_add_"}, [](Case& c) {
    return scatter_add(c.in(0), c.attrs.get<int64_t>("dim"), c.in(1), c.in(2));
  });
  table.add("take", [](Case& c) { return take(c.in(0), c.in(1)); });
  table.add("take_along_dim", [](Case& c) {
    if (!c.attrs.has("dim")) return take_along_dim(c.in(0), c.in(1));
    return take_along_dim(c.in(0), c.in(1), c.attrs.get<int64_t>("dim"));
  });
  table.add({"index_add", "index_add_"}, [](Case& c) {
    const auto alpha = c.attrs.get<double>("alpha", 1.0);
    return index_add(c.in(0), c.attrs.get<int64_t>("dim"), c.in(1), c.in(2), alpha);
  });
  table.add("argwhere", [](Case& c) { return argwhere(c.in(0)); });
  table.add("masked_select", [](Case& c) { return masked_select(c.in(0), c.in(1)); });
  table.add("nonzero", [](Case& c) {
    c.attrs.only("as_tuple", false);
    return nonzero(c.in(0));
  });
  table.add("nonzero_static", [](Case& c) {
    NonzeroStaticOptions options;
    options.size = c.attrs.get<int64_t>("size");
    c.attrs.read("fill_value", options.fill_value);
    return nonzero_static(c.in(0), options);
  });
  table.add("one_hot",
            [](Case& c) { return one_hot(c.in(0), c.attrs.get<int64_t>("num_classes", -1)); });
  table.add("embedding", embedded);
}

}  // namespace flow::conform
