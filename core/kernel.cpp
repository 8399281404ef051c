#include "core/kernel.h"

#include "core/context.h"
#include "core/device/device_memory.h"

namespace flow {

ThreadPool& KernelContext::pool() const {
  return rank.thread_pool();
}

Ref<Storage> KernelContext::scratch(size_t bytes) const {
  const TensorView& first = outputs.empty() ? inputs[0] : outputs[0];
  return allocate_storage(rank, first.meta->device, bytes);
}

void KernelTable::add(const OpDef& op, DeviceType device, const KernelDef& kernel) {
  kernels_[{&op, device}].push_back(kernel);
}

std::span<const KernelDef> KernelTable::kernels(const OpDef& op, DeviceType device) const {
  const auto found = kernels_.find({&op, device});
  return found == kernels_.end() ? std::span<const KernelDef>() : found->second;
}

KernelChoice KernelTable::select(const KernelQuery& query, DeviceType device, std::string_view only,
                                 const KernelDef** chosen) const {
  const auto list = kernels(query.op, device);
  for (auto kernel = list.rbegin(); kernel != list.rend(); ++kernel) {
    if (!only.empty() && only != kernel->name) continue;
    KernelChoice choice = kernel->select(query);
    if (choice.fn == nullptr) continue;
    if (chosen != nullptr) *chosen = &*kernel;
    return choice;
  }
  std::string received;
  for (const MetaPtr meta : query.inputs) {
    received += received.empty() ? "" : ", ";
    received += meta == nullptr ? "undefined" : str(*meta);
  }
  throw Unsupported(str("[", query.op.name, "] no ", device, " kernel",
                        only.empty() ? "" : str(" '", only, "'"), " takes these inputs; received ",
                        received, "; cast to a supported dtype or move to another device"));
}

}  // namespace flow
