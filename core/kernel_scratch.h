// What kernels take from the allocator while they run, stated when they are selected, so that the
// peak of a program is known before it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/kernel.h"

namespace flow {

// Blocks of so many bytes, one for each part of the work: as many are taken at once as there are
// threads, or parts where these are fewer.
struct ScratchBlock {
  int64_t bytes = 0;
  int64_t parts = 1;
  friend bool operator==(const ScratchBlock&, const ScratchBlock&) = default;
};

// Blocks that are taken at the same time.
using KernelScratch = std::vector<ScratchBlock>;

// The choice with its statement, which travels with its state.
KernelChoice with_scratch(KernelChoice choice, KernelScratch scratch);
// The statement of a choice with this state; none where it made none.
KernelScratch scratch_of(const KernelState& state);

// What the allocator hands out for it on a rank of so many compute threads.
int64_t scratch_block_bytes(const KernelScratch& scratch, int num_threads);

}  // namespace flow
