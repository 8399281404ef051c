#include "nn/optim/lr_plateau.h"

#include <algorithm>
#include <limits>

#include "core/calls/site_scope.h"
#include "core/error.h"
#include "nn/optim/lr_scheduler.h"
#include "ops/creation/creation.h"

namespace flow::optim::lr_scheduler {

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options,
                                     Site site)
    : optimizer_(&optimizer), options_(std::move(options)) {
  const SiteScope scope(site);
  const ReduceLROnPlateauOptions& o = options_;
  if (!(o.factor < 1)) {
    throw InvalidArgument(str("[ReduceLROnPlateau] factor must be below 1; received ", o.factor));
  }
  if ((o.mode != "min" && o.mode != "max") ||
      (o.threshold_mode != "rel" && o.threshold_mode != "abs")) {
    throw InvalidArgument(
        str("[ReduceLROnPlateau] mode must be min or max, and threshold_mode rel or abs; "
            "received ",
            o.mode, " and ", o.threshold_mode));
  }
  per_group("ReduceLROnPlateau", "min_lr", o.min_lr, optimizer);
  const double infinity = std::numeric_limits<double>::infinity();
  best_ = o.mode == "min" ? infinity : -infinity;
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const double threshold = options_.threshold;
  const bool is_relative = options_.threshold_mode == "rel";
  if (options_.mode == "min") {
    return metric < (is_relative ? best_ * (1 - threshold) : best_ - threshold);
  }
  return metric > (is_relative ? best_ * (threshold + 1) : best_ + threshold);
}

void ReduceLROnPlateau::step(double metric) {
  // The optimizer may have got groups.
  const std::vector<double> min_lr =
      per_group("ReduceLROnPlateau", "min_lr", options_.min_lr, *optimizer_);
  if (is_better(metric)) {
    best_ = metric;
    num_bad_ = 0;
  } else {
    ++num_bad_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    num_bad_ = 0;
  }
  if (num_bad_ <= options_.patience) return;
  cooldown_left_ = options_.cooldown;
  num_bad_ = 0;
  for (int64_t group = 0; group < optimizer_->num_groups(); ++group) {
    const double old_lr = optimizer_->lr(group);
    const double new_lr = std::max(old_lr * options_.factor, min_lr[static_cast<size_t>(group)]);
    if (old_lr - new_lr > options_.eps) optimizer_->set_group_lr(group, new_lr);
  }
}

nn::StateDict ReduceLROnPlateau::state_dict() const {
  const auto scalar = [](auto value) {
    return full({}, static_cast<double>(value), {.dtype = float64});
  };
  return {{"best", scalar(best_)},
          {"num_bad_epochs", scalar(num_bad_)},
          {"cooldown_counter", scalar(cooldown_left_)}};
}

void ReduceLROnPlateau::load_state_dict(const nn::StateDict& state, Site site) {
  const SiteScope scope(site);
  for (const char* name : {"best", "num_bad_epochs", "cooldown_counter"}) {
    if (state.size() != 3 || !state.contains(name)) {
      throw InvalidArgument(
          str("[ReduceLROnPlateau] a state must have best, num_bad_epochs and cooldown_counter and "
              "nothing else; received ",
              state.size(), " names", state.contains(name) ? "" : str(" without ", name),
              "; nothing was loaded; use the state of a ReduceLROnPlateau"));
    }
  }
  best_ = state.at("best").item<double>();
  num_bad_ = state.at("num_bad_epochs").item<int64_t>();
  cooldown_left_ = state.at("cooldown_counter").item<int64_t>();
}

}  // namespace flow::optim::lr_scheduler
