// Creation of tensors. Random values and uninitialised memory cannot be compared.
#include "ops/creation/creation.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

// Arguments about memory, which are accepted with their default values.
TensorOptions options_of(Case& c, bool defaults_to_floating) {
  TensorOptions options;
  options.dtype = c.attrs.dtype();
  if (!options.dtype && defaults_to_floating) options.dtype = c.floating();
  c.attrs.only("device", "cpu");
  c.attrs.only("requires_grad", false);
  return options;
}

// Options that are not given are those of x.
TensorOptions dtype_options(Case& c) {
  TensorOptions options;
  options.dtype = c.attrs.dtype();
  return options;
}

Shape shape_of(Case& c) {
  return c.attrs.get<Shape>({"size", "shape", "sizes"});
}

Tensor range(Case& c) {
  const auto end = c.attrs.get<Scalar>("end");
  const auto start = c.attrs.get<Scalar>("start", Scalar(0));
  const auto step = c.attrs.get<Scalar>("step", Scalar(1));
  const bool is_floating = end.is_floating() || start.is_floating() || step.is_floating();
  return arange(start, end, step, options_of(c, is_floating));
}

}  // namespace

void bind_creation(Bindings& table) {
  table.add("zeros", [](Case& c) { return zeros(shape_of(c), options_of(c, true)); });
  table.add("ones", [](Case& c) { return ones(shape_of(c), options_of(c, true)); });
  table.add("full", [](Case& c) {
    const auto value = c.attrs.get<Scalar>("fill_value");
    return full(shape_of(c), value, options_of(c, value.is_floating()));
  });
  table.add("arange", range);
  table.add("linspace", [](Case& c) {
    const auto start = c.attrs.get<Scalar>("start");
    const auto end = c.attrs.get<Scalar>("end");
    return linspace(start, end, c.attrs.get<int64_t>("steps"), options_of(c, true));
  });
  table.add("eye", [](Case& c) {
    const auto n = c.attrs.get<int64_t>("n");
    return eye(n, c.attrs.get<int64_t>("m", n), options_of(c, true));
  });
  table.add("zeros_like", [](Case& c) { return zeros_like(c.in(0), dtype_options(c)); });
  table.add("ones_like", [](Case& c) { return ones_like(c.in(0), dtype_options(c)); });
  table.add("full_like", [](Case& c) {
    return full_like(c.in(0), c.attrs.get<Scalar>("fill_value"), dtype_options(c));
  });
  table.add("new_zeros", [](Case& c) { return new_zeros(c.in(0), shape_of(c), dtype_options(c)); });
  table.add("new_ones", [](Case& c) { return new_ones(c.in(0), shape_of(c), dtype_options(c)); });
  table.add("new_full", [](Case& c) {
    return new_full(c.in(0), shape_of(c), c.attrs.get<Scalar>("fill_value"), dtype_options(c));
  });
}

}  // namespace flow::conform
