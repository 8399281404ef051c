#include "graph/program/kernel_binding.h"

#include <string_view>

#include "core/error.h"

namespace flow::graph {

KernelMetas kernel_metas(const Step& step, const std::function<MetaPtr(BufferId)>& meta_of) {
  const auto seen = [&](BufferId id) {
    const MetaPtr meta = id == kNoBuffer ? nullptr : meta_of(id);
    return meta != nullptr && step.on_parts ? local_part(meta) : meta;
  };
  KernelMetas metas;
  for (const BufferId id : step.inputs)
    metas.inputs.push_back(seen(id));
  for (const BufferId id : step.outputs) {
    const MetaPtr meta = seen(id);
    metas.outputs.push_back(meta);
    metas.plain_outputs.push_back(meta->blocked == nullptr ? meta : with_blocked(meta, nullptr));
  }
  return metas;
}

namespace {

bool is_same_layout(const BlockedLayout* a, const BlockedLayout* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::string_view(a->name) == b->name && a->bytes == b->bytes;
}

}  // namespace

void choose_kernels(Program& program, const KernelTable& kernels) {
  const auto meta_of = [&](BufferId id) -> MetaPtr& {
    return program.buffers[static_cast<size_t>(id)].meta;
  };
  for (size_t i = 0; i < program.steps.size(); ++i) {
    Step& step = program.steps[i];
    if (step.kind != StepKind::kKernel || step.route) continue;
    const KernelMetas metas = kernel_metas(step, meta_of);
    KernelChoice choice = kernels.select(metas.query(step), metas.plain_outputs[0]->device);
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      const BlockedLayout* own = j < choice.outputs.size() ? choice.outputs[j]->blocked : nullptr;
      MetaPtr& meta = meta_of(step.outputs[j]);
      if (!is_same_layout(own, meta->blocked)) {
        throw BadFile(str("[plan] step ", i, ", ", step.op->name,
                          ": the kernel of this run lays its results out otherwise; compile anew"));
      }
      if (own != nullptr) meta = with_blocked(meta, own);
    }
    step.fn = choice.fn;
    step.scratch = scratch_of(choice.state);
    step.state = std::move(choice.state);
  }
}

}  // namespace flow::graph
