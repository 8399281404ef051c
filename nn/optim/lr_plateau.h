// A schedule that looks at a measure of progress.
#pragma once

#include <string>
#include <vector>

#include "nn/optim/optimizer.h"

namespace flow::optim::lr_scheduler {

struct ReduceLROnPlateauOptions {
  std::string mode = "min";  // the measure is better when smaller; or "max"
  double factor = 0.1;
  int64_t patience = 10;  // bad epochs that are let pass
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  // better than best (1 ∓ threshold); "abs": best ∓ threshold
  int64_t cooldown = 0;                // epochs after a reduction in which none counts as bad
  std::vector<double> min_lr = {0};  // one for all groups or one for each
  double eps = 1e-8;                 // smaller changes are left out
};

// × factor when the measure has not become better for more than `patience` steps.
class ReduceLROnPlateau {
 public:
  explicit ReduceLROnPlateau(Optimizer& optimizer, ReduceLROnPlateauOptions options = {});

  void step(double metric);

  nn::StateDict state_dict() const;
  void load_state_dict(const nn::StateDict& state);

 private:
  bool is_better(double metric) const;

  Optimizer* optimizer_;
  ReduceLROnPlateauOptions options_;
  double best_;
  int64_t num_bad_ = 0;
  int64_t cooldown_left_ = 0;
};

}  // namespace flow::optim::lr_scheduler
