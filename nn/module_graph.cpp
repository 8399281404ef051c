// What a module does when a graph calls it: stages and recomputation.
#include "autograd/recompute.h"
#include "boxing/layout.h"
#include "core/context.h"
#include "core/error.h"
#include "nn/module.h"
#include "nn/module_reads.h"
#include "nn/module_state.h"

namespace flow::nn {

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
  const State& state = live_state();
  if (x.impl().trace == nullptr) return false;
  if (state.recomputes) return true;
  // Blocks inside a block are recomputed together with it.
  if (!recomputes_blocks() || recompute_region() >= 0) return false;
  // The names of list elements are numbers.
  const size_t dot = state.path->rfind('.');
  const std::string name = dot == std::string::npos ? *state.path : state.path->substr(dot + 1);
  const bool is_element =
      !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  return state.stage >= 0 || is_element;
}

void ModuleBase::refuse_recompute() const {
  if (!live_state().recomputes) return;
  throw Unsupported(str("[graph] the activations of module '", *live_state().path,
                        "' cannot be recomputed: its forward does not return one tensor; set "
                        "activation checkpointing on modules inside it that do"),
                    thread_state().scope_site);
}

}  // namespace flow::nn
