// The elementwise part of LSTM and GRU steps: one pass forward and one backward. Separate ops would
// write and read every gate several times.
#include <array>
#include <utility>
#include <vector>

#include "core/context.h"
#include "core/dispatch.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/recurrent_op.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow::ops {

namespace {

// Checks that there are `gates` rows of gates for each row of the state, both of the input and of
// the state.
void check_operands(const OpContext& ctx, int64_t gates) {
  const TensorMeta& state = ctx.input(2);
  ctx.check(is_floating(state.dtype) && state.dim() > 0, "needs a floating state with dims");
  Shape expected = state.shape;
  expected[expected.size() - 1] *= gates;
  for (int i = 0; i < 2; ++i) {
    ctx.check(ctx.input(i).shape == expected && ctx.input(i).dtype == state.dtype,
              "the sums of the gates must have the state's dtype and shape ", expected);
  }
  for (int i = 3; i < ctx.num_inputs(); ++i) {
    ctx.check(!ctx.has_input(i) ||
                  (ctx.input(i).shape == state.shape && ctx.input(i).dtype == state.dtype),
              "gradients must have the state's shape and dtype");
  }
}

void infer_lstm(InferContext& ctx) {
  check_operands(ctx, 4);
  ctx.add_output_like(2);
  ctx.add_output_like(2);
}

void infer_lstm_backward(InferContext& ctx) {
  check_operands(ctx, 4);
  ctx.add_output_like(0);
  ctx.add_output_like(2);
}

void infer_gru(InferContext& ctx) {
  check_operands(ctx, 3);
  ctx.add_output_like(2);
}

void infer_gru_backward(InferContext& ctx) {
  check_operands(ctx, 3);
  ctx.add_output_like(0);
  ctx.add_output_like(0);
  ctx.add_output_like(2);
}

// Rows are independent. The parts of the gates are separate along the last dim.
void sbp_rows(SbpContext& ctx) {
  for (int64_t dim = 0; dim + 1 < ctx.input(2).dim(); ++dim) {
    std::vector<Sbp> inputs;
    for (int i = 0; i < ctx.num_inputs(); ++i)
      inputs.push_back(ctx.has_input(i) ? sbp::split(dim) : sbp::broadcast);
    ctx.add(inputs, std::vector<Sbp>(static_cast<size_t>(ctx.num_outputs()), sbp::split(dim)));
  }
}

// The new state increases with the old one.
void sbp_forward(SbpContext& ctx) {
  sbp_rows(ctx);
  for (const Sbp side : {sbp::partial_max, sbp::partial_min}) {
    ctx.add({sbp::broadcast, sbp::broadcast, side},
            std::vector<Sbp>(static_cast<size_t>(ctx.num_outputs()), side));
  }
}

// The op is linear in the gradients together.
void sbp_backward(SbpContext& ctx) {
  sbp_rows(ctx);
  std::vector<Sbp> inputs(3, sbp::broadcast);
  for (int i = 3; i < ctx.num_inputs(); ++i)
    inputs.push_back(ctx.has_input(i) ? sbp::partial_sum : sbp::broadcast);
  ctx.add(inputs, std::vector<Sbp>(static_cast<size_t>(ctx.num_outputs()), sbp::partial_sum));
}

// Exponentials of each gate.
Cost cost(const SbpContext& ctx) {
  return {.flops = 20 * static_cast<double>(ctx.input(0).numel)};
}

// The derivative of the logistic function and of tanh by their values.
Tensor slope_of_sigmoid(const Tensor& y) {
  return mul(y, 1 - y);
}

Tensor slope_of_tanh(const Tensor& y) {
  return 1 - square(y);
}

Tensor joined(const std::vector<Tensor>& gates) {
  return cat(gates, -1);
}

// With t = tanh(cell'), d = dcell' + dhidden' o (1 - t^2):
// di = d g i (1 - i), df = d cell f (1 - f), dg = d i (1 - g^2), do = dhidden' t o (1 - o)
// dcell = d f
void grad_lstm(GradContext& ctx) {
  const Tensor dh = ctx.dy(0);
  const Tensor dc = ctx.dy(1);
  if (!dh.defined() && !dc.defined()) return;
  const Tensor of_input = ctx.input(0), of_state = ctx.input(1), cell = ctx.input(2);
  Tensor dgates, dcell;
  if (!thread_state().grad_enabled) {
    const auto gradients = lstm_gates_backward(of_input, of_state, cell, dh, dc);
    dgates = gradients[0];
    dcell = gradients[1];
  } else {
    const std::vector<Tensor> sums = chunk(add(of_input, of_state), 4, -1);
    const Tensor i = sigmoid(sums[0]), f = sigmoid(sums[1]), g = tanh(sums[2]);
    const Tensor o = sigmoid(sums[3]);
    const Tensor t = tanh(add(mul(f, cell), mul(i, g)));
    Tensor d = dc;
    if (dh.defined()) {
      const Tensor through = mul(mul(dh, o), slope_of_tanh(t));
      d = d.defined() ? add(d, through) : through;
    }
    const Tensor d_o = dh.defined() ? mul(mul(dh, t), slope_of_sigmoid(o)) : mul(o, 0);
    dgates = joined({mul(mul(d, g), slope_of_sigmoid(i)), mul(mul(d, cell), slope_of_sigmoid(f)),
                     mul(mul(d, i), slope_of_tanh(g)), d_o});
    dcell = mul(d, f);
  }
  if (ctx.needs(0)) ctx.set(0, dgates);
  if (ctx.needs(1)) ctx.set(1, dgates);
  if (ctx.needs(2)) ctx.set(2, dcell);
}

// y = n + z (h - n): dn = dy (1 - z) (1 - n^2), dz = dy (h - n) z (1 - z), dr = dn s_n r (1 - r)
// with the new gate's sum of the state s_n, whose gradient is dn r; dh = dy z
void grad_gru(GradContext& ctx) {
  const Tensor& dy = ctx.dy();
  if (!dy.defined()) return;
  const Tensor of_input = ctx.input(0), of_state = ctx.input(1), hidden = ctx.input(2);
  if (!thread_state().grad_enabled) {
    const std::array<Tensor, 3> gradients = gru_gates_backward(of_input, of_state, hidden, dy);
    for (int i = 0; i < 3; ++i) {
      if (ctx.needs(i)) ctx.set(i, gradients[static_cast<size_t>(i)]);
    }
    return;
  }
  const std::vector<Tensor> in = chunk(of_input, 3, -1), state = chunk(of_state, 3, -1);
  const Tensor r = sigmoid(add(in[0], state[0])), z = sigmoid(add(in[1], state[1]));
  const Tensor n = tanh(add(in[2], mul(r, state[2])));
  const Tensor dn = mul(mul(dy, 1 - z), slope_of_tanh(n));
  const Tensor dz = mul(mul(dy, sub(hidden, n)), slope_of_sigmoid(z));
  const Tensor dr = mul(mul(dn, state[2]), slope_of_sigmoid(r));
  if (ctx.needs(0)) ctx.set(0, joined({dr, dz, dn}));
  if (ctx.needs(1)) ctx.set(1, joined({dr, dz, mul(dn, r)}));
  if (ctx.needs(2)) ctx.set(2, mul(dy, z));
}

}  // namespace

