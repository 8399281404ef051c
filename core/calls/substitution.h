// Tensors that ops take in place of others: the parameters of a module during
// nn::functional_call, and weights that are computed from other parameters
// (nn/parameters/parametrize.h).
#pragma once

#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow {

// While an object lives, each op of this thread that is given the first tensor of a pair, or
// another handle of it, computes with the second one, and so does the gradient. What a tensor says
// of itself (shape(), item(), data()) does not change. Objects nest: what the inner one puts in
// place may have a substitute in the outer one. The two tensors of a pair have the same shape.
class Substitution {
 public:
  using Pairs = std::vector<std::pair<Tensor, Tensor>>;

  explicit Substitution(Pairs pairs);
  ~Substitution();
  Substitution(const Substitution&) = delete;
  Substitution& operator=(const Substitution&) = delete;

  static bool is_active() { return current_ != nullptr; }

  // The tensor that ops take in place of x: x itself if it has no substitute.
  static const Tensor& of(const Tensor& x);
  // Pairs with the effect of all objects that live.
  static Pairs in_force();

 private:
  Pairs pairs_;
  const Substitution* outer_;
  inline static constinit thread_local const Substitution* current_ = nullptr;
};

}  // namespace flow
