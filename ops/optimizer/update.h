// Optimizer steps: one pass over a parameter and its state, which are all written in place. Call
// them without recording (NoGradGuard). Formulas and names are PyTorch's.
//
// All tensors have one shape, dtype and layout; 16-bit ones are computed in float32. A 16-bit
// parameter may have a float32 copy, its `master` (Micikevicius et al. 2018): then the state is
// float32 too, the update is that of the master with the widened gradient, and the parameter
// becomes the master, rounded to nearest even. Where the parameter is not the rounded master before
// the update, the parameter was written since or the master is new, and the master starts at the
// parameter.
//
// The learning rate, the number of the step and the momentum (or beta1) may be given as tensors
// without dims, so that a compiled step can take new values. If these are undefined, the numbers of
// the options are used.
#pragma once

#include "core/tensor.h"

namespace flow {

struct SgdUpdateOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool is_first = false;  // the momentum buffer holds nothing yet: it becomes the gradient
  Tensor master = {};
  Tensor lr_tensor = {};
  Tensor momentum_tensor = {};
};

// g = grad (negated to maximize) + weight_decay param
// buffer = momentum buffer + (1 - dampening) g;  g = nesterov ? g + momentum buffer : buffer
// param -= lr g
// If momentum_buffer is undefined, the second line is left out.
void sgd_update(const TensorArg& param, const TensorArg& grad, const TensorArg& momentum_buffer,
                const SgdUpdateOptions& options);

struct AdamUpdateOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  bool maximize = false;
  int64_t step = 1;            // counts from 1
  Tensor max_exp_avg_sq = {};  // given: AMSGrad (Reddi et al. 2018)
  Tensor master = {};
  Tensor lr_tensor = {};
  Tensor step_tensor = {};
  Tensor beta1_tensor = {};
};

// Adam (Kingma and Ba 2015). g = grad + weight_decay param
// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
// param -= lr / (1 - beta1^step) m / (sqrt(v) / sqrt(1 - beta2^step) + eps)
// With AMSGrad the largest v so far replaces v in the last line.
void adam_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                 const TensorArg& exp_avg_sq, const AdamUpdateOptions& options);

// AdamW (Loshchilov and Hutter 2019): as adam_update, but the decay is applied to the parameter
// first: param *= 1 - lr weight_decay.
void adamw_update(const TensorArg& param, const TensorArg& grad, const TensorArg& exp_avg,
                  const TensorArg& exp_avg_sq, const AdamUpdateOptions& options);

}  // namespace flow
