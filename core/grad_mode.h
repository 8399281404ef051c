// Whether calls of this thread are recorded for backward.
#pragma once

#include "core/context.h"

namespace flow {

inline bool is_grad_enabled() {
  return thread_state().grad_enabled;
}

inline void set_grad_enabled(bool enabled) {
  thread_state().grad_enabled = enabled;
}

// Sets the grad mode of this thread for a scope.
class [[nodiscard]] GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled) : outer_(is_grad_enabled()) { set_grad_enabled(enabled); }

  ~GradModeGuard() { set_grad_enabled(outer_); }

  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool outer_;
};

// Nothing is recorded on this thread while an object of this class exists: `flow::NoGradGuard
// no_grad;`
class [[nodiscard]] NoGradGuard : public GradModeGuard {
 public:
  NoGradGuard() : GradModeGuard(false) {}
};

class [[nodiscard]] EnableGradGuard : public GradModeGuard {
 public:
  EnableGradGuard() : GradModeGuard(true) {}
};

}  // namespace flow
