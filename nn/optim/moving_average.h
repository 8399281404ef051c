// Moving averages of weights during training.
#pragma once

#include <optional>
#include <vector>

#include "nn/module.h"

namespace flow::optim {

struct MovingAverageOptions {
  // The decay of an exponential average. Unset: the plain average over all updates (Izmailov et al.
  // 2018). A value outside [0, 1] is InvalidArgument.
  std::optional<double> decay = 0.999;
};

// Keeps an average of each tensor. The first update copies the tensors; each later one computes
// average = decay average + (1 - decay) tensor, or without decay average += (tensor - average) /
// count. Tensors of integers and bools, such as counts of batches, are copied at each update.
//
//   MovingAverage ema(model.parameters(), {.decay = 0.99});
//   … optimizer.step(); ema.update(); …
//   { const auto scope = ema.apply(); evaluate(model); }   // the model holds the averages here
class MovingAverage {
 public:
  explicit MovingAverage(std::vector<Tensor> tensors, MovingAverageOptions options = {},
                         Site site = Site::here());

  void update(Site site = Site::here());

  int64_t num_updates() const { return num_updates_; }

  const std::vector<Tensor>& averages() const { return averages_; }

  // Overwrites the tensors with the averages. Throws InvalidArgument before the first update.
  void copy_to_tensors(Site site = Site::here()) const;

  // While an instance lives, the tensors hold the averages; afterwards they hold their own values
  // again.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(const MovingAverage& average, Site site = Site::here());
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const MovingAverage& average_;
    std::vector<Tensor> kept_;
  };

  Scope apply(Site site = Site::here()) const { return Scope(*this, site); }

  // The state: "num_updates" and the averages "0", "1", ….
  nn::StateDict state_dict() const;
  // Loads a state; local averages get the layout of their tensors. Throws InvalidArgument, before
  // anything is changed, if names or shapes do not match.
  void load_state_dict(const nn::StateDict& state, Site site = Site::here());

 private:
  std::vector<Tensor> tensors_, averages_;
  MovingAverageOptions options_;
  int64_t num_updates_ = 0;
};

}  // namespace flow::optim
