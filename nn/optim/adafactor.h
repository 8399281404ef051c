// Adafactor: second moments of matrices from the sums of their rows and columns (Shazeer and Stern
// 2018).
#pragma once

#include <optional>
#include <utility>

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct AdafactorOptions {
  double lr = 1e-2;
  double beta2_decay = -0.8;
  // The first is a lower bound of the root of the second moment (unset: the machine epsilon of the
  // dtype), the second one of the parameter's size.
  std::pair<std::optional<double>, double> eps = {std::nullopt, 1e-3};
  double d = 1;
  double weight_decay = 0;
  bool maximize = false;
  bool shard_state = false;  // see Optimizer
};

void check_options(const AdafactorOptions& options);

// With w = t^beta2_decay, rms(x) = √(mean of x²), and, over the last two dims, R and C the means of
// g² along rows and columns: r += w (R - r); c += w (C - c); v = r c / max(mean of r along the
// columns, eps1). A parameter with fewer dims has v += w (g² - v). u = g / √max(v, eps1²); p *= 1 -
// lr weight_decay; p -= max(eps2, rms(p)) min(lr, 1 / √t) u / max(1, rms(u) / d), where rms(p) is
// that before the decay.
class Adafactor : public GroupedOptimizer<AdafactorOptions> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 private:
  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;

  std::vector<std::string> buffer_names() const override {
    return {"row_var", "col_var", "variance"};
  }

  Shape buffer_shape(size_t i, const Tensor& parameter) const override;

  bool always_has_buffer() const override { return false; }
};

}  // namespace flow::optim
