// L-BFGS (Liu and Nocedal 1989).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "nn/optim/optimizer.h"

namespace flow::optim {

struct LBFGSOptions {
  double lr = 1;
  int64_t max_iter = 20;                           // iterations of a step
  std::optional<int64_t> max_eval = std::nullopt;  // calls of the closure; unset: 1.25 max_iter
  double tolerance_grad = 1e-7;                    // ends when no gradient is larger
  double tolerance_change = 1e-9;                  // ends when parameters or loss change less
  int64_t history_size = 100;
  std::string line_search_fn = "";  // "" or "strong_wolfe"
  bool maximize = false;            // maximises what the closure returns
  bool shard_state = false;         // is refused: all ranks need the whole history
};

void check_options(const LBFGSOptions& options);

// Minimises a function of all parameters together, with the curvature of the last history_size
// iterations. Each step makes up to max_iter iterations, and calls the closure for each:
//
//   flow::optim::LBFGS optimizer(model.parameters(), {.line_search_fn = "strong_wolfe"});
//   optimizer.step([&] {
//     optimizer.zero_grad();
//     const auto loss = loss_fn(model(x), y);
//     loss.backward();
//     return loss;
//   });
//
// The closure computes the loss and the gradients from the parameters; it must give the same
// numbers for the same parameters, so without dropout. There is one parameter group. Norms and
// products are read by the program at every iteration, so on ranks step() is collective and in a
// graph it is Unsupported.
class LBFGS : public GroupedOptimizer<LBFGSOptions> {
 public:
  explicit LBFGS(const std::vector<Tensor>& params, const LBFGSOptions& options = {},
                 Site site = Site::here())
      : GroupedOptimizer(params, options, site) {}

  // Returns the loss at the parameters before the step.
  Tensor step(const std::function<Tensor()>& closure, Site site = Site::here());
  // Throws Unsupported: L-BFGS needs the closure.
  void step(Site site = Site::here());

 private:
  struct Memory;
  class Descent;

  void update(const Tensor& parameter, const Tensor& grad, size_t number,
              ParamState& state) override;
  std::vector<std::string> buffer_names() const override;
  std::vector<std::string> number_names() const override;

  Memory load();
  void store(const Memory& memory);
};

}  // namespace flow::optim
