// Steps 1 and 2 of a call in eager mode: the shape rule and the layouts, cached per thread.
#pragma once

#include <memory>

#include "core/dispatch.h"
#include "eager/decision_cache.h"

namespace flow::eager {

// Applies the op's shape rule and, for global tensors, the choice of a signature in boxing. The
// result depends on nothing but the call and the rank, whose part the output metas describe. Throws
// what the rules throw.
void decide(const Call& call, int64_t rank, Decision& decision);

// Calls decide() for decisions that the thread's cache does not hold. With FLOW_CHECK=1 every hit
// is recomputed and compared; a difference is an InternalError.
class CachingChooser final : public Chooser {
 public:
  CachingChooser();
  const Decision& choose(const Call& call) override;

  DecisionCache& cache() { return cache_; }

 private:
  DecisionCache cache_;
  bool checks_hits_;
};

// The decision cache of this thread.
DecisionCache& decision_cache();

}  // namespace flow::eager
