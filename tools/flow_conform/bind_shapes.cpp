// Views, and ops that join, repeat and split.
#include "ops/creation/copy.h"
#include "ops/shape/arrange.h"
#include "ops/shape/concat.h"
#include "ops/shape/diagonal.h"
#include "ops/shape/slice.h"
#include "ops/shape/view.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

// The names that PyTorch's functions and methods use for a shape argument.
const Names kShape = {"shape", "size", "sizes"};

void bind_views(Bindings& table) {
  table.add("reshape", [](Case& c) { return reshape(c.in(0), c.attrs.get<Shape>(kShape)); });
  table.add("view", [](Case& c) {
    c.attrs.only("dtype", nullptr);
    return view(c.in(0), c.attrs.get<Shape>(kShape));
  });
  table.add("expand", [](Case& c) { return expand(c.in(0), c.attrs.get<Shape>(kShape)); });
  table.add("broadcast_to",
            [](Case& c) { return broadcast_to(c.in(0), c.attrs.get<Shape>(kShape)); });
  table.add("reshape_as", [](Case& c) { return reshape_as(c.in(0), c.in(1)); });
  table.add("view_as", [](Case& c) { return view_as(c.in(0), c.in(1)); });
  table.add("expand_as", [](Case& c) { return expand_as(c.in(0), c.in(1)); });
  table.add("flatten", [](Case& c) {
    return flatten(c.in(0), c.attrs.get<int64_t>("start_dim", 0),
                   c.attrs.get<int64_t>("end_dim", -1));
  });
  table.add("squeeze", [](Case& c) {
    if (!c.attrs.has("dim")) return squeeze(c.in(0));
    const auto dims = c.attrs.get<Ints>("dim");
    return dims.size() == 1 ? squeeze(c.in(0), dims[0]) : squeeze(c.in(0), dims.values());
  });
  table.add("unsqueeze", [](Case& c) { return unsqueeze(c.in(0), c.attrs.get<int64_t>("dim")); });
  table.add("permute", [](Case& c) { return permute(c.in(0), c.attrs.get<Ints>("dims")); });
  table.add("transpose", [](Case& c) {
    const auto dim0 = c.attrs.get<int64_t>({"dim0", "axis0"});
    return transpose(c.in(0), dim0, c.attrs.get<int64_t>({"dim1", "axis1"}));
  });
  table.add("swapaxes", [](Case& c) {
    const auto axis0 = c.attrs.get<int64_t>({"axis0", "dim0"});
    return swapaxes(c.in(0), axis0, c.attrs.get<int64_t>({"axis1", "dim1"}));
  });
  table.add("swapdims", [](Case& c) {
    const auto dim0 = c.attrs.get<int64_t>({"dim0", "axis0"});
    return swapdims(c.in(0), dim0, c.attrs.get<int64_t>({"dim1", "axis1"}));
  });
  table.add("t", [](Case& c) { return t(c.in(0)); });
  table.add({"movedim", "moveaxis"}, [](Case& c) {
    const auto source = c.attrs.get<Ints>("source");
    return movedim(c.in(0), source, c.attrs.get<Ints>("destination"));
  });
  table.add("diagonal", [](Case& c) {
    return diagonal(c.in(0), c.attrs.get<int64_t>("offset", 0), c.attrs.get<int64_t>("dim1", 0),
                    c.attrs.get<int64_t>("dim2", 1));
  });
  table.add("diag_embed", [](Case& c) {
    return diag_embed(c.in(0), c.attrs.get<int64_t>("offset", 0), c.attrs.get<int64_t>("dim1", -2),
                      c.attrs.get<int64_t>("dim2", -1));
  });
  table.add("diag", [](Case& c) { return diag(c.in(0), c.attrs.get<int64_t>("diagonal", 0)); });
}

