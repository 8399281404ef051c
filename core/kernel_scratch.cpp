#include "core/kernel_scratch.h"

#include <algorithm>
#include <utility>

#include "core/storage.h"

namespace flow {

namespace {

// Keeps a kernel state together with its declared scratch memory. scratch_of() finds it as the
// deleter of the handle.
struct StateWithScratch {
  KernelState state;
  KernelScratch scratch;

  void operator()(const void* /*state*/) const {}
};

}  // namespace

KernelChoice with_scratch(KernelChoice choice, KernelScratch scratch) {
  std::erase_if(scratch, [](const ScratchBlock& block) { return block.parts == 0; });
  if (choice.fn == nullptr || scratch.empty()) return choice;
  const void* state = choice.state.get();
  choice.state = KernelState(state, StateWithScratch{std::move(choice.state), scratch});
  return choice;
}

KernelScratch scratch_of(const KernelState& state) {
  const auto* stated = std::get_deleter<StateWithScratch>(state);
  return stated == nullptr ? KernelScratch() : stated->scratch;
}

int64_t scratch_block_bytes(const KernelScratch& scratch, int num_threads) {
  int64_t total = 0;
  for (const ScratchBlock& block : scratch)
    total += Storage::block_bytes(block.bytes) * std::min<int64_t>(block.parts, num_threads);
  return total;
}

}  // namespace flow
