#include "tests/support/sharded_call.h"

#include <random>

#include "tests/support/simulated_ranks.h"
#include "tests/support/values.h"

namespace flow::contract {

namespace {

constexpr size_t kNumLayouts = 16;  // along one axis

size_t number_of(Sbp sbp) {
  return sbp.is_split() ? 8 + static_cast<size_t>(sbp.dim()) : static_cast<size_t>(sbp.kind());
}

size_t number_of(const NdSbp& nd_sbp) {
  size_t number = 0;
  for (const Sbp sbp : nd_sbp)
    number = number * kNumLayouts + number_of(sbp);
  return number;
}

size_t num_layouts(const Placement& placement) {
  size_t count = 1;
  for (int64_t axis = 0; axis < placement.num_axes(); ++axis)
    count *= kNumLayouts;
  return count;
}

Tensor copy_of(const Tensor& tensor) {
  return tensor.defined() ? make_guarded(tensor.meta_ptr(), read_values(tensor)) : Tensor();
}

}  // namespace

Draw make_draw(const OpSample& sample, DType dtype, uint64_t seed) {
  Draw draw{capture_first(sample, dtype, seed), {}, seed, dtype};
  draw.call.random = {.seed = 1, .stream = seed};
  Inputs inputs;
  for (const Tensor& input : draw.call.inputs)
    inputs.push_back(copy_of(input));
  draw.expected = *run_kernel(draw.call, inputs, local_outputs(draw.call));
  return draw;
}

Tolerance tolerance_of(const RawCall& call) {
  Tolerance tolerance = sharding_tolerance(DType::kFloat64);
  for (const Tensor& input : call.inputs) {
    if (!input.defined()) continue;
    const Tolerance own = sharding_tolerance(input.dtype());
    if (own.absolute > tolerance.absolute) tolerance = own;
  }
  return tolerance;
}

ShardedCall::ShardedCall(const Draw& draw, const Placement& placement)
    : draw_(&draw),
      placement_(placement),
      inputs_(draw.call.inputs.size(), std::vector<Parts>(num_layouts(placement))),
      outputs_(draw.expected.size(), std::vector<Parts>(num_layouts(placement))) {}

ShardedCall::ShardedCall(const Draw& draw, int64_t num_ranks)
    : ShardedCall(draw, ranks(num_ranks)) {}

const ShardedCall::Parts& ShardedCall::parts(std::vector<Parts>& layouts, const Tensor& tensor,
                                             const NdSbp& nd_sbp) {
  Parts& parts = layouts[number_of(nd_sbp)];
  for (auto r = static_cast<int64_t>(parts.metas.size()); r < num_ranks(); ++r) {
    parts.metas.push_back(tensor.defined()
                              ? global_meta(tensor.shape(), tensor.dtype(), placement_, nd_sbp, r)
                              : nullptr);
  }
  return parts;
}

MetaPtr ShardedCall::input_meta(size_t i, const NdSbp& nd_sbp, int64_t rank) {
  return parts(inputs_[i], draw_->call.inputs[i], nd_sbp).metas[static_cast<size_t>(rank)];
}

MetaPtr ShardedCall::output_meta(size_t i, const NdSbp& nd_sbp, int64_t rank) {
  return parts(outputs_[i], draw_->expected[i], nd_sbp).metas[static_cast<size_t>(rank)];
}

const std::vector<Tensor>& ShardedCall::input_parts(size_t i, const NdSbp& nd_sbp) {
  Parts& parts = inputs_[i][number_of(nd_sbp)];
  if (!parts.tensors.empty()) return parts.tensors;
  const Tensor& whole = draw_->call.inputs[i];
  if (whole.defined()) {
    std::mt19937_64 random(((draw_->seed * 16 + static_cast<uint64_t>(num_ranks())) * 64 + i) *
                               kNumLayouts +
                           number_of(nd_sbp));
    parts.tensors = cut(whole, nd_sbp, placement_, random);
  } else {
    parts.tensors.resize(static_cast<size_t>(num_ranks()));
  }
  return parts.tensors;
}

Tensor ShardedCall::own_input(size_t i, const NdSbp& nd_sbp, int64_t rank) {
  const Tensor& part = input_parts(i, nd_sbp)[static_cast<size_t>(rank)];
  return draw_->is_mutated(i) ? copy_of(part) : part;
}

}  // namespace flow::contract
