// Attention by cuDNN.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

// For whole sequences of 16-bit rows that a library kernel exists for; not applicable to others, or
// if the library is missing. `fallback`, a kernel without state, runs where the library refuses,
// which is logged once for each form of a call.
KernelChoice select_attention_cudnn(const KernelQuery& query, const KernelChoice& fallback);

}  // namespace flow::ops
