// Recurrent layers (LSTM, GRU, RNN) over whole sequences. T is the length of a sequence, N the
// batch size.
#pragma once

#include <string>
#include <vector>

#include "nn/layers/sequences.h"
#include "nn/module.h"
#include "ops/linear/recurrent.h"

namespace flow::nn {

namespace internal {
struct Cell;  // nn/layers/recurrent_sequence.h
}  // namespace internal

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

struct RnnOptions {
  int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  // or "relu"
  bool bias = true;
  bool batch_first = false;
  double dropout = 0;  // as in RecurrentOptions
  bool bidirectional = false;
};

// The parameters that the layers share. Layer i has weight_ih_l{i} (gates × hidden, input),
// weight_hh_l{i} (gates × hidden, state), bias_ih_l{i} and bias_hh_l{i} (gates × hidden), and with
// proj_size weight_hr_l{i} (proj_size, hidden). Names of the backward direction end in _reverse.
// The state size is proj_size if that is set, else hidden. All are initialised as U(-1/√hidden,
// 1/√hidden). Sizes and num_layers below 1, and a dropout that is no probability, are
// InvalidArgument.
class RecurrentWeights {
 public:
  // The biases, and weight_hr of a layer without a projection, may be undefined.
  struct Direction {
    Tensor weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;
  };

  // The state of one direction of one layer, before the first or after a step. Only an LSTM has c.
  struct CellState {
    Tensor h, c;
  };

  // Ordered by layer; the forward direction of a layer comes before the backward one.
  std::vector<Direction> directions;

 protected:
  RecurrentWeights(const char* layer, int64_t input_size, int64_t hidden_size,
                   RecurrentOptions options, Site site);
  // Makes the parameters and fills `directions`. Returns names and tensors in PyTorch's order.
  std::vector<std::pair<std::string, Tensor>> make(int64_t num_gates);

  struct Run {
    Tensor output;
    std::vector<CellState> last;  // one per entry of `directions`
  };

  // x: (T, N, input), or with batch_first (N, T, input).
  Run run(const Tensor& x, const std::vector<CellState>& first, bool is_training,
          const internal::Cell& cell) const;
  // As run, of sequences of different lengths. The states are in the order given to the packing;
  // the output is the data of a packed sequence like x.
  Run run_packed(const utils::rnn::PackedSequence& x, std::vector<CellState> first,
                 bool is_training, const internal::Cell& cell) const;
  // Splits the given states, (directions, N, state), by direction; undefined states become zeros.
  std::vector<CellState> first_states(const Tensor& x, const Tensor& h, const Tensor& c,
                                      bool has_cell) const;
  std::vector<CellState> first_states(const utils::rnn::PackedSequence& x, const Tensor& h,
                                      const Tensor& c, bool has_cell) const;

  // The last states of all directions: (directions, N, state).
  static Tensor hidden_of(const Run& done);
  static Tensor cell_of(const Run& done);
  // See ModuleBase::set_extra_repr.
  std::string option_text() const;

  int64_t state_size() const { return options_.proj_size > 0 ? options_.proj_size : hidden_size_; }

  // The states of a batch like x, of N sequences.
  std::vector<CellState> states_for(const Tensor& x, int64_t batch, const Tensor& h,
                                    const Tensor& c, bool has_cell) const;
  std::vector<Tensor> packed_steps(const std::vector<Tensor>& gates, const CellState& first,
                                   const Direction& weights, bool is_reverse,
                                   const internal::Cell& cell, CellState& last) const;

  const char* layer_;
  int64_t input_size_, hidden_size_;
  RecurrentOptions options_;
};

struct LstmResult {
  Tensor output;  // (T, N, directions × state); (N, T, …) with batch_first
  Tensor h, c;    // states after the last step, (num_layers × directions, N, size)
};

struct PackedLstmResult {
  utils::rnn::PackedSequence output;
  Tensor h, c;  // of each sequence after its own last step
};

// Long short-term memory (Hochreiter and Schmidhuber 1997) with gates i, f, g, o: c = σ(f) c + σ(i)
// tanh(g), h = σ(o) tanh(c). x: (T, N, input_size), (N, T, input_size) with batch_first, or (T,
// input_size) for one sequence; then the results lack the dim N.
class LSTM : public Module<LSTM>, public RecurrentWeights {
 public:
  LSTM(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {},
       Site site = Site::here());
  // first.hidden: (num_layers × directions, N, state), first.cell: (num_layers × directions, N,
  // hidden). An undefined state means zeros.
  LstmResult forward(const Tensor& x, const LstmState& first = {});
  // The same of sequences of different lengths (nn/layers/sequences.h).
  PackedLstmResult forward(const utils::rnn::PackedSequence& x, const LstmState& first = {});
};

struct GruResult {
  Tensor output;  // (T, N, directions × hidden); (N, T, …) with batch_first
  Tensor h;
};

struct PackedGruResult {
  utils::rnn::PackedSequence output;
  Tensor h;  // of each sequence after its own last step
};

// Gated recurrent unit (Cho et al. 2014) with gates r, z, n: n = tanh(W x + b + σ(r) (U h + b')), h
// = (1 - σ(z)) n + σ(z) h. x: as for LSTM.
class GRU : public Module<GRU>, public RecurrentWeights {
 public:
  GRU(int64_t input_size, int64_t hidden_size, RecurrentOptions options = {},
      Site site = Site::here());
  // first: (num_layers × directions, N, hidden). Undefined means zeros. A proj_size is
  // InvalidArgument.
  GruResult forward(const Tensor& x, const Tensor& first = Tensor());
  // The same of sequences of different lengths (nn/layers/sequences.h).
  PackedGruResult forward(const utils::rnn::PackedSequence& x, const Tensor& first = Tensor());
};

using RnnResult = GruResult;
using PackedRnnResult = PackedGruResult;

// Elman's network (Elman 1990): h = tanh(W x + b + U h + b'), or relu instead of tanh. x: as for
// LSTM.
class RNN : public Module<RNN>, public RecurrentWeights {
 public:
  // Throws InvalidArgument for another nonlinearity.
  RNN(int64_t input_size, int64_t hidden_size, const RnnOptions& options = {},
      Site site = Site::here());
  // first: (num_layers × directions, N, hidden). Undefined means zeros.
  RnnResult forward(const Tensor& x, const Tensor& first = Tensor());
  // The same of sequences of different lengths (nn/layers/sequences.h).
  PackedRnnResult forward(const utils::rnn::PackedSequence& x, const Tensor& first = Tensor());

 private:
  const internal::Cell& cell() const;

  bool is_relu_;
};

}  // namespace flow::nn
