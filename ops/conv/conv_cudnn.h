// Convolutions by cuDNN.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

// Not applicable if the library cannot be loaded, or if the two ends of a dim have different
// padding that changes the number of windows. `fallback` runs if cuDNN has no deterministic
// algorithm; if `fallback` does not apply, this kernel does not apply either.
KernelChoice select_conv_cudnn(const KernelQuery& query, const KernelChoice& fallback);

}  // namespace flow::ops
