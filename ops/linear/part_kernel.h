// Kernels that consist of the kernels of other ops, which run one after the other.
#pragma once

#include <span>
#include <string_view>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "ops/register.h"

namespace flow::ops {

// The kernel that the op would choose by itself; `only` restricts it to one name, as in
// KernelTable::select.
inline KernelChoice select_part(const KernelQuery& query, DeviceType device,
                                std::string_view only) {
  const KernelTable& kernels = device == DeviceType::kCpu ? cpu_kernels() : cuda_kernels();
  return kernels.select(query, device, only);
}

inline void run_part(const KernelContext& ctx, const KernelChoice& part, const void* attrs,
                     std::span<const TensorView> inputs, const TensorView& output) {
  part.fn({.inputs = inputs,
           .outputs = {&output, 1},
           .attrs = attrs,
           .state = part.state.get(),
           .random = {},
           .rank = ctx.rank,
           .site = ctx.site});
}

// An upper bound: the two do not allocate at the same time.
inline KernelScratch scratch_of_both(const KernelChoice& a, const KernelChoice& b) {
  KernelScratch scratch = scratch_of(a.state);
  for (const ScratchBlock& block : scratch_of(b.state))
    scratch.push_back(block);
  return scratch;
}

// Adds the CPU's kernels of an op that consists of others: of their reference kernels, and of those
// that they would choose. kSelect is like select_part.
template <KernelChoice (*kSelect)(const KernelQuery&, DeviceType, std::string_view)>
void add_cpu_pair(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {"reference", [](const KernelQuery& query) {
                                     return kSelect(query, DeviceType::kCpu, "reference");
                                   }});
  table.add(op, DeviceType::kCpu, {"pair", [](const KernelQuery& query) {
                                     return kSelect(query, DeviceType::kCpu, "");
                                   }});
}

}  // namespace flow::ops