void bind_copies(Bindings& table) {
  table.add("contiguous", [](Case& c) { return contiguous(c.in(0)); });
  table.add("clone", [](Case& c) { return clone(c.in(0)); });
  table.add("detach", [](Case& c) { return c.in(0).detach(); });
  table.add({"cat", "concat", "concatenate"}, [](Case& c) {
    return cat(c.all(), c.attrs.get<int64_t>({"dim", "axis"}, 0));
  });
  table.add("stack", [](Case& c) { return stack(c.all(), c.attrs.get<int64_t>("dim", 0)); });
  table.add("repeat", [](Case& c) {
    return repeat(c.in(0), c.attrs.get<Ints>({"repeats", "sizes", "size"}));
  });
  table.add("tile", [](Case& c) { return tile(c.in(0), c.attrs.get<Ints>("dims")); });
  table.add("flip", [](Case& c) { return flip(c.in(0), c.attrs.get<Ints>("dims")); });
  table.add("roll", [](Case& c) {
    return roll(c.in(0), c.attrs.get<Ints>("shifts"), c.attrs.get<Ints>("dims", Ints()));
  });
  table.add("pad", [](Case& c) {
    PadOptions options;
    c.attrs.read("mode", options.mode);
    c.attrs.read("value", options.value);
    return pad(c.in(0), c.attrs.get<Ints>({"pad", "padding"}), options);
  });
  table.add("tril", [](Case& c) { return tril(c.in(0), c.attrs.get<int64_t>("diagonal", 0)); });
  table.add("triu", [](Case& c) { return triu(c.in(0), c.attrs.get<int64_t>("diagonal", 0)); });
}

void bind_arranged(Bindings& table) {
  table.add("atleast_1d", [](Case& c) { return atleast_1d(c.in(0)); });
  table.add("atleast_2d", [](Case& c) { return atleast_2d(c.in(0)); });
  table.add("atleast_3d", [](Case& c) { return atleast_3d(c.in(0)); });
  table.add("hstack", [](Case& c) { return hstack(c.all()); });
  table.add({"vstack", "row_stack"}, [](Case& c) { return vstack(c.all()); });
  table.add("dstack", [](Case& c) { return dstack(c.all()); });
  table.add("column_stack", [](Case& c) { return column_stack(c.all()); });
  table.add("tensor_split", [](Case& c) {
    const Names cuts = {"indices_or_sections", "sections", "indices"};
    const auto dim = c.attrs.get<int64_t>("dim", 0);
    if (c.attrs.json(cuts).is_array()) {
      return tensor_split(c.in(0), c.attrs.get<Ints>(cuts).values(), dim);
    }
    return tensor_split(c.in(0), c.attrs.get<int64_t>(cuts), dim);
  });
  table.add("unflatten", [](Case& c) {
    const auto dim = c.attrs.get<int64_t>("dim");
    return unflatten(c.in(0), dim, c.attrs.get<Shape>(kShape));
  });
  table.add("fliplr", [](Case& c) { return fliplr(c.in(0)); });
  table.add("flipud", [](Case& c) { return flipud(c.in(0)); });
  table.add("rot90", [](Case& c) {
    return rot90(c.in(0), c.attrs.get<int64_t>("k", 1), c.attrs.get<Ints>("dims", Ints{0, 1}));
  });
  table.add("broadcast_tensors", [](Case& c) { return broadcast_tensors(c.all()); });
  table.add("meshgrid", [](Case& c) {
    MeshgridOptions options;
    c.attrs.read("indexing", options.indexing);
    return meshgrid(c.all(), options);
  });
  table.add("repeat_interleave", [](Case& c) {
    const auto repeats = c.attrs.get<int64_t>("repeats");
    if (!c.attrs.has("dim")) return repeat_interleave(c.in(0), repeats);
    return repeat_interleave(c.in(0), repeats, c.attrs.get<int64_t>("dim"));
  });
}

}  // namespace

void bind_shapes(Bindings& table) {
  bind_views(table);
  bind_copies(table);
  bind_arranged(table);
  table.add("split", [](Case& c) {
    const Names sizes = {"split_size_or_sections", "split_size", "sections", "split_sizes"};
    const auto dim = c.attrs.get<int64_t>("dim", 0);
    if (c.attrs.json(sizes).is_array()) {
      return split(c.in(0), c.attrs.get<Ints>(sizes).values(), dim);
    }
    return split(c.in(0), c.attrs.get<int64_t>(sizes), dim);
  });
  table.add("chunk", [](Case& c) {
    return chunk(c.in(0), c.attrs.get<int64_t>("chunks"), c.attrs.get<int64_t>("dim", 0));
  });
  table.add("unbind", [](Case& c) { return unbind(c.in(0), c.attrs.get<int64_t>("dim", 0)); });
  table.add("narrow", [](Case& c) {
    const auto dim = c.attrs.get<int64_t>("dim");
    const auto start = c.attrs.get<int64_t>("start");
    return narrow(c.in(0), dim, start, c.attrs.get<int64_t>("length"));
  });
  table.add("select", [](Case& c) {
    const auto dim = c.attrs.get<int64_t>("dim");
    return select(c.in(0), dim, c.attrs.get<int64_t>("index"));
  });
}

}  // namespace flow::conform
