// Recurrent layers (LSTM, GRU) over whole sequences. T is the length of a sequence, N the batch
// size.
#pragma once

#include <string>
#include <vector>

#include "nn/module.h"
#include "ops/linear/recurrent.h"

namespace flow::nn {

struct RecurrentOptions {
  int64_t num_layers = 1;
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // probability of dropping an output of any layer but the last, in training
  bool bidirectional = false;
  // LSTM only: if > 0, hidden states are projected to this size by weight_hr, 0 <= proj_size <
  // hidden_size (Sak et al. 2014).
  int64_t proj_size = 0;
};

// The parameters that the layers share. Layer i has weight_ih_l{i} (gates × hidden, input),
// weight_hh_l{i} (gates × hidden, state), bias_ih_l{i} and bias_hh_l{i} (gates × hidden), and with
// proj_size weight_hr_l{i} (proj_size, hidden). Names of the backward direction end in _reverse.
// The state size is proj_size if that is set, else hidden. All are initialised as U(-1/√hidden,
// 1/√hidden).
class RecurrentWeights {
 public:
  struct Direction {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
  };

  // Ordered by layer; the forward direction of a layer comes before the backward one.
  std::vector<Direction> directions;

 protected:
  RecurrentWeights(const char* layer, int64_t hidden_size, RecurrentOptions options);
  // Makes the parameters and fills `directions`. Returns names and tensors in PyTorch's order.
  std::vector<std::pair<std::string, Tensor>> make(int64_t input_size, int64_t num_gates);

  // The state of one direction of one layer, before the first or after the last step.
  struct CellState {
    Tensor h, c;
  };

  // One step: maps the gates of the input, (N, gates × hidden), and the previous state to the new
  // state.
  using Step = CellState (*)(const Tensor& gates, const CellState& before,
                             const Direction& weights);

  struct Run {
    Tensor output;
    std::vector<CellState> last;  // one per entry of `directions`
  };

  // x: (T, N, input), or with batch_first (N, T, input).
  Run run(const Tensor& x, const std::vector<CellState>& first, bool is_training, Step step) const;
  // Splits the given states, (directions, N, state), by direction; undefined states become zeros.
  std::vector<CellState> first_states(const Tensor& x, const Tensor& h, const Tensor& c,
                                      bool has_cell) const;

  int64_t state_size() const { return options_.proj_size > 0 ? options_.proj_size : hidden_size_; }

  const char* layer_;
  int64_t input_size_ = 0;
  int64_t hidden_size_;
  RecurrentOptions options_;
};

struct LstmResult {
  Tensor output;  // (T, N, directions × state); (N, T, …) with batch_first
  Tensor h, c;    // states after the last step, (num_layers × directions, N, size)
};

// Long short-term memory (Hochreiter and Schmidhuber 1997) with gates i, f, g, o: c = σ(f) c + σ(i)
// tanh(g), h = σ(o) tanh(c). x: (T, N, input_size), (N, T, input_size) with batch_first, or (T,
// input_size) for one sequence; then the results lack the dim N.
class LSTM : public Module<LSTM>, public RecurrentWeights {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {});
  // first.hidden: (num_layers × directions, N, state), first.cell: (num_layers × directions, N,
  // hidden). An undefined state means zeros.
  LstmResult forward(const Tensor& x, const LstmState& first = {});
};

struct GruResult {
  Tensor output;  // (T, N, directions × hidden); (N, T, …) with batch_first
  Tensor h;
};

// Gated recurrent unit (Cho et al. 2014) with gates r, z, n: n = tanh(W x + b + σ(r) (U h + b')), h
// = (1 - σ(z)) n + σ(z) h. x: as for LSTM.
class GRU : public Module<GRU>, public RecurrentWeights {
 public:
  GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {});
  // first: (num_layers × directions, N, hidden). Undefined means zeros. A proj_size is
  // InvalidArgument.
  GruResult forward(const Tensor& x, const Tensor& first = Tensor());
};

}  // namespace flow::nn
