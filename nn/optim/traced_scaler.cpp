#include "nn/optim/traced_scaler.h"

#include <algorithm>
#include <array>
#include <string>

#include "autograd/autocast.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/grad_mode.h"
#include "ops/creation/creation.h"
#include "ops/elementwise/binary.h"
#include "ops/elementwise/cast.h"
#include "ops/elementwise/compare.h"
#include "ops/elementwise/unary.h"
#include "ops/reduce/reduce.h"
#include "ops/shape/concat.h"
#include "ops/shape/slice.h"

namespace flow::optim {

TracedScaler::TracedScaler(GradScaler& scaler, graph::Trace& trace)
    : scaler_(scaler), trace_(&trace) {}

Tensor TracedScaler::number_for(const Tensor& x, int64_t which) {
  const Placement placement = x.is_global() ? x.placement() : Placement();
  const DeviceType device = x.device();
  auto input = std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& known) {
    return known.placement == placement && known.values.device() == device;
  });
  if (input == inputs_.end()) {
    TensorOptions options{.dtype = float64, .placement = placement};
    if (placement.defined()) {
      options.sbp = NdSbp::broadcast(placement.num_axes());
    } else {
      options.device = std::string(device_type_name(device));
    }
    const graph::SuspendTracing at_once;
    const Tensor values = zeros({2}, options);
    input = inputs_.insert(inputs_.end(), {placement, values, trace_->add_input(values)});
  }
  return cast(select(input->traced, 0, which), x.dtype());
}

Tensor TracedScaler::scaled(const Tensor& output, const Tensor& seed) {
  const NoGradGuard no_grad;
  const AutocastGuard as_given(float16, {.enabled = false});
  return mul(seed, number_for(output, 0));
}

Tensor TracedScaler::unscale(const Optimizer& optimizer) {
  const NoGradGuard no_grad;
  std::vector<std::vector<Tensor>> found;  // by layout
  for (const Tensor& parameter : optimizer.parameters()) {
    const Tensor grad = parameter.grad();
    if (!grad.defined()) continue;
    GradScaler::check_gradient(parameter);
    grad.mul_(number_for(grad, 1));
    Tensor own = all(isfinite(grad));
    const auto alike = std::find_if(found.begin(), found.end(), [&](const auto& terms) {
      return terms[0].is_global() == own.is_global() &&
             (!own.is_global() ||
              (terms[0].sbp() == own.sbp() && terms[0].placement() == own.placement()));
    });
    if (alike != found.end()) {
      alike->push_back(std::move(own));
    } else {
      found.push_back({std::move(own)});
    }
  }
  Tensor is_finite;
  for (const std::vector<Tensor>& terms : found) {
    Tensor own = terms.size() == 1 ? terms[0] : all(stack(terms));
    if (!is_finite.defined()) {
      is_finite = std::move(own);
      continue;
    }
    if (own.is_global() && is_finite.is_global()) {
      const Placement& home = is_finite.placement();
      own = own.to_global({.placement = home, .sbp = NdSbp::broadcast(home.num_axes())});
    }
    is_finite = logical_and(is_finite, own);
  }
  return is_finite;
}

void TracedScaler::begin_run() {
  const std::array<double, 2> numbers{scaler_.get_scale(), 1 / scaler_.get_scale()};
  for (const Input& input : inputs_) {
    const TensorMeta& meta = input.values.meta();
    if (!meta.is_held) continue;
    copy_bytes(*thread_state().context, input.values.impl().data(), meta.device, numbers.data(),
               DeviceType::kCpu, sizeof numbers);
  }
}

std::vector<Tensor> TracedScaler::inputs() const {
  std::vector<Tensor> values;
  for (const Input& input : inputs_)
    values.push_back(input.values);
  return values;
}

void TracedScaler::found(const Optimizer& optimizer, bool is_finite) {
  scaler_.unscaled_[&optimizer] = {.is_finite = is_finite, .has_stepped = true};
}

void TracedScaler::end_run() {
  if (!scaler_.unscaled_.empty()) scaler_.update();
}

}  // namespace flow::optim
