// Which transfers of a compiled step run while it computes.
#pragma once

#include "autograd/bucket_size.h"

namespace flow::graph {

struct OverlapOptions {
  bool enabled = true;
  // Gradients of replicated parameters are summed over ranks in buckets of about bucket_mb MiB,
  // which start while backward still runs. The first bucket is smaller, so that it starts early.
  double bucket_mb = autograd::kBucketMb;
  double first_bucket_mb = autograd::kFirstBucketMb;
  // Other redistributions run in the background if they move at least so many KiB, and if the work
  // until their first use is predicted to hide at least so many microseconds of them.
  double least_kb = 64;
  double least_hidden_us = 20;
  // Those that gather or reduce to parts need memory while they run. They run in the background
  // only if the whole tensor is at most this share of all that the step keeps between runs
  // (parameters and optimizer state, as if one rank held them).
  double most_memory_share = 1.0 / 64;
  // A rank of a pipeline starts to receive what an action needs when its action before that one
  // begins, and waits for it when the action itself begins.
  bool receives_early = true;
  friend bool operator==(const OverlapOptions&, const OverlapOptions&) = default;
};

}  // namespace flow::graph
