// What a compiled step changes in the backward passes that run while it is traced.
#pragma once

#include <functional>

#include "core/tensor.h"

namespace flow::autograd {

struct BackwardRules {
  // Lays out a gradient that arrives at a leaf, instead of the leaf's own layout. If the result is
  // undefined, the leaf's own layout applies.
  std::function<Tensor(const Tensor& leaf, const Tensor& gradient)> lay_out = nullptr;
  // Scales the gradient with which backward() starts at `output`.
  std::function<Tensor(const Tensor& output, const Tensor& seed)> scale_seed = nullptr;
};

// While an object of this class exists, backward() of this thread follows the rules; grad() does
// not. Guards do not nest.
class [[nodiscard]] BackwardRulesGuard {
 public:
  explicit BackwardRulesGuard(BackwardRules rules);
  ~BackwardRulesGuard();
  BackwardRulesGuard(const BackwardRulesGuard&) = delete;
  BackwardRulesGuard& operator=(const BackwardRulesGuard&) = delete;

 private:
  BackwardRules rules_;
};

// The rules of this thread; null if there are none.
const BackwardRules* active_backward_rules();

}  // namespace flow::autograd
