// A CPU kernel of convolutions.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

// Matrix products of gathered windows.
KernelChoice select_conv_gemm(const KernelQuery& query);

}  // namespace flow::ops
