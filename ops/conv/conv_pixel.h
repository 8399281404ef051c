// A CPU kernel of convolutions.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

// Matrix products of single pixels, for every layout in which the channels of a pixel are
// contiguous.
KernelChoice select_conv_pixel(const KernelQuery& query);

}  // namespace flow::ops
