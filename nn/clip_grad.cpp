#include "nn/clip_grad.h"

#include <cmath>

#include "autograd/grad_mode.h"
#include "core/error.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/concat.h"
#include "ops/creation.h"
#include "ops/statistics.h"
#include "ops/where.h"

namespace flow::nn::utils {

namespace {
std::vector<Tensor> grads_of(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : parameters) {
    const Tensor grad = parameter.grad();
    if (grad.defined()) grads.push_back(grad);
  }
  return grads;
}

Tensor like(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : cast(x, dtype);
}
}  // namespace

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       const ClipGradNormOptions& options) {
  if (max_norm < 0 || std::isnan(max_norm)) {
    throw InvalidArgument(str("[clip_grad_norm_] max_norm must not be negative; got ", max_norm));
  }
  const NoGradGuard no_grad;
  const std::vector<Tensor> grads = grads_of(parameters);
  if (grads.empty()) return zeros({});
  const DType dtype = grads[0].dtype();
  std::vector<Tensor> norms;
  for (const Tensor& grad : grads)
    norms.push_back(like(norm(grad, {.p = options.norm_type}), dtype));
  Tensor total = norms.size() == 1 ? norms[0] : norm(stack(norms), {.p = options.norm_type});
  if (options.error_if_nonfinite && !std::isfinite(total.item<double>())) {
    throw InvalidArgument(str("[clip_grad_norm_] the norm of the gradients is ",
                              total.item<double>(),
                              "; nothing was clipped; look for the overflow, or leave out "
                              "error_if_nonfinite"));
  }
  const Tensor factor = clamp(max_norm / (total + 1e-6), {.max = 1.0});
  for (const Tensor& grad : grads)
    grad.mul_(like(factor, grad.dtype()));
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  if (clip_value < 0 || std::isnan(clip_value)) {
    throw InvalidArgument(
        str("[clip_grad_value_] clip_value must not be negative; got ", clip_value));
  }
  const NoGradGuard no_grad;
  for (const Tensor& grad : grads_of(parameters))
    clamp_(grad, {.min = -clip_value, .max = clip_value});
}

}  // namespace flow::nn::utils
