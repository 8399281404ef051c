// A schedule that reacts to a metric, for example the validation loss.
#pragma once

#include <string>
#include <vector>

#include "nn/optim/lr_scheduler.h"

namespace flow::optim::lr_scheduler {

struct ReduceLROnPlateauOptions {
  std::string mode = "min";  // "min": a smaller metric is better; "max": a larger one
  double factor = 0.1;
  int64_t patience = 10;  // epochs without improvement before the rate is reduced
  double threshold = 1e-4;
  // "rel": better than best (1 ∓ threshold); "abs": than best ∓ threshold
  std::string threshold_mode = "rel";
  int64_t cooldown = 0;  // epochs after a reduction that are not counted
  PerGroup min_lr = 0;
  double eps = 1e-8;  // smaller changes of the rate are not made
};

// Multiplies the rates by `factor` when the metric has not improved for more than `patience` steps.
// Refused options are InvalidArgument, and so is a step with several min_lr after the optimizer got
// another group.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {},
                             Site site = Site::here());

  void step(double metric);

  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state, Site site = Site::here());

 private:
  bool is_better(double metric) const;

  Optimizer* optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t num_bad_ = 0;
  int64_t cooldown_left_ = 0;
};

}  // namespace flow::optim::lr_scheduler
