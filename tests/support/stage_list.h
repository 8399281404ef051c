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

// Modules of one kind, one after the other.
struct StageList : nn::Module<StageList> {
  nn::ModuleList<nn::Sequential> stages;

  StageList(int64_t num_stages, nn::Sequential (*make_stage)())
      : stages(register_module("stages", make(num_stages, make_stage))) {}

  // Puts stage i on on[i].
  void place(const std::vector<Placement>& on) {
    for (int64_t i = 0; i < stages.size(); ++i) {
      const Placement& placement = on[static_cast<size_t>(i)];
      stages[i].to_global(placement, sbp::broadcast);
      nn::graph_module(stages[i]).set_stage(i, placement);
    }
  }

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
