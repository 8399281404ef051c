// Activations, softmax, dropout.
#include "ops/elementwise/activation.h"
#include "ops/elementwise/unary.h"
#include "ops/norm/softmax.h"
#include "ops/random/dropout.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

// F.relu(x, inplace=False): the in-place form is a separate op.
void add_activation(Bindings& table, const Names& names, Tensor (*fn)(const TensorArg&)) {
  table.add(names, [fn](Case& c) {
    c.attrs.only("inplace", false);
    return fn(c.in(0));
  });
}

Tensor along_dim(Case& c, Tensor (*fn)(const TensorArg&, int64_t, const SoftmaxOptions&)) {
  const auto dim = c.attrs.get<int64_t>("dim");
  return fn(c.in(0), dim, {.dtype = c.attrs.dtype()});
}

}  // namespace

void bind_activations(Bindings& table) {
  add_activation(table, "relu6", relu6);
  add_activation(table, "selu", selu);
  table.add("gelu", [](Case& c) {
    GeluOptions options;
    c.attrs.read("approximate", options.approximate);
    return gelu(c.in(0), options);
  });
  table.add("leaky_relu", [](Case& c) {
    LeakyReluOptions options;
    c.attrs.read("negative_slope", options.negative_slope);
    c.attrs.only("inplace", false);
    return leaky_relu(c.in(0), options);
  });
  table.add("elu", [](Case& c) {
    EluOptions options;
    c.attrs.read("alpha", options.alpha);
    c.attrs.only("inplace", false);
    return elu(c.in(0), options);
  });
  table.add("celu", [](Case& c) {
    CeluOptions options;
    c.attrs.read("alpha", options.alpha);
    c.attrs.only("inplace", false);
    return celu(c.in(0), options);
  });
  table.add("softplus", [](Case& c) {
    SoftplusOptions options;
    c.attrs.read("beta", options.beta);
    c.attrs.read("threshold", options.threshold);
    return softplus(c.in(0), options);
  });
  table.add("hardtanh", [](Case& c) {
    HardtanhOptions options;
    c.attrs.read("min_val", options.min_val);
    c.attrs.read("max_val", options.max_val);
    c.attrs.only("inplace", false);
    return hardtanh(c.in(0), options);
  });
  table.add("prelu", [](Case& c) { return prelu(c.in(0), c.in(1)); });
  table.add("glu", [](Case& c) { return glu(c.in(0), c.attrs.get<int64_t>("dim", -1)); });
  table.add("softmax", [](Case& c) { return along_dim(c, softmax); });
  table.add("log_softmax", [](Case& c) { return along_dim(c, log_softmax); });
  table.add("dropout", [](Case& c) {
    DropoutOptions options;
    c.attrs.read("p", options.p);
    c.attrs.read({"training", "train"}, options.training);
    c.attrs.only("inplace", false);
    return dropout(c.in(0), options);
  });
}

}  // namespace flow::conform
