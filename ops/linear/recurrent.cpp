#include "ops/linear/recurrent.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "ops/autocast.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/unary.h"
#include "ops/linear/matmul.h"
#include "ops/linear/matmul_op.h"
#include "ops/linear/recurrent_op.h"
#include "ops/named_errors.h"

namespace flow {

namespace {

// The weights and biases of a step.
struct Parameters {
  const TensorArg& weight_ih;
  const TensorArg& weight_hh;
  const TensorArg& bias_ih;
  const TensorArg& bias_hh;
};

// The weights have `gates` rows for each element of the state.
void check_rows(const char* op, const TensorArg& x, const Tensor& hidden, int64_t gates,
                const Parameters& parameters) {
  const auto is_matrix = [&](const Tensor& weight, int64_t columns) {
    return weight.shape() == Shape{gates * hidden.size(-1), columns};
  };
  const bool has_dims = x->dim() > 0 && hidden.dim() > 0;
  if (has_dims && is_matrix(parameters.weight_ih, x->size(-1)) &&
      is_matrix(parameters.weight_hh, hidden.size(-1))) {
    const Shape &in = x->shape(), &state = hidden.shape();
    if (std::equal(in.begin(), in.end() - 1, state.begin(), state.end() - 1)) return;
    throw InvalidArgument(
        str("[", op, "] x and the state must have the same sizes in all dims but ",
            "the last; received ", x->meta(), " and ", hidden.meta()),
        x.site());
  }
  throw InvalidArgument(
      str("[", op, "] weights must be (", gates, " H, I) and (", gates, " H, H); received ",
          parameters.weight_ih->shape(), " and ", parameters.weight_hh->shape(), " for x ",
          x->shape(), " and a state ", hidden.shape()),
      x.site());
}

Tensor from_input(const TensorArg& x, const Parameters& parameters) {
  return linear(x, parameters.weight_ih, parameters.bias_ih);
}

Tensor from_state(const Tensor& hidden, const Parameters& parameters) {
  return linear(hidden, parameters.weight_hh, parameters.bias_hh);
}

}  // namespace

LstmState lstm_cell(const TensorArg& x, const LstmState& state, const TensorArg& weight_ih,
                    const TensorArg& weight_hh, const TensorArg& bias_ih,
                    const TensorArg& bias_hh) {
  return ops::named("lstm_cell", x.site(), [&]() -> LstmState {
    const Parameters parameters{weight_ih, weight_hh, bias_ih, bias_hh};
    check_rows("lstm_cell", x, state.hidden, 4, parameters);
    const Tensor old_cell = ops::autocast(state.cell, ops::kLinear.autocast);
    ops::LstmStep step = ops::lstm_gates({from_input(x, parameters), x.site()},
                                         from_state(state.hidden, parameters), old_cell);
    return {std::move(step.hidden), std::move(step.cell)};
  });
}

Tensor gru_cell(const TensorArg& x, const TensorArg& hidden, const TensorArg& weight_ih,
                const TensorArg& weight_hh, const TensorArg& bias_ih, const TensorArg& bias_hh) {
  return ops::named("gru_cell", x.site(), [&]() -> Tensor {
    const Parameters parameters{weight_ih, weight_hh, bias_ih, bias_hh};
    check_rows("gru_cell", x, hidden, 3, parameters);
    return ops::gru_gates({from_input(x, parameters), x.site()}, from_state(hidden, parameters),
                          ops::autocast(hidden, ops::kLinear.autocast));
  });
}

Tensor rnn_tanh_cell(const TensorArg& x, const TensorArg& hidden, const TensorArg& weight_ih,
                     const TensorArg& weight_hh, const TensorArg& bias_ih,
                     const TensorArg& bias_hh) {
  return ops::named("rnn_tanh_cell", x.site(), [&]() -> Tensor {
    const Parameters parameters{weight_ih, weight_hh, bias_ih, bias_hh};
    check_rows("rnn_tanh_cell", x, hidden, 1, parameters);
    return tanh(from_input(x, parameters) + from_state(hidden, parameters));
  });
}

Tensor rnn_relu_cell(const TensorArg& x, const TensorArg& hidden, const TensorArg& weight_ih,
                     const TensorArg& weight_hh, const TensorArg& bias_ih,
                     const TensorArg& bias_hh) {
  return ops::named("rnn_relu_cell", x.site(), [&]() -> Tensor {
    const Parameters parameters{weight_ih, weight_hh, bias_ih, bias_hh};
    check_rows("rnn_relu_cell", x, hidden, 1, parameters);
    return relu(from_input(x, parameters) + from_state(hidden, parameters));
  });
}

}  // namespace flow
