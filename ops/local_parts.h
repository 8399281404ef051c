// Checks of the parts of global tensors a kernel is offered.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

// Whether the op's shape rule, applied to the local parts alone, gives the local shapes of the
// outputs. Reference kernels take nothing else, so that layouts no signature allows end in
// Unsupported and not in memory they do not own. True for local tensors, and on ranks that hold no
// part and compute nothing.
bool parts_fit(const KernelQuery& query);

// Whether two parts are the same box of their tensors.
bool same_part(const TensorMeta& a, const TensorMeta& b);
// Whether every entry of the part of `index` has its partner, at the same place, in that of `src`.
bool holds_partners(const TensorMeta& index, const TensorMeta& src);

}  // namespace flow::ops
