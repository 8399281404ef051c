#include "tests/support/sharded_call.h"

#include <random>
#include <utility>

#include "tests/support/simulated_ranks.h"
#include "tests/support/values.h"

namespace flow::contract {

namespace {

constexpr size_t kNumLayouts = 16;

size_t number_of(Sbp sbp) {
  return sbp.is_split() ? 8 + static_cast<size_t>(sbp.dim()) : static_cast<size_t>(sbp.kind());
}

Tensor copy_of(const Tensor& tensor) {
  return tensor.defined() ? make_guarded(tensor.meta_ptr(), read_values(tensor)) : Tensor();
}

}  // namespace

Draw make_draw(const OpSample& sample, DType dtype, uint64_t seed) {
  Draw draw{capture_first(sample, dtype, seed), {}, seed};
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

ShardedCall::ShardedCall(const Draw& draw, int64_t num_ranks)
    : draw_(&draw),
      placement_(ranks(num_ranks)),
      inputs_(draw.call.inputs.size(), std::vector<Parts>(kNumLayouts)),
      outputs_(draw.expected.size(), std::vector<Parts>(kNumLayouts)) {}

const ShardedCall::Parts& ShardedCall::parts(std::vector<Parts>& layouts, const Tensor& tensor,
                                             Sbp sbp) {
  Parts& parts = layouts[number_of(sbp)];
  for (auto r = static_cast<int64_t>(parts.metas.size()); r < num_ranks(); ++r) {
    parts.metas.push_back(tensor.defined()
                              ? global_meta(tensor.shape(), tensor.dtype(), placement_, sbp, r)
                              : nullptr);
  }
  return parts;
}

MetaPtr ShardedCall::input_meta(size_t i, Sbp sbp, int64_t rank) {
  return parts(inputs_[i], draw_->call.inputs[i], sbp).metas[static_cast<size_t>(rank)];
}

MetaPtr ShardedCall::output_meta(size_t i, Sbp sbp, int64_t rank) {
  return parts(outputs_[i], draw_->expected[i], sbp).metas[static_cast<size_t>(rank)];
}

const std::vector<Tensor>& ShardedCall::input_parts(size_t i, Sbp sbp) {
  Parts& parts = inputs_[i][number_of(sbp)];
  if (!parts.tensors.empty()) return parts.tensors;
  const Tensor& whole = draw_->call.inputs[i];
  if (whole.defined()) {
    std::mt19937_64 random(((draw_->seed * 16 + static_cast<uint64_t>(num_ranks())) * 64 + i) *
                               kNumLayouts +
                           number_of(sbp));
    parts.tensors = cut(whole, sbp, placement_, random);
  } else {
    parts.tensors.resize(static_cast<size_t>(num_ranks()));
  }
  return parts.tensors;
}

Inputs ShardedCall::own_inputs(const std::vector<Sbp>& layouts, int64_t rank) {
  Inputs own;
  for (size_t i = 0; i < layouts.size(); ++i) {
    const Tensor& part = input_parts(i, layouts[i])[static_cast<size_t>(rank)];
    own.push_back(draw_->is_mutated(i) ? copy_of(part) : part);
  }
  return own;
}

std::vector<std::vector<Tensor>> ShardedCall::run(const SbpSignature& signature,
                                                  const KernelRun& run) {
  std::vector<std::vector<Tensor>> results(draw_->expected.size());
  for (int64_t r = 0; r < num_ranks(); ++r) {
    std::vector<MetaPtr> metas;
    for (size_t i = 0; i < results.size(); ++i)
      metas.push_back(output_meta(i, signature.outputs[i], r));
    auto outputs = run_kernel(draw_->call, own_inputs(signature.inputs, r), metas, run);
    if (!outputs) throw Unsupported("the kernel does not apply");
    for (size_t i = 0; i < outputs->size(); ++i)
      results[i].push_back(std::move((*outputs)[i]));
  }
  return results;
}

}  // namespace flow::contract
