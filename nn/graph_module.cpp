#include "nn/graph_module.h"

#include "core/error.h"
#include "nn/module_state.h"

namespace flow::nn {

GraphModule& GraphModule::set_stage(int64_t stage, const Placement& placement, Site site) {
  if (stage < 0)
    throw InvalidArgument(str("[set_stage] the stage must not be negative; received ", stage),
                          site);
  ModuleBase::State& state = module_.live_state();
  state.stage = stage;
  state.stage_placement = placement;
  note_module_change();
  return *this;
}

GraphModule& GraphModule::set_activation_checkpointing(bool on) {
  module_.live_state().recomputes = on;
  note_module_change();
  return *this;
}

}  // namespace flow::nn
