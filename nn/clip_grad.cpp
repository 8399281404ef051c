#include "nn/clip_grad.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "boxing/redistribute.h"
#include "core/calls/site_scope.h"
#include "core/device/joined_launch.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/elementwise/where.h"
#include "ops/reduce/reduce.h"
#include "ops/reduce/statistics.h"
#include "ops/shape/concat.h"

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

bool is_sharded(const Tensor& x) {
  if (!x.is_global()) return false;
  const NdSbp layout = x.sbp();
  return std::any_of(layout.begin(), layout.end(), [](Sbp entry) { return entry.is_split(); });
}

// Moves a scalar to the placement of x, replicated: the gradients of different pipeline stages are
// on different placements.
Tensor on_placement_of(const Tensor& scalar, const Tensor& x) {
  if (!x.is_global() || scalar.placement() == x.placement()) return scalar;
  return scalar.to_global(
      {.placement = x.placement(), .sbp = NdSbp::broadcast(x.placement().num_axes())});
}

// Σ|x|^p, computed at least in float32. It is a partial sum if x is split.
Tensor power_sum(const Tensor& x, double p) {
  const Tensor wide = dtype_size(x.dtype()) < dtype_size(float32) ? cast(x, float32) : x;
  return p == 2 ? sum(mul(wide, wide)) : sum(pow(abs(wide), p));
}

// The norm of all gradients as one vector. Each rank sums the powers of what it holds; the sums of
// all gradients with the same layout are reduced together. No gradient is gathered.
Tensor norm_by_parts(const std::vector<Tensor>& grads, double p, DType dtype) {
  std::vector<std::vector<Tensor>> sums;
  for (const Tensor& grad : grads) {
    Tensor own =
        like(power_sum(grad, p), dtype_size(dtype) < dtype_size(float32) ? float32 : dtype);
    const auto alike = std::find_if(sums.begin(), sums.end(), [&](const auto& terms) {
      return terms[0].sbp() == own.sbp() && terms[0].placement() == own.placement();
    });
    if (alike != sums.end()) {
      alike->push_back(std::move(own));
    } else {
      sums.push_back({own});
    }
  }
  Tensor total;
  for (const std::vector<Tensor>& terms : sums) {
    const Tensor of_layout = sum(stack(terms));
    total = total.defined() ? add(total, on_placement_of(of_layout, total)) : of_layout;
  }
  return like(p == 2 ? sqrt(total) : pow(total, 1 / p), dtype);
}

Tensor joined(const std::vector<Tensor>& norms, double p) {
  return norms.size() == 1 ? norms[0] : norm(stack(norms), {.p = p});
}

// Norms on one placement are joined there first, so only one scalar per placement moves.
Tensor norm_of_norms(const std::vector<Tensor>& grads, double p, DType dtype) {
  std::vector<std::vector<Tensor>> by_placement;
  for (const Tensor& grad : grads) {
    const auto alike = std::find_if(by_placement.begin(), by_placement.end(), [&](const auto& own) {
      return !grad.is_global() || own[0].placement() == grad.placement();
    });
    Tensor own = like(norm(grad, {.p = p}), dtype);
    if (alike != by_placement.end()) {
      alike->push_back(std::move(own));
    } else {
      by_placement.push_back({std::move(own)});
    }
  }
  std::vector<Tensor> norms;
  for (const std::vector<Tensor>& own : by_placement)
    norms.push_back(on_placement_of(joined(own, p), by_placement[0][0]));
  // P = 0 counts elements.
  return p == 0 && norms.size() > 1 ? sum(stack(norms)) : joined(norms, p);
}
}  // namespace

namespace {

// `caller`: the public function, for errors.
Tensor total_norm_of(const char* caller, const std::vector<Tensor>& grads,
                     const ClipGradNormOptions& options) {
  const NoGradGuard no_grad;
  const cuda::JoinLaunches joins;
  if (grads.empty()) return zeros({});
  DType dtype = grads[0].dtype();
  for (const Tensor& grad : grads)
    dtype = promote(dtype, grad.dtype());
  const double p = options.norm_type;
  // For these powers the norm of the whole follows from the sums over the parts; for the others it
  // does not.
  const bool adds_powers = std::isfinite(p) && p != 0 && p != 1;
  const bool any_sharded = std::any_of(grads.begin(), grads.end(), is_sharded);
  Tensor total =
      adds_powers && any_sharded ? norm_by_parts(grads, p, dtype) : norm_of_norms(grads, p, dtype);
  if (options.error_if_nonfinite && !std::isfinite(total.item<double>())) {
    throw InvalidArgument(str(
        "[", caller, "] the norm of the gradients is not finite; received ", total.item<double>(),
        "; nothing was clipped; find the overflow, or leave out error_if_nonfinite"));
  }
  return total;
}

void check_max_norm(const char* caller, double max_norm) {
  if (max_norm >= 0) return;
  throw InvalidArgument(str("[", caller, "] max_norm must not be negative; received ", max_norm));
}

void scale_to_norm(const std::vector<Tensor>& grads, double max_norm, const Tensor& total) {
  const NoGradGuard no_grad;
  const cuda::JoinLaunches joins;
  const Tensor factor = clamp(max_norm / (total + 1e-6), {.max = 1.0});
  std::vector<Tensor> factors;  // on each placement of a gradient; casts would round them
  for (const Tensor& grad : grads) {
    auto fitting = std::find_if(factors.begin(), factors.end(), [&](const Tensor& made) {
      return made.is_global() == grad.is_global() &&
             (!grad.is_global() || made.placement() == grad.placement());
    });
    if (fitting == factors.end()) {
      fitting = factors.insert(factors.end(), on_placement_of(factor, grad));
    }
    grad.mul_(*fitting);
  }
  cuda::queue_joined();
}

}  // namespace

Tensor get_total_norm(const std::vector<Tensor>& tensors, const ClipGradNormOptions& options,
                      Site site) {
  const SiteScope scope(site);
  return total_norm_of("get_total_norm", tensors, options);
}

void clip_grads_with_norm_(const std::vector<Tensor>& parameters, double max_norm,
                           const Tensor& total_norm, Site site) {
  const SiteScope scope(site);
  check_max_norm("clip_grads_with_norm_", max_norm);
  scale_to_norm(grads_of(parameters), max_norm, total_norm);
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm,
                       const ClipGradNormOptions& options, Site site) {
  const SiteScope scope(site);
  check_max_norm("clip_grad_norm_", max_norm);
  const std::vector<Tensor> grads = grads_of(parameters);
  Tensor total = total_norm_of("clip_grad_norm_", grads, options);
  if (!grads.empty()) scale_to_norm(grads, max_norm, total);
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value, Site site) {
  const SiteScope scope(site);
  if (clip_value < 0 || std::isnan(clip_value)) {
    throw InvalidArgument(
        str("[clip_grad_value_] clip_value must not be negative; received ", clip_value));
  }
  const NoGradGuard no_grad;
  for (const Tensor& grad : grads_of(parameters))
    clamp_(grad, {.min = -clip_value, .max = clip_value});
}

}  // namespace flow::nn::utils
