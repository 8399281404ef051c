// Iterates over the operands of an elementwise kernel: strides, threads and buffers. The code is
// the same for every formula; a kernel provides functions over dense memory.
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

// Outputs of at least this size are stored past the caches. Otherwise they would evict everything
// else, and a plain store reads the line before it writes it.
inline constexpr int64_t kStreamBytes = int64_t{8} << 20;

// For functions of two inputs: block i reads one value of input i for all elements.
using RepeatedBlocks = std::array<BlockFn, 2>;

struct ElementwiseState {
  LoopNest loop;
  BlockFn block = nullptr;
  size_t repeated = 0;  // the operand of which the block reads one value, or 0
  RowFn row = nullptr;
};

// Runs operands of any strides. The kernel state is an ElementwiseState with a block function,
// which gets buffers where an operand is not dense.
void run_strided(const KernelContext& ctx);
// Runs one element at a time on one thread. The kernel state is an ElementwiseState with a row
// function.
void run_rows(const KernelContext& ctx);
// Runs operands that are all contiguous and of one shape; needs no kernel state. `streaming` is
// `block` with stores past the caches.
void run_dense(const KernelContext& ctx, BlockFn block, BlockFn streaming);

// Chooses a kernel for float32 operands that all have one blocked layout, which the result gets
// too; not applicable to others. The padding stays zero.
KernelChoice choose_blocked(const KernelQuery& query, BlockFn block);
KernelChoice choose_strided(const KernelQuery& query, BlockFn block,
                            const RepeatedBlocks& repeated = {});
KernelChoice choose_rows(const KernelQuery& query, RowFn row);
bool has_blocked_input(const KernelQuery& query);
// Returns whether all operands are contiguous and of one shape.
bool is_dense(const KernelQuery& query);

}  // namespace flow::ops
