// Averages of weights over the course of a training.
#pragma once

#include <optional>
#include <vector>

#include "nn/module.h"

namespace flow::optim {

struct MovingAverageOptions {
  // Of the exponential average; unset: every update counts alike (Izmailov et al. 2018).
  std::optional<double> decay = 0.999;
};

// Keeps an average of tensors: the first update copies them, each later one does
//   average = decay average + (1 - decay) tensor, or average += (tensor - average) / count.
//   MovingAverage ema(model.parameters(), {.decay = 0.99});
//   … optimizer.step(); ema.update(); …
//   { const auto scope = ema.apply(); evaluate(model); }   // the model holds the averages here
class MovingAverage {
 public:
  explicit MovingAverage(std::vector<Tensor> tensors, MovingAverageOptions options = {});

  void update();

  int64_t num_updates() const { return num_updates_; }

  const std::vector<Tensor>& averages() const { return averages_; }

  // Writes the averages over the tensors. InvalidArgument before the first update.
  void copy_to_tensors() const;

  // The tensors hold the averages while it lives, then their own values again.
  class [[nodiscard]] Scope {
   public:
    explicit Scope(const MovingAverage& average);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const MovingAverage& average_;
    std::vector<Tensor> kept_;
  };

  Scope apply() const { return Scope(*this); }

  // "num_updates" and "0", "1", …
  nn::StateDict state_dict() const;
  // Local averages are laid out as the tensors. Throws InvalidArgument, before anything is changed,
  // when names or shapes do not fit.
  void load_state_dict(const nn::StateDict& state);

 private:
  std::vector<Tensor> tensors_, averages_;
  MovingAverageOptions options_;
  int64_t num_updates_ = 0;
};

}  // namespace flow::optim
