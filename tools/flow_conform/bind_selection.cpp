// Selection of elements by value or position, and tensors split and joined by blocks.
#include "ops/index/selection.h"
#include "ops/shape/arrange.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

auto cut(std::vector<Tensor> (*split)(const TensorArg&, const Sections&)) {
  return [split](Case& c) -> Outputs {
    if (c.attrs.has("sections")) return split(c.in(0), c.attrs.get<int64_t>("sections"));
    return split(c.in(0), c.attrs.get<Ints>("indices").values());
  };
}

}  // namespace

void bind_selection(Bindings& table) {
  table.add("isin", [](Case& c) {
    IsinOptions options;
    c.attrs.read("assume_unique", options.assume_unique);
    c.attrs.read("invert", options.invert);
    return isin(c.in(0), c.in(1), options);
  });
  table.add("index_fill", [](Case& c) {
    return index_fill(c.in(0), c.attrs.get<int64_t>("dim"), c.in(1), c.attrs.get<Scalar>("value"));
  });
  table.add("index_copy", [](Case& c) {
    return index_copy(c.in(0), c.attrs.get<int64_t>("dim"), c.in(1), c.in(2));
  });
  table.add("masked_scatter", [](Case& c) { return masked_scatter(c.in(0), c.in(1), c.in(2)); });
  table.add("hsplit", cut(hsplit));
  table.add("vsplit", cut(vsplit));
  table.add("dsplit", cut(dsplit));
  table.add("block_diag", [](Case& c) { return block_diag(c.all()); });
}

}  // namespace flow::conform
