// The temporary memory that kernels allocate while they run. A kernel declares it when it is
// selected, so that the peak memory of a program is known before the program runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel.h"

namespace flow {

// Blocks of `bytes` bytes for the `parts` independent parts of the work. As many blocks are
// allocated at once as there are threads, or parts if these are fewer.
struct ScratchBlock {
  int64_t bytes = 0;
  int64_t parts = 1;
  friend bool operator==(const ScratchBlock&, const ScratchBlock&) = default;
};

// Blocks that are allocated at the same time.
using KernelScratch = std::vector<ScratchBlock>;

// Returns `choice` with a declaration of its scratch memory, which is stored in the kernel state.
KernelChoice with_scratch(KernelChoice choice, KernelScratch scratch);
// The scratch memory that was declared with this kernel state; empty if none was declared.
KernelScratch scratch_of(const KernelState& state);

// The bytes that the allocator hands out for `scratch` on a rank with `num_threads` compute
// threads.
int64_t scratch_block_bytes(const KernelScratch& scratch, int num_threads);

}  // namespace flow
