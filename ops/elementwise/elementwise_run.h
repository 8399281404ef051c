// Walking the operands of an elementwise kernel: strides, threads and buffers, the same code for
// every formula. A kernel brings functions over dense memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/kernel.h"
#include "ops/kernel/strided_loop.h"

namespace flow::ops {

// n elements at stride 1 in every operand; x: one pointer per input.
using BlockFn = void (*)(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x);
// n elements at any strides, in elements; stride[0] is the output's.
using RowFn = void (*)(const void* attrs, std::byte* y, int64_t n, const std::byte* const* x,
                       const int64_t* stride);

// Outputs from this size on go past the caches: they would push out everything else, and a plain
// store reads the line before it writes it.
inline constexpr int64_t kStreamBytes = int64_t{8} << 20;

struct ElementwiseState {
  LoopNest loop;
  BlockFn block = nullptr;
  RowFn row = nullptr;
};

// For operands of any strides; the plan is an ElementwisePlan with a block function, which gets
// buffers where an operand is not dense.
void run_strided(const KernelContext& ctx);
// One element at a time on one thread; the plan is an ElementwisePlan with a row function.
void run_rows(const KernelContext& ctx);
// For operands that are all contiguous and of one shape; no plan. `streaming` is `block` with
// stores past the caches.
void run_dense(const KernelContext& ctx, BlockFn block, BlockFn streaming);

// For float32 operands that all have one blocked layout, which the result gets too; not applicable
// to others. The padding stays zero.
KernelChoice choose_blocked(const KernelQuery& query, BlockFn block);
KernelChoice choose_strided(const KernelQuery& query, BlockFn block);
KernelChoice choose_rows(const KernelQuery& query, RowFn row);
bool has_blocked_input(const KernelQuery& query);
// Whether all operands are contiguous and of one shape.
bool is_dense(const KernelQuery& query);

}  // namespace flow::ops
