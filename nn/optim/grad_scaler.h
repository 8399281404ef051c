// Scaling of the loss, so that small gradients do not vanish in float16 (Micikevicius et al. 2018).
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

//   scaler.scale(loss).backward();
//   scaler.unscale_(optimizer);      // only where gradients are looked at or clipped
//   scaler.step(optimizer);          // leaves it out when a gradient is infinite or NaN
//   scaler.update();
//
// Whether all gradients are finite is agreed by all ranks where the optimizer has global
// parameters, so that they step together; then every rank calls unscale_ and step. Local parameters
// are looked at on their rank alone: DistributedDataParallel has made their gradients the same.
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  // loss × scale.
  Tensor scale(const Tensor& loss) const;
  std::vector<Tensor> scale(const std::vector<Tensor>& losses) const;
  // Divides the gradients of the optimizer's parameters by the scale; once between two updates,
  // else InvalidArgument, as for gradients in float16, whose parameters should be float32.
  void unscale_(Optimizer& optimizer);
  // Unscales unless that was done and steps the optimizer if all gradients are finite; says whether
  // it did.
  bool step(Optimizer& optimizer);
  // Grows the scale after growth_interval updates in a row without an overflow, shrinks it after
  // one; or sets it.
  void update(std::optional<double> new_scale = {});

  // 1 when it is not enabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }

  bool is_enabled() const { return options_.enabled; }

  double get_growth_factor() const { return options_.growth_factor; }

  double get_backoff_factor() const { return options_.backoff_factor; }

  int64_t get_growth_interval() const { return options_.growth_interval; }

  // Throw InvalidArgument as the constructor does.
  void set_growth_factor(double factor);
  void set_backoff_factor(double factor);
  void set_growth_interval(int64_t interval);

  // PyTorch's names: scale, growth_factor, backoff_factor, growth_interval, _growth_tracker;
  // nothing when it is not enabled, and then nothing is loaded.
  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  friend class TracedScaler;

  struct Progress {
    bool is_finite = true;
    bool has_stepped = false;
  };

  void set_options(GradScalerOptions options);
  // Throws InvalidArgument where the parameter's gradient is float16.
  static void check_gradient(const Tensor& parameter);

  GradScalerOptions options_;
  double scale_;
  int64_t num_good_ = 0;
  std::map<const Optimizer*, Progress> unscaled_;  // since the last update
};

}  // namespace flow::optim
