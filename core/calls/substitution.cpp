#include "core/calls/substitution.h"

namespace flow {

Substitution::Substitution(Pairs pairs) : pairs_(std::move(pairs)), outer_(current_) {
  current_ = this;
}

Substitution::~Substitution() {
  current_ = outer_;
}

const Tensor& Substitution::of(const Tensor& x) {
  const Tensor* found = &x;
  if (!x.defined()) return x;
  for (const Substitution* scope = current_; scope != nullptr; scope = scope->outer_) {
    for (const auto& [tensor, substitute] : scope->pairs_) {
      if (!tensor.is_same(*found)) continue;
      found = &substitute;
      break;
    }
  }
  return *found;
}

Substitution::Pairs Substitution::in_force() {
  Pairs all;
  for (const Substitution* scope = current_; scope != nullptr; scope = scope->outer_) {
    for (const auto& pair : scope->pairs_)
      all.emplace_back(pair.first, of(pair.first));
  }
  return all;
}

}  // namespace flow
