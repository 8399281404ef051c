// Loss scaling: keeps small gradients from becoming 0 in float16 (Micikevicius et al. 2018).
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct GradScalerOptions {
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // steps without an overflow before the scale grows
  bool enabled = true;
};

// Scales the loss before backward and divides the gradients by the scale before the optimizer's
// step:
//
//   scaler.scale(loss).backward();
//   scaler.unscale_(optimizer);      // needed only to inspect or clip the gradients
//   scaler.step(optimizer);          // skipped when a gradient is infinite or NaN
//   scaler.update();
//
// If the optimizer has global parameters, all ranks agree on whether all gradients are finite, so
// that they all step or all skip; unscale_ and step are then collective. Gradients of local
// parameters are checked on their own rank only: DistributedDataParallel has made them equal on all
// ranks.
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {}, Site site = Site::here());

  // Returns the loss times the scale; in float32 if the loss is a number of 16 bits, whose range
  // the product may leave.
  Tensor scale(const Tensor& loss) const;
  std::vector<Tensor> scale(const std::vector<Tensor>& losses) const;
  // Divides the gradients of the optimizer's parameters by the scale. Throws InvalidArgument if
  // that was done since the last update, and for float16 gradients; keep the parameters in float32.
  void unscale_(Optimizer& optimizer, Site site = Site::here());
  // Unscales the gradients if that was not done, and steps the optimizer if all gradients are
  // finite. Returns whether the optimizer stepped. Throws InvalidArgument if no parameter has a
  // gradient, and for a second step between two updates.
  bool step(Optimizer& optimizer, Site site = Site::here());
  // Sets the scale for the next step: new_scale if it is given; times backoff_factor after an
  // overflow; times growth_factor after growth_interval updates in a row without one. Throws
  // InvalidArgument if no optimizer was unscaled since the last update, or if new_scale is not
  // positive and finite.
  void update(std::optional<double> new_scale = {}, Site site = Site::here());

  // The current scale; 1 if the scaler is disabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }

  bool is_enabled() const { return options_.enabled; }

  double get_growth_factor() const { return options_.growth_factor; }

  double get_backoff_factor() const { return options_.backoff_factor; }

  int64_t get_growth_interval() const { return options_.growth_interval; }

  // The setters throw InvalidArgument for values that the constructor refuses.
  void set_growth_factor(double factor, Site site = Site::here());
  void set_backoff_factor(double factor, Site site = Site::here());
  void set_growth_interval(int64_t interval, Site site = Site::here());

  // The state under PyTorch's names: scale, growth_factor, backoff_factor, growth_interval,
  // _growth_tracker. A disabled scaler has no state and ignores one that is loaded.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state, Site site = Site::here());

 private:
  friend class TracedScaler;

  struct Progress {
    bool is_finite = true;
    bool has_stepped = false;
  };

  void set_options(GradScalerOptions options, Site site);
  // Throws InvalidArgument if the parameter's gradient is float16.
  static void check_gradient(const Tensor& parameter);

  GradScalerOptions options_;
  double scale_;
  int64_t num_good_ = 0;
  std::map<const Optimizer*, Progress> unscaled_;  // since the last update
};

}  // namespace flow::optim
