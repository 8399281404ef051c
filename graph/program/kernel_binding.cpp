#include "graph/program/kernel_binding.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace flow::graph {

KernelMetas kernel_metas(const Step& step, const std::function<MetaPtr(BufferId)>& meta_of) {
  const auto* kernel = step.as<KernelStep>();
  const bool on_parts = kernel != nullptr && kernel->on_parts;
  const auto seen = [&](BufferId id) {
    const MetaPtr meta = id == kNoBuffer ? nullptr : meta_of(id);
    return meta != nullptr && on_parts ? local_part(meta) : meta;
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

KernelCall make_kernel_call(const OpCall& op_call, const KernelMetas& metas,
                            const KernelTable& kernels) {
  return flow::make_kernel_call({.op = *op_call.op,
                                 .inputs = metas.inputs,
                                 .outputs = metas.plain_outputs,
                                 .attrs = op_call.raw_attrs(),
                                 .allows_view = false},
                                kernels);
}

void set_kernel_call(KernelStep& step, KernelCall call) {
  step.op_call.scratch = call.scratch;
  step.kernel_call = std::make_shared<const KernelCall>(std::move(call));
}

namespace {

bool is_same_layout(const BlockedLayout* a, const BlockedLayout* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::string_view(a->name) == b->name && a->bytes == b->bytes;
}

}  // namespace

void bind_kernel_calls(Program& program, const KernelTable& kernels) {
  const auto meta_of = [&](BufferId id) -> MetaPtr& {
    return program.buffers[static_cast<size_t>(id)].meta;
  };
  for (size_t i = 0; i < program.steps.size(); ++i) {
    Step& step = program.steps[i];
    auto* kernel = step.as<KernelStep>();
    if (kernel == nullptr) continue;
    const KernelMetas metas = kernel_metas(step, meta_of);
    KernelCall call = make_kernel_call(kernel->op_call, metas, kernels);
    const bool converts =
        std::find(call.forms.begin(), call.forms.end(), InputForm::kStrided) != call.forms.end();
    if (call.kind != KernelCall::Kind::kKernel || converts) {
      throw BadFile(
          str("[plan] step ", i, ", ", step.name(),
              ": no kernel of this run takes its inputs in their layout; compile the step again"));
    }
    for (size_t j = 0; j < step.outputs.size(); ++j) {
      const BlockedLayout* own = call.outputs[j]->blocked;
      MetaPtr& meta = meta_of(step.outputs[j]);
      if (!is_same_layout(own, meta->blocked)) {
        throw BadFile(str("[plan] step ", i, ", ", step.name(),
                          ": the kernel of this run gives another layout than the plan has; "
                          "compile the step again"));
      }
      if (own != nullptr) meta = with_blocked(meta, own);
    }
    set_kernel_call(*kernel, std::move(call));
  }
}

}  // namespace flow::graph
