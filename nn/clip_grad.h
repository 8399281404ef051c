// Clips gradients in place, between backward and the optimizer's step.
#pragma once

#include <vector>

#include "core/tensor.h"

namespace flow::nn::utils {

struct ClipGradNormOptions {
  double norm_type = 2;             // the power p of the norm; infinity: the largest magnitude
  bool error_if_nonfinite = false;  // throw if the norm is infinite or NaN; nothing is clipped then
};

// The norm of all tensors as one vector, in their common dtype; a float32 0 if there is none. For
// global tensors it is the norm of the logical tensors, and the call is collective. Throws
// InvalidArgument as error_if_nonfinite says.
Tensor get_total_norm(const std::vector<Tensor>& tensors, const ClipGradNormOptions& options = {},
                      Site site = Site::here());

// Scales all gradients by min(1, max_norm / (total_norm + 1e-6)), where total_norm is the result of
// get_total_norm. Throws InvalidArgument for a negative max_norm.
void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm,
                           const Tensor& total_norm, Site site = Site::here());

// Scales all gradients by min(1, max_norm / (total + 1e-6)), where total is the norm of all
// gradients as one vector (Pascanu et al. 2013). Returns total, as it was before scaling, in the
// common dtype of the gradients; a float32 0 if there is no gradient. For global tensors it is the
// norm of the logical gradients, and the call is collective. Throws InvalidArgument for a negative
// max_norm, and as error_if_nonfinite says.
Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       const ClipGradNormOptions& options = {}, Site site = Site::here());

// Clamps every element of the gradients to [-clip_value, clip_value]. Throws InvalidArgument for a
// negative clip_value.
void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value,
                      Site site = Site::here());

}  // namespace flow::nn::utils
