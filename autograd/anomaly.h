// A search for the op that makes gradients infinite or NaN.
//
//   {
//     flow::AnomalyGuard anomaly;
//     loss.backward();   // train.cpp:41, in blocks.3.mlp: [log] …
//   }
#pragma once

#include "core/site.h"

namespace flow {

// While it exists, backward on this thread throws InvalidArgument at the first op that computes a
// gradient which is not finite. The error names the op, and the line and module path of its call.
// Each gradient is read, which takes a pass over its elements; that of a global tensor is also
// reduced over the ranks of its placement, so all ranks throw the same error although only one of
// them may hold the bad part. For debugging only. Unsupported in graphs, where values are not known
// while build() runs: call build() or the modules themselves, without the graph.
class [[nodiscard]] AnomalyGuard {
 public:
  explicit AnomalyGuard(bool enabled = true);
  ~AnomalyGuard();
  AnomalyGuard(const AnomalyGuard&) = delete;
  AnomalyGuard& operator=(const AnomalyGuard&) = delete;

 private:
  bool outer_;
};

bool is_anomaly_enabled();
// Throws Unsupported if an AnomalyGuard is on: `graph` code calls it where gradients are not seen.
void refuse_anomaly_in_graph(Site site);

}  // namespace flow
