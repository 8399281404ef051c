#include "core/kernel_call.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace flow {

namespace {

bool is_blocked(MetaPtr meta) {
  return meta != nullptr && meta->blocked != nullptr;
}

bool is_any_held(std::span<const MetaPtr> metas) {
  return std::any_of(metas.begin(), metas.end(),
                     [](MetaPtr meta) { return meta != nullptr && meta->is_held; });
}

void use_strided(KernelCall& call, size_t input) {
  if (!is_blocked(call.inputs[input])) return;
  call.inputs[input] = with_blocked(call.inputs[input], nullptr);
  call.forms[input] = InputForm::kStrided;
}

void use_strided(KernelCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i)
    use_strided(call, i);
}

// Written tensors are strided, and the outputs are these tensors.
void use_written_inputs(const KernelCallQuery& query, KernelCall& call) {
  size_t next = 0;
  for (uint32_t left = query.mutates; left != 0; left &= left - 1) {
    const auto input = static_cast<size_t>(std::countr_zero(left));
    use_strided(call, input);
    call.outputs[next++] = call.inputs[input];
  }
}

// Tensors without dims in host memory may be combined with tensors on a device.
void move_numbers(KernelCall& call) {
  const DeviceType device = call.outputs[0]->device;
  if (device == DeviceType::kCpu || call.inputs.size() < 2) return;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const MetaPtr meta = call.inputs[i];
    if (meta == nullptr || meta->device == device) continue;
    call.inputs[i] = local_meta(meta->local_shape, meta->dtype, device);
    call.forms[i] = InputForm::kOnDevice;
    call.moves_numbers = true;
  }
}

bool choose_view(const KernelCallQuery& query, KernelCall& call) {
  if (query.op.view == nullptr || query.mutates != 0 || !query.allows_view) return false;
  const MetaPtr source = call.inputs[0];
  const MetaPtr strided = is_blocked(source) ? with_blocked(source, nullptr) : source;
  const auto view = bind_view(query.op, strided, call.outputs[0], query.attrs);
  if (!view) return false;
  use_strided(call, 0);
  call.outputs[0] = view->meta;
  call.view_offset = view->offset;
  return true;
}

// If a kernel takes no blocked layouts, a kernel is chosen again for strided inputs.
void choose_kernel(const KernelCallQuery& query, const KernelTable& kernels, std::string_view only,
                   KernelCall& call) {
  const KernelDef* chosen = nullptr;
  const DeviceType device = call.outputs[0]->device;
  const KernelQuery of_kernel{query.op, call.inputs, call.outputs, query.attrs};
  KernelChoice choice = kernels.select(of_kernel, device, only, &chosen);
  if (!chosen->accepts_blocked && std::any_of(call.inputs.begin(), call.inputs.end(), is_blocked)) {
    use_strided(call);
    choice = kernels.select(of_kernel, device, only);
  }
  call.fn = choice.fn;
  call.scratch = scratch_of(choice.state);
  call.state = std::move(choice.state);
  if (!choice.outputs.empty()) call.outputs = std::move(choice.outputs);
}

}  // namespace

KernelCall make_kernel_call(const KernelCallQuery& query, const KernelTable& kernels,
                            std::string_view only) {
  KernelCall call;
  call.inputs.assign(query.inputs.begin(), query.inputs.end());
  call.outputs.assign(query.outputs.begin(), query.outputs.end());
  call.forms.assign(query.inputs.size(), InputForm::kAsIs);
  call.has_blocked_input = std::any_of(query.inputs.begin(), query.inputs.end(), is_blocked);
  if (!is_any_held(query.inputs) && !is_any_held(query.outputs)) {
    call.shares_input = choose_view(query, call);
    return call;
  }
  if (choose_view(query, call)) {
    call.kind = KernelCall::Kind::kView;
    return call;
  }
  call.kind = KernelCall::Kind::kKernel;
  use_written_inputs(query, call);
  if (query.chooses_kernel) {
    move_numbers(call);
    choose_kernel(query, kernels, only, call);
  } else {
    use_strided(call);
  }
  return call;
}

std::optional<BoundView> bind_view(const OpDef& op, MetaPtr input, MetaPtr output,
                                   const void* attrs) {
  ViewSpec view;
  if (op.view == nullptr || !op.view(*input, output->local_shape, attrs, view)) return {};
  return BoundView{with_strides(output, view.strides), view.offset};
}

int64_t view_offset(const KernelCall& call, const OpDef& op, const void* attrs) {
  ViewSpec view;
  const bool is_view = op.view(*call.inputs[0], call.outputs[0]->local_shape, attrs, view);
  FLOW_ASSERT(is_view, op.name, " is only a view for some values of its attrs");
  return view.offset;
}

bool has_sharded_input(std::span<const TensorView> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const TensorView& input) {
    return input.meta != nullptr && input.meta->is_global() &&
           std::any_of(input.meta->nd_sbp.begin(), input.meta->nd_sbp.end(),
                       [](Sbp entry) { return !entry.is_broadcast(); });
  });
}

}  // namespace flow
