// Kernels of batch_norm_hardtanh and its gradient that consist of the kernels of the two ops. They
// take what those take. On blocked layouts one kernel does both (batch_norm_blocked_cpu.cpp).
#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "core/kernel.h"
#include "core/kernel_scratch.h"
#include "ops/elementwise/activation_op.h"
#include "ops/norm/batch_norm_op.h"
#include "ops/register.h"

namespace flow::ops {

namespace {

constexpr size_t kAlignment = 64;

// A kernel of one of the two ops, with the metas that it sees.
struct PartKernel {
  KernelChoice choice;
  std::vector<MetaPtr> outputs;
};

struct PairState {
  BatchNormAttrs norm_attrs;
  HardtanhAttrs clamp_attrs;
  PartKernel norm;
  PartKernel clamp;
  // Of the gradient: dy and y as hardtanh's kernel sees them, and where what it needs in between
  // begins in the scratch memory.
  std::array<MetaPtr, 2> clamp_inputs = {};
  std::array<size_t, 2> strided_at = {};
  size_t scratch_bytes = 0;
};

bool is_any_blocked(std::span<const MetaPtr> metas) {
  return std::any_of(metas.begin(), metas.end(),
                     [](MetaPtr meta) { return meta != nullptr && meta->blocked != nullptr; });
}

// The kernel that the op would choose by itself. Its fn is null if that kernel would take strided
// tensors instead of these.
PartKernel select_part(const KernelQuery& query, std::string_view only) {
  const KernelDef* chosen = nullptr;
  PartKernel part;
  part.choice = cpu_kernels().select(query, DeviceType::kCpu, only, &chosen);
  if (is_any_blocked(query.inputs) && !chosen->accepts_blocked) part.choice.fn = nullptr;
  part.outputs.assign(query.outputs.begin(), query.outputs.end());
  if (!part.choice.outputs.empty()) part.outputs = part.choice.outputs;
  return part;
}

std::shared_ptr<PairState> state_for(const KernelQuery& query) {
  const auto& attrs = query.attrs_as<BatchNormHardtanhAttrs>();
  auto state = std::make_shared<PairState>();
  state->norm_attrs.eps = attrs.eps;
  state->clamp_attrs = {attrs.min_val, attrs.max_val};
  return state;
}

void run_part(const KernelContext& ctx, const PartKernel& part, const void* attrs,
              std::span<const TensorView> inputs, std::span<const TensorView> outputs) {
  part.choice.fn({.inputs = inputs,
                  .outputs = outputs,
                  .attrs = attrs,
                  .state = part.choice.state.get(),
                  .random = {},
                  .rank = ctx.rank,
                  .site = ctx.site});
}

// ---- forward: hardtanh in place

void run_forward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PairState>();
  run_part(ctx, state.norm, &state.norm_attrs, ctx.inputs, ctx.outputs);
  const auto y = ctx.outputs.first(1);
  run_part(ctx, state.clamp, &state.clamp_attrs, y, y);
}

KernelChoice select_forward(const KernelQuery& query, std::string_view only) {
  auto state = state_for(query);
  state->norm = select_part({kBatchNorm, query.inputs, query.outputs, &state->norm_attrs}, only);
  const MetaPtr y = state->norm.outputs[0];
  state->clamp = select_part({kHardtanh, {&y, 1}, {&y, 1}, &state->clamp_attrs}, only);
  const bool keeps_layout = state->clamp.outputs[0] == y;
  if (state->norm.choice.fn == nullptr || state->clamp.choice.fn == nullptr || !keeps_layout)
    return {};
  KernelScratch scratch = scratch_of(state->norm.choice.state);
  std::vector<MetaPtr> outputs = state->norm.outputs;
  return with_scratch({run_forward, std::move(state), std::move(outputs)}, std::move(scratch));
}

// ---- backward: the gradient of hardtanh in scratch memory

void run_backward(const KernelContext& ctx) {
  const auto& state = ctx.state_as<PairState>();
  const Ref<Storage> memory = ctx.scratch(state.scratch_bytes);
  std::array<TensorView, 2> inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs[i] = {ctx.inputs[i].data, state.clamp_inputs[i]};
    const BlockedLayout* layout = ctx.inputs[i].meta->blocked;
    if (layout == state.clamp_inputs[i]->blocked) continue;
    inputs[i].data = memory->data() + state.strided_at[i];
    layout->to_strided(*layout, ctx.inputs[i].data, inputs[i].data);
  }
  const TensorView passed{memory->data(), state.clamp.outputs[0]};
  run_part(ctx, state.clamp, &state.clamp_attrs, inputs, {&passed, 1});
  const std::array<TensorView, 4> operands{passed, ctx.inputs[2], ctx.inputs[3], ctx.inputs[4]};
  run_part(ctx, state.norm, &state.norm_attrs, operands, ctx.outputs);
}

size_t aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// Single ops would convert a blocked tensor that meets another layout.
KernelChoice select_backward(const KernelQuery& query, std::string_view only) {
  auto state = state_for(query);
  const bool is_one_layout = query.input(0).blocked == query.input(1).blocked;
  for (size_t i = 0; i < 2; ++i) {
    const MetaPtr meta = query.inputs[i];
    state->clamp_inputs[i] =
        is_one_layout || meta->blocked == nullptr ? meta : with_blocked(meta, nullptr);
  }
  const MetaPtr plain = query.outputs[0];
  state->clamp =
      select_part({kHardtanhGrad, state->clamp_inputs, {&plain, 1}, &state->clamp_attrs}, only);
  const MetaPtr passed = state->clamp.outputs[0];
  const std::vector<MetaPtr> operands{passed, query.inputs[2], query.inputs[3], query.inputs[4]};
  state->norm =
      select_part({kBatchNormBackward, operands, query.outputs, &state->norm_attrs}, only);
  if (state->norm.choice.fn == nullptr || state->clamp.choice.fn == nullptr) return {};
  state->scratch_bytes = aligned(passed->local_bytes());
  for (size_t i = 0; i < 2; ++i) {
    if (state->clamp_inputs[i] == query.inputs[i]) continue;
    state->strided_at[i] = state->scratch_bytes;
    state->scratch_bytes += aligned(state->clamp_inputs[i]->local_bytes());
  }
  KernelScratch scratch = scratch_of(state->norm.choice.state);
  scratch.push_back({static_cast<int64_t>(state->scratch_bytes)});
  std::vector<MetaPtr> outputs = state->norm.outputs;
  return with_scratch({run_backward, std::move(state), std::move(outputs)}, std::move(scratch));
}

template <bool kBackward, bool kReference>
KernelChoice select_pair(const KernelQuery& query) {
  const std::string_view only = kReference ? "reference" : "";
  return kBackward ? select_backward(query, only) : select_forward(query, only);
}

template <bool kBackward>
void add_kernels(KernelTable& table, const OpDef& op) {
  table.add(op, DeviceType::kCpu, {"reference", select_pair<kBackward, true>});
  table.add(op, DeviceType::kCpu, {"pair", select_pair<kBackward, false>, true});
}

}  // namespace

void register_batch_norm_hardtanh(KernelTable& table);

void register_batch_norm_hardtanh(KernelTable& table) {
  add_kernels<false>(table, kBatchNormHardtanh);
  add_kernels<true>(table, kBatchNormHardtanhBackward);
}

}  // namespace flow::ops
