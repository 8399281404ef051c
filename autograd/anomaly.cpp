#include "autograd/anomaly.h"

#include <utility>

#include "core/error.h"

namespace flow {

namespace {
constinit thread_local bool anomaly_enabled = false;
}

AnomalyGuard::AnomalyGuard(bool enabled) : outer_(std::exchange(anomaly_enabled, enabled)) {}

AnomalyGuard::~AnomalyGuard() {
  anomaly_enabled = outer_;
}

bool is_anomaly_enabled() {
  return anomaly_enabled;
}

void refuse_anomaly_in_graph(Site site) {
  if (!anomaly_enabled) return;
  throw Unsupported(
      "[AnomalyGuard] a graph does not look at single gradients; call its build(), or the modules, "
      "without the graph while the guard is on, or put flow::check_finite into build()",
      site);
}

}  // namespace flow
