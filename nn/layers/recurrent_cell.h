// One step of recurrent layers, as modules. x: (N, input_size), states: (N, hidden_size); for one
// sample all lack the dim N. The formulas are at the functions of ops/linear/recurrent.h.
#pragma once

#include <string>

#include "nn/module.h"
#include "ops/linear/recurrent.h"

namespace flow::nn {

struct CellOptions {
  bool bias = true;
};

// The parameters that the cells share, initialised as U(-1/√hidden_size, 1/√hidden_size).
class CellWeights {
 public:
  Tensor weight_ih;         // (gates × hidden_size, input_size)
  Tensor weight_hh;         // (gates × hidden_size, hidden_size)
  Tensor bias_ih, bias_hh;  // (gates × hidden_size)

 protected:
  CellWeights(const char* cell, int64_t input_size, int64_t hidden_size, int64_t num_gates,
              bool has_bias, Site site);
  // Returns `state`, or zeros if it is undefined. Throws InvalidArgument for an x or a state of
  // another shape.
  Tensor checked_state(const Tensor& x, const Tensor& state) const;

  const char* cell_;
  int64_t input_size_, hidden_size_;
};

// Registers the parameters of a cell under their names.
template <class Derived>
class CellModule : public Module<Derived>, public CellWeights {
 protected:
  CellModule(const char* cell, int64_t input_size, int64_t hidden_size, int64_t num_gates,
             bool has_bias, Site site)
      : CellWeights(cell, input_size, hidden_size, num_gates, has_bias, site) {
    this->register_parameter("weight_ih", weight_ih, Site::none());
    this->register_parameter("weight_hh", weight_hh, Site::none());
    this->register_parameter("bias_ih", bias_ih, Site::none());
    this->register_parameter("bias_hh", bias_hh, Site::none());
  }
};

// One step of LSTM.
//   auto [h, c] = cell(x, flow::LstmState{h0, c0});
class LSTMCell : public CellModule<LSTMCell> {
 public:
  LSTMCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {},
           Site site = Site::here());
  // Undefined states mean zeros.
  LstmState forward(const Tensor& x, const LstmState& state = {});
};

// One step of GRU.
class GRUCell : public CellModule<GRUCell> {
 public:
  GRUCell(int64_t input_size, int64_t hidden_size, const CellOptions& options = {},
          Site site = Site::here());
  // An undefined state means zeros.
  Tensor forward(const Tensor& x, const Tensor& hidden = Tensor());
};

struct RnnCellOptions {
  bool bias = true;
  std::string nonlinearity = "tanh";  // or "relu"
};

// One step of RNN.
class RNNCell : public CellModule<RNNCell> {
 public:
  // Throws InvalidArgument for another nonlinearity.
  RNNCell(int64_t input_size, int64_t hidden_size, const RnnCellOptions& options = {},
          Site site = Site::here());
  // An undefined state means zeros.
  Tensor forward(const Tensor& x, const Tensor& hidden = Tensor());

 private:
  bool is_relu_;
};

}  // namespace flow::nn
