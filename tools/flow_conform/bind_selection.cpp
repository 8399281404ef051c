// Selection of elements by value or position, and tensors split and joined by blocks.
#include "ops/index/selection.h"
#include "ops/shape/arrange.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

template <class Even, class Before>
auto cut(Even even, Before before) {
  return [=](Case& c) -> Outputs {
    if (c.attrs.has("sections")) return even(c.in(0), c.attrs.get<int64_t>("sections"));
    return before(c.in(0), c.attrs.get<Ints>("indices").values());
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
  using Parts = std::vector<Tensor>;
  using Even = Parts (*)(const TensorArg&, int64_t);
  using Before = Parts (*)(const TensorArg&, const std::vector<int64_t>&);
  table.add("hsplit", cut(Even(hsplit), Before(hsplit)));
  table.add("vsplit", cut(Even(vsplit), Before(vsplit)));
  table.add("dsplit", cut(Even(dsplit), Before(dsplit)));
  table.add("block_diag", [](Case& c) { return block_diag(c.all()); });
}

}  // namespace flow::conform
