// Whether the slices of a checkpointed tensor cover it exactly once.
#pragma once

#include <vector>

#include "nn/checkpoint_manifest.h"

namespace flow::nn {

// True if two slices have an element in common. All boxes must have the same number of dims. For
// slices that come from cutting a tensor along its dims again and again, as all layouts do, the
// time is nearly proportional to their number.
bool have_overlap(const std::vector<CheckpointSlice>& slices);

}  // namespace flow::nn
