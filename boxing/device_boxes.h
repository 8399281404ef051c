// Copies and reductions of boxes in the memory of a CUDA device, queued on the rank's stream.
#pragma once

#include <cstddef>
#include <span>

#include "boxing/comm/reduction.h"
#include "core/kernel.h"
#include "core/shape.h"

namespace flow::boxing {

// copy_box of boxing/run_route.h.
void copy_device_box(const KernelContext& ctx, const Shape& extents, const Strides& source_strides,
                     const std::byte* source, const Strides& target_strides, std::byte* target,
                     DType dtype);

// Reduces a box of parts that have the same shape, with the bits of reduce_in_order. Requires: at
// most kMostDeviceMembers sources.
void reduce_device_box(const KernelContext& ctx, const Shape& extents,
                       const Strides& source_strides, const Strides& target_strides, DType dtype,
                       ReduceOp op, std::span<const std::byte* const> sources, std::byte* target);

// fill_neutral of boxing/comm/reduction.h.
void fill_device_neutral(const KernelContext& ctx, DType dtype, ReduceOp op, std::byte* target,
                         int64_t count);

}  // namespace flow::boxing
