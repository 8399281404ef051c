// Clipping of gradients, in place, between backward and the optimizer's step.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace flow::nn::utils {

struct ClipGradNormOptions {
  double norm_type = 2;             // infinity: the largest magnitude
  bool error_if_nonfinite = false;  // throw when the norm is infinite or NaN; nothing is clipped
};

// Scales all gradients by min(1, max_norm / (total + 1e-6)), where total is the norm of all of them
// taken as one vector, and returns total (as it was before), in the dtype of the first gradient;
// a float32 0 when there is none. Of global tensors the norm is that of the logical gradients.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       const ClipGradNormOptions& options = {});

// Limits every element of the gradients to [-clip_value, clip_value].
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value);

}  // namespace flow::nn::utils
