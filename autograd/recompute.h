// Recomputation of activations (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"):
// the values that a region of the forward would save for backward are not kept; backward computes
// them again when it needs them.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow {

namespace autograd {

class RecomputeRegion;

// While an object of this class exists, calls of this thread belong to a new region.
class RecomputeScope {
 public:
  // `run` repeats the region on tensors with the values of `inputs`.
  RecomputeScope(const std::vector<Tensor>& inputs,
                 std::function<void(const std::vector<Tensor>&)> run);
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

  // The tensors with which the region must be called.
  const std::vector<Tensor>& inputs() const { return inputs_; }

 private:
  std::vector<Tensor> inputs_;
  Ref<RecomputeRegion> region_;  // null if nothing is recorded
  RecomputeRegion* outer_;
};

}  // namespace autograd

// Returns fn(inputs) and keeps only the inputs for backward, where fn runs a second time. Values,
// gradients and hooks are the same as for a plain call: the second run draws the same random
// numbers, and its graph is discarded. fn must compute the same result from the same inputs, keep
// what it captures alive until backward, and not change its inputs. Code in fn that must run only
// once, such as running statistics, must check is_recomputing(). Regions may nest.
//   y = flow::recompute([&](const std::vector<flow::Tensor>& in) { return block(in[0]); }, {x});
template <class Fn>
auto recompute(Fn fn, const std::vector<Tensor>& inputs) {
  const auto shared = std::make_shared<Fn>(std::move(fn));
  const autograd::RecomputeScope scope(
      inputs, [shared](const std::vector<Tensor>& again) { (*shared)(again); });
  return (*shared)(scope.inputs());
}

// True during the second run.
bool is_recomputing();

// The number of the region that is running, in its first or second run; -1 outside a region.
int64_t recompute_region();

}  // namespace flow
