// Recomputation of activations (Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost"):
// what a region of the forward saves for backward is dropped and computed again when backward needs
// it.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "core/tensor.h"

namespace flow {

namespace autograd {

class RecomputeRegion;

// While it lives, calls of this thread belong to a new region.
class RecomputeScope {
 public:
  // `run` carries the region out again on tensors with the values of `inputs`.
  RecomputeScope(const std::vector<Tensor>& inputs,
                 std::function<void(const std::vector<Tensor>&)> run);
  ~RecomputeScope();
  RecomputeScope(const RecomputeScope&) = delete;
  RecomputeScope& operator=(const RecomputeScope&) = delete;

  // What the region is to be called with.
  const std::vector<Tensor>& inputs() const { return inputs_; }

 private:
  std::vector<Tensor> inputs_;
  Ref<RecomputeRegion> region_;  // null where nothing is recorded
  RecomputeRegion* outer_;
};

}  // namespace autograd

// fn(inputs), keeping only the inputs for backward, where fn runs a second time. Values, gradients
// and hooks are those of the plain call: the second run draws the same random numbers and its graph
// is discarded. fn must compute the same from the same inputs, keep alive what it captures until
// backward, and leave its inputs as they are; what it must do once only (running statistics) it
// asks is_recomputing() about. Regions may nest.
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

// A number of the region that is running, for the first or the second time; -1 outside.
int64_t recompute_region();

}  // namespace flow
