// What the CPU kernels of convolutions share, and those that live in files of their own.
#pragma once

#include "core/kernel.h"
#include "ops/conv/conv_op.h"

namespace flow::ops {

// The tensors of a call by their part in y = conv(x, weight) + bias, whichever the op writes.
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
// Whether the parts are those of one convolution, which layouts that no signature allows need not
// give. The shape rule does not say it of some of the groups.
bool conv_parts_agree(const KernelQuery& query, const ConvRoles& roles, const ConvSizes& sizes);

// Blocked layouts through ops/vendor/onednn.h. Not applicable without the library.
KernelChoice select_conv_onednn(const KernelQuery& query);
// Matrix products of gathered windows.
KernelChoice select_conv_gemm(const KernelQuery& query);

// Matrix products of single pixels, in whatever layout their channels lie side by side.
KernelChoice select_conv_pixel(const KernelQuery& query);

}  // namespace flow::ops
