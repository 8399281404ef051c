// Scaling of the loss, so that small gradients do not vanish in float16 (Micikevicius et al. 2018).
#pragma once

#include <map>
#include <optional>

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
class GradScaler {
 public:
  explicit GradScaler(const GradScalerOptions& options = {});

  // loss × scale.
  Tensor scale(const Tensor& loss) const;
  // Divides the gradients of the optimizer's parameters by the scale; once between two updates,
  // else InvalidArgument.
  void unscale_(Optimizer& optimizer);
  // Unscales unless that was done and steps the optimizer if all gradients are finite; says whether
  // it did.
  bool step(Optimizer& optimizer);
  // Grows the scale after growth_interval updates in a row without an overflow, shrinks it after
  // one; or sets it.
  void update(std::optional<double> new_scale = {});

  // 1 when it is not enabled.
  double get_scale() const { return options_.enabled ? scale_ : 1; }

  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  struct Progress {
    bool is_finite = true;
    bool has_stepped = false;
  };

  GradScalerOptions options_;
  double scale_;
  int64_t num_good_ = 0;
  std::map<const Optimizer*, Progress> unscaled_;  // since the last update
};

}  // namespace flow::optim
