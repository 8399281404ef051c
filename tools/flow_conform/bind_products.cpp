// Matrix products, attention, recurrent cells.
#include "ops/linear/attention.h"
#include "ops/linear/einsum.h"
#include "ops/linear/matmul.h"
#include "ops/linear/recurrent.h"
#include "ops/linear/vector_algebra.h"
#include "ops/shape/arrange.h"
#include "tools/flow_conform/case.h"

namespace flow::conform {

namespace {

using OfTwo = Tensor (*)(const TensorArg&, const TensorArg&);

AddmmOptions addmm_options(Case& c) {
  AddmmOptions options;
  c.attrs.read("beta", options.beta);
  c.attrs.read("alpha", options.alpha);
  return options;
}

Tensor attention(Case& c) {
  AttentionOptions options;
  options.attn_mask = c.named({"m", "attn_mask"});
  c.attrs.read("dropout_p", options.dropout_p);
  c.attrs.read("is_causal", options.is_causal);
  c.attrs.read("scale", options.scale);
  c.attrs.read("enable_gqa", options.enable_gqa);
  return scaled_dot_product_attention(c.in(0), c.in(1), c.in(2), options);
}

Tensor tensor_product(Case& c) {
  if (!c.attrs.has("dims")) return tensordot(c.in(0), c.in(1));
  const Json& dims = c.attrs.json("dims");
  if (!dims.is_array()) return tensordot(c.in(0), c.in(1), c.attrs.get<int64_t>("dims"));
  if (dims.size() != 2) throw BadSpec("dims of tensordot must be two lists");
  Ints dims_a;
  Ints dims_b;
  convert(dims[0], dims_a);
  convert(dims[1], dims_b);
  return tensordot(c.in(0), c.in(1), dims_a, dims_b);
}

}  // namespace

void bind_products(Bindings& table) {
  const auto add = [&](const char* name, OfTwo fn) {
    table.add(name, [fn](Case& c) { return fn(c.in(0), c.in(1)); });
  };
  add("matmul", matmul);
  add("mm", mm);
  add("bmm", bmm);
  add("mv", mv);
  add("dot", dot);
  add("outer", outer);
  table.add("addmm", [](Case& c) { return addmm(c.in(0), c.in(1), c.in(2), addmm_options(c)); });
  table.add("baddbmm",
            [](Case& c) { return baddbmm(c.in(0), c.in(1), c.in(2), addmm_options(c)); });
  table.add("linear", [](Case& c) { return linear(c.in(0), c.in(1), c.named("bias")); });
  table.add("einsum", [](Case& c) {
    const auto equation = c.attrs.get<std::string>("equation");
    return einsum(equation, c.all());
  });
  table.add("tensordot", tensor_product);
  table.add({"sdpa", "scaled_dot_product_attention"}, attention);

  table.add("lstm_cell", [](Case& c) -> Outputs {
    const auto [hidden, cell] = lstm_cell(c.named("x"), {c.named("h"), c.named("c")}, c.named("wi"),
                                          c.named("wh"), c.named("bi"), c.named("bh"));
    return {hidden, cell};
  });
  using Cell = Tensor (*)(const TensorArg&, const TensorArg&, const TensorArg&, const TensorArg&,
                          const TensorArg&, const TensorArg&);
  const auto add_cell = [&](const char* name, Cell cell) {
    table.add(name, [cell](Case& c) {
      return cell(c.named("x"), c.named("h"), c.named("wi"), c.named("wh"), c.named("bi"),
                  c.named("bh"));
    });
  };
  add_cell("gru_cell", gru_cell);
  add_cell("rnn_tanh_cell", rnn_tanh_cell);
  add_cell("rnn_relu_cell", rnn_relu_cell);
}

}  // namespace flow::conform
