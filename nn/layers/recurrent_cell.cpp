#include "nn/layers/recurrent_cell.h"

#include <cmath>

#include "core/error.h"
#include "nn/init.h"
#include "nn/layers/checks.h"
#include "ops/creation/creation.h"
#include "ops/creation/whole_like.h"

namespace flow::nn {

namespace {

std::string option_text(int64_t input_size, int64_t hidden_size, bool has_bias) {
  return str(input_size, ", ", hidden_size, has_bias ? "" : ", bias=False");
}

}  // namespace

CellWeights::CellWeights(const char* cell, int64_t input_size, int64_t hidden_size,
                         int64_t num_gates, bool has_bias, Site site)
    : cell_(cell), input_size_(input_size), hidden_size_(hidden_size) {
  const SiteScope scope(site);
  internal::check_positive(cell, {{"input_size", input_size}, {"hidden_size", hidden_size}}, site);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden_size));
  const auto drawn = [&](const Shape& shape) {
    return init::uniform_(empty(shape), -bound, bound);
  };
  weight_ih = drawn({num_gates * hidden_size, input_size});
  weight_hh = drawn({num_gates * hidden_size, hidden_size});
  if (!has_bias) return;
  bias_ih = drawn({num_gates * hidden_size});
  bias_hh = drawn({num_gates * hidden_size});
}

Tensor CellWeights::checked_state(const Tensor& x, const Tensor& state) const {
  if ((x.dim() != 1 && x.dim() != 2) || x.size(-1) != input_size_) {
    throw InvalidArgument(str("[", cell_, "] x must be (N, ", input_size_, ") or (", input_size_,
                              "); received ", x.meta(),
                              "; give one step of the sequence, or make the cell with its "
                              "input_size"));
  }
  const Shape wanted = x.dim() == 1 ? Shape{hidden_size_} : Shape{x.size(0), hidden_size_};
  if (state.defined()) {
    if (state.shape() == wanted) return state;
    throw InvalidArgument(str("[", cell_, "] the state has the wrong shape; received ",
                              state.meta(), "; give one of shape ", wanted));
  }
  return zeros(wanted, ops::whole_like(x));
}

LSTMCell::LSTMCell(int64_t input_size, int64_t hidden_size, const CellOptions& options, Site site)
    : CellModule("LSTMCell", input_size, hidden_size, 4, options.bias, site) {
  const SiteScope scope(site);
  set_extra_repr(option_text(input_size, hidden_size, options.bias));
}

LstmState LSTMCell::forward(const Tensor& x, const LstmState& state) {
  return lstm_cell(x, {checked_state(x, state.hidden), checked_state(x, state.cell)}, weight_ih,
                   weight_hh, bias_ih, bias_hh);
}

GRUCell::GRUCell(int64_t input_size, int64_t hidden_size, const CellOptions& options, Site site)
    : CellModule("GRUCell", input_size, hidden_size, 3, options.bias, site) {
  const SiteScope scope(site);
  set_extra_repr(option_text(input_size, hidden_size, options.bias));
}

Tensor GRUCell::forward(const Tensor& x, const Tensor& hidden) {
  return gru_cell(x, checked_state(x, hidden), weight_ih, weight_hh, bias_ih, bias_hh);
}

RNNCell::RNNCell(int64_t input_size, int64_t hidden_size, const RnnCellOptions& options, Site site)
    : CellModule("RNNCell", input_size, hidden_size, 1, options.bias, site),
      is_relu_(options.nonlinearity == "relu") {
  const SiteScope scope(site);
  if (!is_relu_ && options.nonlinearity != "tanh") {
    throw InvalidArgument(str("[RNNCell] the nonlinearity is unknown; received '",
                              options.nonlinearity, "'; give tanh or relu"));
  }
  set_extra_repr(option_text(input_size, hidden_size, options.bias) +
                 (is_relu_ ? ", nonlinearity=relu" : ""));
}

Tensor RNNCell::forward(const Tensor& x, const Tensor& hidden) {
  const Tensor before = checked_state(x, hidden);
  return is_relu_ ? rnn_relu_cell(x, before, weight_ih, weight_hh, bias_ih, bias_hh)
                  : rnn_tanh_cell(x, before, weight_ih, weight_hh, bias_ih, bias_hh);
}

}  // namespace flow::nn
