#include "nn/distributions/support.h"

#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/where.h"
#include "ops/random/random.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/view.h"

namespace flow::distributions {

namespace {

TensorOptions layout_of_draws(const Tensor& like) {
  if (like.is_global()) {
    return {.dtype = like.dtype(),
            .placement = like.placement(),
            .sbp = NdSbp::broadcast(like.placement().num_axes())};
  }
  TensorOptions options = options_like(like);
  options.requires_grad = false;
  return options;
}

}  // namespace

Tensor uniform_draws(const Shape& shape, const Tensor& like) {
  return rand(shape, layout_of_draws(like));
}

Tensor normal_draws(const Shape& shape, const Tensor& like) {
  return randn(shape, layout_of_draws(like));
}

Tensor open_uniform_draws(const Shape& shape, const Tensor& like) {
  return clamp_probs(uniform_draws(shape, like));
}

Tensor clamp_probs(const Tensor& x) {
  const double eps = machine_epsilon(x.dtype());
  return clamp(x, {.min = eps, .max = 1 - eps});
}

std::pair<Tensor, Tensor> broadcast_parameters(const char* name, const Parameter& a,
                                               const Parameter& b) {
  const auto as_tensor = [](const Parameter& x, const Parameter& other) {
    if (x.tensor().defined()) return x.tensor();
    return other.tensor().defined() ? full_like(other.tensor(), x.number()) : tensor(x.number());
  };
  const Shape shape = broadcast_shapes(a.shape(), b.shape(), name);
  return {broadcast_to(as_tensor(a, b), shape), broadcast_to(as_tensor(b, a), shape)};
}

void require(const char* name, const char* requirement, const Tensor& holds, const char* received) {
  if (thread_state().trace != nullptr) return;
  const NoGradGuard no_grad;
  if (holds.numel() == 0 || all(holds).item<bool>()) return;
  throw InvalidArgument(str("[", name, "] ", requirement, "; received ", received, " of shape ",
                            holds.shape(),
                            " that break this; correct them, or pass {.validate_args = false} to "
                            "leave the check out"));
}

}  // namespace flow::distributions
