// Recurrent layers over whole sequences.
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
  double dropout = 0;  // of the outputs of all layers but the last, in training
  bool bidirectional = false;
  // LSTM alone: hidden states are weight_hr h of that size, 0 < proj_size < hidden_size (Sak et al.
  // 2014); 0: as they are.
  int64_t proj_size = 0;
};

// What the layers share. Parameters of layer i: weight_ih_l{i} (gates × hidden, input), weight_hh_l
// (gates × hidden, state), bias_ih_l, bias_hh_l, with proj_size weight_hr_l (proj_size, hidden);
// those of the backward direction end in _reverse. The states' size is proj_size, else hidden.
// All start as U(-1/√hidden, 1/√hidden).
class RecurrentWeights {
 public:
  struct Direction {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
  };

  // By layer, forward before backward.
  std::vector<Direction> directions;

 protected:
  RecurrentWeights(const char* layer, int64_t hidden_size, RecurrentOptions options);
  // Names and tensors in PyTorch's order; fills `directions`.
  std::vector<std::pair<std::string, Tensor>> make(int64_t input_size, int64_t num_gates);

  // The states of one direction of one layer: those it starts with, and after its last step.
  struct CellState {
    Tensor h, c;
  };

  // One step: gates of the input (N, gates × hidden) and the state before → the state after.
  using Step = CellState (*)(const Tensor& gates, const CellState& before,
                             const Direction& weights);

  struct Run {
    Tensor output;
    std::vector<CellState> last;  // as directions
  };

  // x: (T, N, input), or with batch_first (N, T, input).
  Run run(const Tensor& x, const std::vector<CellState>& first, bool is_training, Step step) const;
  // The states given as (directions, N, hidden), cut up; zeros where undefined.
  std::vector<CellState> first_states(const Tensor& x, const Tensor& h, const Tensor& c,
                                      bool has_cell) const;

  int64_t state_size() const { return options_.proj_size > 0 ? options_.proj_size : hidden_size_; }

  const char* layer_;
  int64_t input_size_ = 0;
  int64_t hidden_size_;
  RecurrentOptions options_;
};

struct LstmResult {
  Tensor output;  // (T, N, directions × state); without N, as its states, when x is (T, input)
  Tensor h, c;    // after the last step
};

// Long short-term memory (Hochreiter and Schmidhuber 1997); gates i, f, g, o:
// c = σ(f) c + σ(i) tanh(g), h = σ(o) tanh(c).
class LSTM : public Module<LSTM>, public RecurrentWeights {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {});
  // first: (num_layers × directions, N, state) and (…, hidden); undefined: zeros.
  LstmResult forward(const Tensor& x, const LstmState& first = {});
};

struct GruResult {
  Tensor output;  // (T, N, directions × hidden)
  Tensor h;
};

// Gated recurrent unit (Cho et al. 2014); gates r, z, n:
// n = tanh(W x + b + σ(r) (U h + b')), h = (1 - σ(z)) n + σ(z) h.
class GRU : public Module<GRU>, public RecurrentWeights {
 public:
  GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {});
  // first: (num_layers × directions, N, hidden); undefined: zeros.
  GruResult forward(const Tensor& x, const Tensor& first = Tensor());
};

}  // namespace flow::nn
