// The autocast of this thread for a scope.
#pragma once

#include <utility>

#include "core/context.h"

namespace flow {

// Sets this thread's autocast, to that of an earlier call or off (null), and back at its end.
class [[nodiscard]] AutocastScope {
 public:
  explicit AutocastScope(const Autocaster* caster)
      : outer_(std::exchange(thread_state().autocast, caster)) {}

  ~AutocastScope() { thread_state().autocast = outer_; }

  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  const Autocaster* outer_;
};

}  // namespace flow
