// What a compiled step asks of the backward passes that are run while it is traced.
#pragma once

#include <functional>

#include "core/tensor.h"

namespace flow::autograd {

struct BackwardRules {
  // Lays out what arrives at a leaf, in place of the leaf's own layout; an undefined result: that.
  std::function<Tensor(const Tensor& leaf, const Tensor& gradient)> lay_out = nullptr;
  // Scales what backward() begins with at `output`.
  std::function<Tensor(const Tensor& output, const Tensor& seed)> scale_seed = nullptr;
};

// While it lives, backward() of this thread follows the rules; grad() does not. Not nested.
class [[nodiscard]] BackwardRulesGuard {
 public:
  explicit BackwardRulesGuard(BackwardRules rules);
  ~BackwardRulesGuard();
  BackwardRulesGuard(const BackwardRulesGuard&) = delete;
  BackwardRulesGuard& operator=(const BackwardRulesGuard&) = delete;

 private:
  BackwardRules rules_;
};

// The thread's; null for none.
const BackwardRules* active_backward_rules();

}  // namespace flow::autograd
