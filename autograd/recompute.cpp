#include "autograd/recompute.h"

#include "autograd/recompute_region.h"
#include "autograd/tensor_autograd.h"
#include "core/calls/substitution.h"
#include "core/grad_mode.h"

namespace flow {

namespace autograd {

RecomputeScope::RecomputeScope(const std::vector<Tensor>& inputs,
                               std::function<void(const std::vector<Tensor>&)> run)
    : inputs_(inputs), outer_(active_region) {
  if (!is_grad_enabled()) return;
  if (Substitution::is_active()) {
    run = [run = std::move(run), pairs = Substitution::in_force()](const auto& again) {
      const Substitution scope(pairs);
      run(again);
    };
  }
  const auto region = make_ref<RecomputeRegion>(inputs, std::move(run));
  for (Tensor& input : inputs_) {
    if (!input.defined() || !input.requires_grad()) continue;
    const Edge edge = edge_of(input);
    input = with_history(input, edge.node, edge.index);
  }
  region_ = region;
  active_region = region.get();
}

RecomputeScope::~RecomputeScope() {
  active_region = outer_;
  if (region_) region_->close();
}

}  // namespace autograd

bool is_recomputing() {
  return autograd::active_region != nullptr && autograd::active_region->is_filling();
}

int64_t recompute_region() {
  return autograd::active_region == nullptr ? -1 : autograd::active_region->id();
}

}  // namespace flow
