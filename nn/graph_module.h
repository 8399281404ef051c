// How graphs treat a module that they call.
#pragma once

#include <cstdint>

#include "core/placement.h"
#include "nn/module.h"

namespace flow::nn {

// A view of a module, from module.to<GraphModule>(). Eager calls do not heed it.
class GraphModule {
 public:
  explicit GraphModule(const ModuleBase& module) : module_(module) {}

  // Calls of the module are of this pipeline stage. Where a placement is given, a global first
  // argument that lies elsewhere is brought there, partial values summed.
  GraphModule& set_stage(int64_t stage, const Placement& placement = {});

  // What forward saves for backward is dropped and computed again. For modules that give one
  // tensor; others raise Unsupported when they are called in a graph.
  GraphModule& set_activation_checkpointing(bool on = true);

 private:
  ModuleBase module_;
};

// The same for generic code.
inline GraphModule graph_module(const ModuleBase& module) {
  return GraphModule(module);
}

}  // namespace flow::nn
