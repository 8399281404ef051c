#include "core/kernel_scratch.h"

#include <algorithm>
#include <utility>

#include "core/storage.h"

namespace flow {

namespace {

// Keeps a kernel state together with its declared scratch memory. scratch_of() finds it as the
// deleter of the handle.
struct StatedPlan {
  std::shared_ptr<const void> plan;
  KernelScratch scratch;

  void operator()(const void* /*plan*/) const {}
};

}  // namespace

KernelChoice with_scratch(KernelChoice choice, KernelScratch scratch) {
  std::erase_if(scratch, [](const ScratchBlock& block) { return block.parts == 0; });
  if (choice.fn == nullptr || scratch.empty()) return choice;
  const void* plan = choice.plan.get();
  choice.plan = std::shared_ptr<const void>(plan, StatedPlan{std::move(choice.plan), scratch});
  return choice;
}

KernelScratch scratch_of(const std::shared_ptr<const void>& plan) {
  const auto* stated = std::get_deleter<StatedPlan>(plan);
  return stated == nullptr ? KernelScratch() : stated->scratch;
}

int64_t scratch_block_bytes(const KernelScratch& scratch, int num_threads) {
  int64_t total = 0;
  for (const ScratchBlock& block : scratch)
    total += Storage::block_bytes(block.bytes) * std::min<int64_t>(block.parts, num_threads);
  return total;
}

}  // namespace flow
