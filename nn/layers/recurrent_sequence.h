// One direction of a recurrent layer: its cells, one step at a time and over whole sequences. T is
// the length of a sequence, N the batch size, G the number of gates and H the hidden size.
#pragma once

#include "nn/layers/recurrent.h"

namespace flow::nn::internal {

using CellState = RecurrentWeights::CellState;
using DirectionWeights = RecurrentWeights::Direction;

// The elementwise part of a step, and its gradient.
struct Cell {
  struct Gradients {
    Tensor of_input, of_state;
    CellState before;  // without what passes through the product of the state; may be undefined
  };

  // The sums of the gates are (N, G H).
  CellState (*forward)(const Tensor& of_input, const Tensor& of_state, const CellState& before);
  // `hidden` is that of the result. dafter has at least one gradient; LSTM may lack the other one.
  // Not recorded.
  Gradients (*backward)(const Tensor& of_input, const Tensor& of_state, const CellState& before,
                        const Tensor& hidden, const CellState& dafter);
};

extern const Cell kLstmCell, kGruCell, kTanhCell, kReluCell;

// One step. of_input: (N, G H).
CellState cell_step(const Cell& cell, const Tensor& of_input, const CellState& before,
                    const DirectionWeights& weights);

struct SequenceResult {
  Tensor output;  // (T, N, state), in the order of the input
  CellState last;
};

// All steps, from the last position to the first if is_reverse. of_input: (T, N, G H) with T > 0.
// The steps are one node of the graph, whose backward multiplies the gradients of all steps at once
// to get that of the weights.
SequenceResult run_sequence(const Cell& cell, const Tensor& of_input, const CellState& first,
                            const DirectionWeights& weights, bool is_reverse);

}  // namespace flow::nn::internal
