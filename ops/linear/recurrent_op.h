// Definitions of the elementwise part of recurrent cells, for kernels. A "gates" tensor holds its
// parts one after the other along the last dim, as the rows of the weights do.
#pragma once

#include <array>

#include "core/op.h"

namespace flow::ops {

// of_input (…, 4 H), of_state (…, 4 H), cell (…, H) -> hidden', cell'.
extern const OpDef kLstmGates;
// (of_input, of_state, cell, dhidden' or none, dcell' or none) -> dgates (…, 4 H), dcell. Not used
// in double backward, where the gradient is recorded op by op.
extern const OpDef kLstmGatesBackward;
// of_input (…, 3 H), of_state (…, 3 H), hidden (…, H) -> hidden'.
extern const OpDef kGruGates;
// of_input, of_state, hidden, dhidden' -> dof_input, dof_state, dhidden.
extern const OpDef kGruGatesBackward;

// The elementwise part of a step. The public functions add the products and the checks.
struct LstmStep {
  Tensor hidden, cell;
};

LstmStep lstm_gates(const TensorArg& of_input, const TensorArg& of_state, const TensorArg& cell);
Tensor gru_gates(const TensorArg& of_input, const TensorArg& of_state, const TensorArg& hidden);

// The outputs of kLstmGatesBackward and kGruGatesBackward.
std::array<Tensor, 2> lstm_gates_backward(const Tensor& of_input, const Tensor& of_state,
                                          const Tensor& cell, const Tensor& dhidden,
                                          const Tensor& dcell);
std::array<Tensor, 3> gru_gates_backward(const Tensor& of_input, const Tensor& of_state,
                                         const Tensor& hidden, const Tensor& dhidden);

}  // namespace flow::ops
