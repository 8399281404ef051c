// One step of recurrent layers. x: (N, I) or (I); states: (N, H) or (H). Weights have PyTorch's
// layout, in which the rows of the gates follow each other. Biases may be undefined.
#pragma once

#include "core/tensor.h"

namespace flow {

struct LstmState {
  Tensor hidden, cell;
};

// LSTM (Hochreiter and Schmidhuber 1997). weight_ih: (4 H, I), weight_hh: (4 H, H), biases: (4 H),
// gates in the order input, forget, cell, output:
//   i, f, g, o = x weight_ih^T + bias_ih + hidden weight_hh^T + bias_hh
//   cell' = sigmoid(f) cell + sigmoid(i) tanh(g);  hidden' = sigmoid(o) tanh(cell')
// auto [hidden, cell] = lstm_cell(x, state, w_ih, w_hh, b_ih, b_hh)
LstmState lstm_cell(const TensorArg& x, const LstmState& state, const TensorArg& weight_ih,
                    const TensorArg& weight_hh, const TensorArg& bias_ih = Tensor(),
                    const TensorArg& bias_hh = Tensor());

// GRU (Cho et al. 2014) with the reset gate applied after the matrix product. weight_ih: (3 H, I),
// weight_hh: (3 H, H), biases: (3 H), gates in the order reset, update, new:
//   r = sigmoid(x_r + h_r);  z = sigmoid(x_z + h_z);  n = tanh(x_n + r h_n)
//   hidden' = (1 - z) n + z hidden
Tensor gru_cell(const TensorArg& x, const TensorArg& hidden, const TensorArg& weight_ih,
                const TensorArg& weight_hh, const TensorArg& bias_ih = Tensor(),
                const TensorArg& bias_hh = Tensor());

// Elman's cell (Elman 1990): tanh or relu of x weight_ih^T + bias_ih + hidden weight_hh^T +
// bias_hh.
Tensor rnn_tanh_cell(const TensorArg& x, const TensorArg& hidden, const TensorArg& weight_ih,
                     const TensorArg& weight_hh, const TensorArg& bias_ih = Tensor(),
                     const TensorArg& bias_hh = Tensor());
Tensor rnn_relu_cell(const TensorArg& x, const TensorArg& hidden, const TensorArg& weight_ih,
                     const TensorArg& weight_hh, const TensorArg& bias_ih = Tensor(),
                     const TensorArg& bias_hh = Tensor());

}  // namespace flow
