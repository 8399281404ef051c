// gelu as a part of matrix products, which the compiler of graphs makes of two ops
// (graph/passes/fuse_gelu_products.h). The tensors are floating.
#pragma once

#include <string_view>

#include "core/kernel.h"
#include "core/op.h"

namespace flow::ops {

// h = x w^T + bias as in linear, y = gelu(h) by the tanh approximation; x: (..., in), weight:
// (out, in), bias: (out) or undefined -> y, h: (..., out).
extern const OpDef kLinearGeluTanh;

// dx = gelu'(h) (a b), the gradient of y = gelu(h) by the tanh approximation where y's is a b;
// a: (..., k), b: (k, n), h: (..., n) -> (..., n).
extern const OpDef kMatmulGeluTanhGrad;

// The kernels that run the kernels of the two ops of `device` one after the other; `only` restricts
// both to one name, as in KernelTable::select.
KernelChoice select_linear_then_gelu(const KernelQuery& query, DeviceType device,
                                     std::string_view only = {});
KernelChoice select_matmul_then_gelu_grad(const KernelQuery& query, DeviceType device,
                                          std::string_view only = {});

}  // namespace flow::ops
