// A CPU kernel of convolutions.
#pragma once

#include "core/kernel.h"

namespace flow::ops {

// Blocked layouts through ops/vendor/onednn.h. Not applicable without the library.
KernelChoice select_conv_onednn(const KernelQuery& query);

}  // namespace flow::ops
