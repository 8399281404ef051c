#include "nn/optim/grad_scaler.h"

#include <algorithm>
#include <cmath>

#include "core/calls/site_scope.h"
#include "core/context.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "nn/comm.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"

namespace flow::optim {

namespace {

// True if all elements of this rank's part of the tensor are finite.
bool is_finite_here(const Tensor& x) {
  if (!x.is_global()) return all(isfinite(x)).item<bool>();
  return !x.placement().contains(env::rank()) || is_finite_here(x.to_local());
}

}  // namespace

GradScaler::GradScaler(const GradScalerOptions& options, Site site) : scale_(options.init_scale) {
  set_options(options, site);
}

void GradScaler::set_options(GradScalerOptions options, Site site) {
  if (!(options.init_scale > 0) || !(options.growth_factor > 1) ||
      !(options.backoff_factor > 0 && options.backoff_factor < 1) || options.growth_interval < 1) {
    throw InvalidArgument(str("[GradScaler] init_scale must be positive, growth_factor above 1, "
                              "backoff_factor in (0, 1) and growth_interval at least 1; received ",
                              options.init_scale, ", ", options.growth_factor, ", ",
                              options.backoff_factor, ", ", options.growth_interval),
                          site);
  }
  options_ = options;
}

void GradScaler::set_growth_factor(double factor, Site site) {
  GradScalerOptions options = options_;
  options.growth_factor = factor;
  set_options(options, site);
}

void GradScaler::set_backoff_factor(double factor, Site site) {
  GradScalerOptions options = options_;
  options.backoff_factor = factor;
  set_options(options, site);
}

void GradScaler::set_growth_interval(int64_t interval, Site site) {
  GradScalerOptions options = options_;
  options.growth_interval = interval;
  set_options(options, site);
}

Tensor GradScaler::scale(const Tensor& loss) const {
  if (thread_state().trace != nullptr) {
    throw Unsupported(
        "[GradScaler] a graph cannot contain scale(), because its plan would keep the factor; call "
        "config().set_grad_scaler() in the constructor of the graph");
  }
  if (!options_.enabled) return loss;
  // The scale is a float32 number, so the product with another number has the wider dtype of both.
  const bool is_number = loss.dim() == 0;
  return (is_number ? cast(loss, promote(loss.dtype(), float32)) : loss) * scale_;
}

std::vector<Tensor> GradScaler::scale(const std::vector<Tensor>& losses) const {
  std::vector<Tensor> scaled;
  for (const Tensor& loss : losses)
    scaled.push_back(scale(loss));
  return scaled;
}

void GradScaler::check_gradient(const Tensor& parameter) {
  if (!parameter.grad().defined() || parameter.grad().dtype() != float16) return;
  throw InvalidArgument(str("[GradScaler] a float16 gradient cannot be unscaled; received ",
                            parameter.meta(),
                            "; keep the parameters in float32 and use AutocastGuard"));
}

void GradScaler::unscale_(Optimizer& optimizer, Site site) {
  const SiteScope scope(site);
  if (!options_.enabled) return;
  if (unscaled_.contains(&optimizer)) {
    throw InvalidArgument(
        "[GradScaler] the gradients of this optimizer are already unscaled; call "
        "unscale_ once between two updates");
  }
  const NoGradGuard no_grad;
  const std::vector<Tensor> parameters = optimizer.parameters();
  for (const Tensor& parameter : parameters)
    check_gradient(parameter);
  bool is_finite = true, any_global = false, has_gradient = false;
  for (const Tensor& parameter : parameters) {
    any_global |= parameter.is_global();
    const Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    has_gradient = true;
    grad.mul_(1 / scale_);
    is_finite = is_finite_here(grad) && is_finite;
  }
  if (any_global && env::world_size() > 1) {
    const Tensor bad = full({}, is_finite ? 0.0 : 1.0, {.device = "cpu"});
    is_finite = comm::all_reduce(bad, {.op = comm::Reduction::kMax}).item<double>() == 0;
  }
  if (has_gradient) unscaled_[&optimizer].is_finite = is_finite;
}

bool GradScaler::step(Optimizer& optimizer, Site site) {
  if (!options_.enabled) {
    optimizer.step(site);
    return true;
  }
  if (!unscaled_.contains(&optimizer)) unscale_(optimizer, site);
  const auto unscaled = unscaled_.find(&optimizer);
  if (unscaled == unscaled_.end()) {
    throw InvalidArgument(
        "[GradScaler] no parameter of the optimizer has a gradient; call backward() on a scaled "
        "loss that was computed from these parameters before step()",
        site);
  }
  Progress& progress = unscaled->second;
  if (progress.has_stepped) {
    throw InvalidArgument(
        "[GradScaler] this optimizer has already stepped; call update() before "
        "its next step",
        site);
  }
  progress.has_stepped = true;
  if (progress.is_finite) optimizer.step(site);
  return progress.is_finite;
}

void GradScaler::update(std::optional<double> new_scale, Site site) {
  const SiteScope scope(site);
  if (!options_.enabled) return;
  const bool is_finite = std::all_of(unscaled_.begin(), unscaled_.end(),
                                     [](const auto& entry) { return entry.second.is_finite; });
  if (unscaled_.empty() && !new_scale) {
    throw InvalidArgument(
        "[GradScaler] no optimizer has stepped since the last update; call "
        "step(optimizer) first");
  }
  if (new_scale && !(*new_scale > 0 && std::isfinite(*new_scale))) {
    throw InvalidArgument(
        str("[GradScaler] the scale must be positive and finite; received ", *new_scale));
  }
  unscaled_.clear();
  if (new_scale) {
    scale_ = *new_scale;
  } else if (!is_finite) {
    scale_ *= options_.backoff_factor;
    num_good_ = 0;
  } else if (++num_good_ == options_.growth_interval) {
    scale_ *= options_.growth_factor;
    num_good_ = 0;
  }
}

nn::StateDict GradScaler::state_dict() const {
  if (!options_.enabled) return {};
  const auto number = [](double value) { return full({}, value, {.dtype = float64}); };
  return {{"scale", number(scale_)},
          {"growth_factor", number(options_.growth_factor)},
          {"backoff_factor", number(options_.backoff_factor)},
          {"growth_interval", number(static_cast<double>(options_.growth_interval))},
          {"_growth_tracker", number(static_cast<double>(num_good_))}};
}

void GradScaler::load_state_dict(const nn::StateDict& state, Site site) {
  const SiteScope scope(site);
  if (!options_.enabled) return;
  std::vector<double> numbers;
  for (const char* name :
       {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}) {
    const auto found = state.find(name);
    if (found == state.end() || state.size() != 5) {
      throw InvalidArgument(str(
          "[GradScaler] a state must have scale, growth_factor, backoff_factor, growth_interval, "
          "_growth_tracker and nothing else; received ",
          state.size(), found == state.end() ? str(" entries without ", name) : " entries",
          "; nothing was loaded; use the state of an enabled scaler"));
    }
    numbers.push_back(found->second.item<double>());
  }
  set_options({.init_scale = numbers[0],
               .growth_factor = numbers[1],
               .backoff_factor = numbers[2],
               .growth_interval = static_cast<int64_t>(numbers[3])},
              site);
  scale_ = numbers[0];
  num_good_ = static_cast<int64_t>(numbers[4]);
}

}  // namespace flow::optim
