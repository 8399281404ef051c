// The pass that lets layer_norm read and write 16-bit values on a device.
#pragma once

#include <cstdint>

#include "graph/ir/ir.h"

namespace flow::graph {

// In mixed precision, the result of a float32 layer_norm is cast to 16 bits for the products that
// read it, and its gradient comes back as a cast to float32. Joins these casts with layer_norm and
// with its gradient, if nothing else reads the float32 values. Only on device cuda, whose kernels
// of the joined ops are as fast as the single ones. Returns how many casts it removed. Exact.
int64_t fuse_norm_casts(Graph& graph);

}  // namespace flow::graph
