// Stages for tests of pipelines.
#pragma once

#include <cstdint>
#include <vector>

#include "nn/flow.h"

namespace flow {

// The value as a stage reads it: on the ranks of that stage. Local values stay as they are.
inline Tensor moved_to(const nn::Linear& stage, const Tensor& value, const Sbp& sbp) {
  if (!value.is_global()) return value;
  return value.to_global({.placement = stage.weight.placement(), .sbp = sbp});
}

// Puts module i on on[i], as stage i.
inline void place_stages(nn::NamedModules modules, const std::vector<Placement>& on) {
  for (size_t i = 0; i < modules.size(); ++i) {
    modules[i].second.to_global(on[i], sbp::broadcast);
    nn::graph_module(modules[i].second).set_stage(static_cast<int64_t>(i), on[i]);
  }
}

// Modules of one kind, one after the other.
struct StageList : nn::Module<StageList> {
  nn::ModuleList<nn::Sequential> stages;

  StageList(int64_t num_stages, nn::Sequential (*make_stage)())
      : stages(register_module("stages", make(num_stages, make_stage))) {}

  // Puts stage i on on[i].
  void place(const std::vector<Placement>& on) { place_stages(stages.children(), on); }

  Tensor forward(Tensor x) {
    for (int64_t i = 0; i < stages.size(); ++i)
      x = stages[i](x);
    return x;
  }

 private:
  static nn::ModuleList<nn::Sequential> make(int64_t num_stages, nn::Sequential (*make_stage)()) {
    nn::ModuleList<nn::Sequential> list;
    for (int64_t i = 0; i < num_stages; ++i)
      list.push_back(make_stage());
    return list;
  }
};

}  // namespace flow