const OpDef kLstmGates{.name = "lstm_gates",
                       .num_inputs = 3,
                       .num_outputs = 2,
                       .infer = infer_lstm,
                       .sbp = sbp_forward,
                       .grad = grad_lstm,
                       .cost = cost,
                       .saved_inputs = 0b111,
                       .autocast = AutocastRule::kWidest};
const OpDef kLstmGatesBackward{.name = "lstm_gates_backward",
                               .num_inputs = 5,
                               .num_outputs = 2,
                               .infer = infer_lstm_backward,
                               .sbp = sbp_backward,
                               .grad = not_differentiable,
                               .cost = cost};
const OpDef kGruGates{.name = "gru_gates",
                      .num_inputs = 3,
                      .infer = infer_gru,
                      .sbp = sbp_forward,
                      .grad = grad_gru,
                      .cost = cost,
                      .saved_inputs = 0b111,
                      .autocast = AutocastRule::kWidest};
const OpDef kGruGatesBackward{.name = "gru_gates_backward",
                              .num_inputs = 4,
                              .num_outputs = 3,
                              .infer = infer_gru_backward,
                              .sbp = sbp_backward,
                              .grad = not_differentiable,
                              .cost = cost};

void register_recurrent(OpTable& table);

void register_recurrent(OpTable& table) {
  for (const OpDef* op : {&kLstmGates, &kLstmGatesBackward, &kGruGates, &kGruGatesBackward})
    table.add(*op);
}

LstmStep lstm_gates(const TensorArg& of_input, const TensorArg& of_state, const TensorArg& cell) {
  const std::array<const Tensor*, 3> inputs{&of_input.tensor(), &of_state.tensor(), &cell.tensor()};
  std::array<Tensor, 2> outputs;
  Call call{kLstmGates, inputs, nullptr, of_input.site()};
  dispatch(call, outputs.data());
  return {std::move(outputs[0]), std::move(outputs[1])};
}

Tensor gru_gates(const TensorArg& of_input, const TensorArg& of_state, const TensorArg& hidden) {
  return dispatch(kGruGates, {&of_input.tensor(), &of_state.tensor(), &hidden.tensor()},
                  of_input.site());
}

std::array<Tensor, 2> lstm_gates_backward(const Tensor& of_input, const Tensor& of_state,
                                          const Tensor& cell, const Tensor& dhidden,
                                          const Tensor& dcell) {
  const std::array<const Tensor*, 5> inputs{&of_input, &of_state, &cell, &dhidden, &dcell};
  std::array<Tensor, 2> outputs;
  Call call{kLstmGatesBackward, inputs, nullptr, Site::here()};
  dispatch(call, outputs.data());
  return outputs;
}

std::array<Tensor, 3> gru_gates_backward(const Tensor& of_input, const Tensor& of_state,
                                         const Tensor& hidden, const Tensor& dhidden) {
  const std::array<const Tensor*, 4> inputs{&of_input, &of_state, &hidden, &dhidden};
  std::array<Tensor, 3> outputs;
  Call call{kGruGatesBackward, inputs, nullptr, Site::here()};
  dispatch(call, outputs.data());
  return outputs;
}

}  // namespace flow::ops
