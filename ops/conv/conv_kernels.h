// Declarations that the CPU kernels of convolutions share.
#pragma once

#include "core/kernel.h"
#include "ops/conv/conv_op.h"

namespace flow::ops {

// The role of each tensor of a call in y = conv(x, weight) + bias, whichever of them the op writes.
struct ConvRoles {
  bool writes_x = false;
  bool writes_weight = false;
  int x = 0;  // index among the inputs, or the outputs if written
  int weight = 1;
  int y = 0;
  bool has_bias = false;  // input 2 of conv, output 1 of conv_backward_weight_bias

  bool writes_y() const { return !writes_x && !writes_weight; }
};

ConvRoles conv_roles(const KernelQuery& query);
ConvSizes conv_sizes(const KernelQuery& query);
// Returns true if the local parts belong to the same convolution. Layouts that no signature allows
// may break this, and the shape rule does not check it when a rank holds only some of the groups.
bool conv_parts_agree(const KernelQuery& query, const ConvRoles& roles, const ConvSizes& sizes);

}  // namespace flow::ops
