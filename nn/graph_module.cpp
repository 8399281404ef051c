#include "nn/graph_module.h"

#include "boxing/layout.h"
#include "core/context.h"
#include "core/error.h"
#include "nn/module_state.h"

namespace flow::nn {

GraphModule& GraphModule::set_stage(int64_t stage, const Placement& placement) {
  if (stage < 0) throw InvalidArgument(str("[set_stage] stages count from 0; received ", stage));
  ModuleBase::State& state = module_.live_state();
  state.stage = stage;
  state.stage_placement = placement;
  return *this;
}

GraphModule& GraphModule::set_activation_checkpointing(bool on) {
  module_.live_state().recomputes = on;
  return *this;
}

Tensor ModuleBase::enter_stage(const Tensor& x) const {
  const State& state = live_state();
  if (x.impl().trace == nullptr || !x.is_global() || !state.stage_placement.defined() ||
      x.placement() == state.stage_placement) {
    return x;
  }
  const int64_t axes = state.stage_placement.num_axes();
  return x.to_global({.placement = state.stage_placement,
                      .sbp = axes == x.placement().num_axes() ? boxing::without_partial(x.sbp())
                                                              : NdSbp::broadcast(axes)});
}

bool ModuleBase::recomputes(const Tensor& x) const {
  return live_state().recomputes && x.impl().trace != nullptr;
}

void ModuleBase::refuse_recompute() const {
  throw Unsupported(
      str("[graph] activations of module '", *live_state().path,
          "' cannot be computed again: its forward does not map one tensor to a tensor; set "
          "activation checkpointing on such modules inside it"),
      thread_state().scope_site);
}

}  // namespace flow::nn
