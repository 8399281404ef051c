// Checks of the local parts of global tensors that a kernel receives.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

// Returns true if the op's shape rule, applied to the local parts alone, gives the local shapes of
// the outputs. Reference kernels accept nothing else, so that layouts that no signature allows end
// in Unsupported and not in accesses outside the tensors. True for local tensors, and on ranks that
// hold no part and compute nothing.
bool parts_fit(const KernelQuery& query);

// Returns true if two parts are the same box of their tensors.
bool same_part(const TensorMeta& a, const TensorMeta& b);
// Returns true if every entry of the part of `index` has its counterpart at the same position in
// the part of `src`.
bool holds_partners(const TensorMeta& index, const TensorMeta& src);

}  // namespace flow::ops
