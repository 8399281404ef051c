// Options of a module that apply when a graph calls it.
#pragma once

#include <cstdint>

#include "core/placement.h"
#include "nn/module.h"

namespace flow::nn {

// A view of a module, from module.to<GraphModule>(). Eager calls ignore the options.
class GraphModule {
 public:
  explicit GraphModule(const ModuleBase& module) : module_(module) {}

  // Assigns calls of the module to a pipeline stage. If a placement is given, a global first
  // argument on another placement is moved there, and partial values are reduced. A negative stage
  // is InvalidArgument.
  GraphModule& set_stage(int64_t stage, const Placement& placement = {}, Site site = Site::here());

  // Recomputes the module's activations in backward instead of saving them. The module must return
  // one tensor; otherwise calling it in a graph raises Unsupported.
  GraphModule& set_activation_checkpointing(bool on = true);

 private:
  ModuleBase module_;
};

// The same view as a function, for generic code.
inline GraphModule graph_module(const ModuleBase& module) {
  return GraphModule(module);
}

}  // namespace flow::nn
