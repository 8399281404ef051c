#include "nn/optim/grad_scaler.h"

#include <algorithm>

#include "autograd/grad_mode.h"
#include "core/error.h"
#include "ops/binary.h"
#include "ops/creation.h"
#include "ops/reduce.h"
#include "ops/unary.h"

namespace flow::optim {

GradScaler::GradScaler(const GradScalerOptions& options)
    : options_(options), scale_(options.init_scale) {
  if (!(options.init_scale > 0) || !(options.growth_factor > 1) ||
      !(options.backoff_factor > 0 && options.backoff_factor < 1) || options.growth_interval < 1) {
    throw InvalidArgument(
        str("[GradScaler] init_scale must be positive, growth_factor above 1, "
            "backoff_factor in (0, 1) and growth_interval at least 1; got ",
            options.init_scale, ", ", options.growth_factor, ", ", options.backoff_factor, ", ",
            options.growth_interval));
  }
}

Tensor GradScaler::scale(const Tensor& loss) const {
  return options_.enabled ? loss * scale_ : loss;
}

void GradScaler::unscale_(Optimizer& optimizer) {
  if (!options_.enabled) return;
  const auto [progress, is_new] = unscaled_.try_emplace(&optimizer);
  if (!is_new) {
    throw InvalidArgument(
        "[GradScaler] the gradients of this optimizer are unscaled already; call "
        "unscale_ once between two updates");
  }
  const NoGradGuard no_grad;
  for (const Tensor& parameter : optimizer.parameters()) {
    const Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    grad.mul_(1 / scale_);
    progress->second.is_finite &= all(isfinite(grad)).item<bool>();
  }
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!options_.enabled) {
    optimizer.step();
    return true;
  }
  if (!unscaled_.contains(&optimizer)) unscale_(optimizer);
  Progress& progress = unscaled_.at(&optimizer);
  if (progress.has_stepped) {
    throw InvalidArgument(
        "[GradScaler] this optimizer has stepped already; call update() before "
        "its next step");
  }
  progress.has_stepped = true;
  if (progress.is_finite) optimizer.step();
  return progress.is_finite;
}

void GradScaler::update(std::optional<double> new_scale) {
  if (!options_.enabled) return;
  const bool is_finite = std::all_of(unscaled_.begin(), unscaled_.end(),
                                     [](const auto& entry) { return entry.second.is_finite; });
  if (unscaled_.empty() && !new_scale) {
    throw InvalidArgument(
        "[GradScaler] no optimizer has stepped since the last update; call "
        "step(optimizer) before");
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
  return {{"scale", full({}, scale_, {.dtype = float64})},
          {"growth_tracker", full({}, static_cast<double>(num_good_), {.dtype = float64})}};
}

void GradScaler::load_state_dict(const nn::StateDict& state) {
  const auto scale = state.find("scale"), tracker = state.find("growth_tracker");
  if (state.size() != 2 || scale == state.end() || tracker == state.end()) {
    throw InvalidArgument(
        "[GradScaler] a state has 'scale' and 'growth_tracker' and nothing else; "
        "nothing was loaded");
  }
  scale_ = scale->second.item<double>();
  num_good_ = tracker->second.item<int64_t>();
}

}  // namespace flow::optim
