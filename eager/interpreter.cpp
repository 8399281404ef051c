#include "eager/interpreter.h"

#include <algorithm>
#include <array>
#include <bit>

#include "boxing/ranks/fail_ranks.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/device_memory.h"
#include "eager/chooser.h"
#include "ops/creation/copy.h"

namespace flow::eager {

namespace {

// Inputs of nearly all ops fit here; only cat and its like need more.
constexpr size_t kInlineTensors = 8;

// The inputs a kernel sees: those of the call, or their redistributed, strided or copied forms.
class PreparedInputs {
 public:
  explicit PreparedInputs(std::span<const Tensor* const> inputs) : inputs_(inputs) {}

  std::span<const Tensor* const> span() const { return inputs_; }

  void replace(size_t i, Tensor tensor) {
    if (owned_.empty()) {
      owned_.resize(inputs_.size());
      pointers_.assign(inputs_.begin(), inputs_.end());
      inputs_ = pointers_;
    }
    owned_[i] = std::move(tensor);
    pointers_[i] = &owned_[i];
  }

 private:
  std::span<const Tensor* const> inputs_;
  std::vector<Tensor> owned_;
  std::vector<const Tensor*> pointers_;
};

void redistribute_inputs(const Call& call, const Decision& decision, PreparedInputs& inputs) {
  for (size_t i = 0; i < decision.inputs.size(); ++i) {
    const auto& layout = decision.inputs[i];
    if (!layout.placement.defined()) continue;
    inputs.replace(i,
                   boxing::redistribute(call.input(i), layout.placement, layout.nd_sbp, call.site));
  }
}

// A copy of the memory that `input` shows. The strides stay: the kernel is prepared for them, and
// calls with the same metas that do not overlap share it.
Tensor copy_of_memory(const Tensor& input) {
  const TensorImpl& impl = input.impl();
  const size_t bytes = static_cast<size_t>(extent_of(*impl.meta)) * dtype_size(impl.meta->dtype);
  RankContext& rank = *thread_state().context;
  const DeviceType device = impl.meta->device;
  Ref<Storage> storage = allocate_storage(rank, device, bytes);
  copy_bytes(rank, storage->data(), device, impl.data(), device, bytes);
  return Tensor::make(impl.meta, std::move(storage));
}

// An input that overlaps a written one without being the same view would be read half-written.
void separate_overlaps(const Call& call, PreparedInputs& inputs) {
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const TensorImpl& written = call.input(static_cast<size_t>(std::countr_zero(left))).impl();
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& input = *inputs.span()[i];
      if (!input.defined() || &input.impl() == &written) continue;
      const TensorImpl& read = input.impl();
      if (!read.storage || read.storage != written.storage) continue;
      const bool same_view = read.meta == written.meta && read.offset == written.offset;
      const bool are_apart = read.offset + extent_of(*read.meta) <= written.offset ||
                             written.offset + extent_of(*written.meta) <= read.offset;
      if (!same_view && !are_apart) inputs.replace(i, copy_of_memory(input));
    }
  }
}

// Numbers in host memory (tensors without dims) mix with tensors on a device: they are moved there.
void move_numbers(const Call& call, DeviceType device, PreparedInputs& inputs) {
  for (size_t i = 0; call.inputs.size() > 1 && i < call.inputs.size(); ++i) {
    const Tensor& input = *inputs.span()[i];
    if (!input.defined() || input.device() == device) continue;
    inputs.replace(i, to_device(TensorArg(input, call.site), device));
  }
}

TensorView view_of(const Tensor& tensor) {
  if (!tensor.defined()) return {};
  const TensorImpl& impl = tensor.impl();
  return {impl.storage ? impl.data() : nullptr, impl.meta};
}

void bump_versions(const Call& call) {
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const TensorImpl& impl = call.input(static_cast<size_t>(std::countr_zero(left))).impl();
    if (impl.storage) impl.storage->bump_version();
  }
}

// The view op's output: the input's memory under other strides. False where the op must copy.
bool make_view(const Call& call, const Tensor& input, const Decision& decision, Tensor& output) {
  const TensorImpl& source = input.impl();
  const MetaPtr meta = decision.outputs[0];
  ViewSpec view;
  if (!call.op.view(*source.meta, meta->local_shape, call.attrs, view)) return false;
  output =
      Tensor::make(with_strides(meta, view.strides), source.storage, source.offset + view.offset);
  return true;
}

// Whether ranks see different data, so that one may fail alone.
bool has_sharded_input(std::span<const TensorView> inputs) {
  return std::any_of(inputs.begin(), inputs.end(), [](const TensorView& input) {
    return input.meta != nullptr && input.meta->is_global() &&
           std::any_of(input.meta->nd_sbp.begin(), input.meta->nd_sbp.end(),
                       [](Sbp entry) { return !entry.is_broadcast(); });
  });
}

// The op has failed for all ranks where it fails for one: those without the bad value must not wait
// for this one.
void run_kernel(const KernelChoice& kernel, const KernelContext& context) {
  try {
    kernel.fn(context);
  } catch (const Error& error) {
    if (has_sharded_input(context.inputs)) boxing::fail_ranks(context.rank, error.what());
    throw;
  }
}

}  // namespace

void EagerInterpreter::prepare(const Call& call, std::span<const Tensor* const> inputs,
                               const CachedDecision& decision) const {
  std::vector<MetaPtr> metas;
  for (const Tensor* input : inputs) {
    metas.push_back(input->defined() ? input->meta_ptr() : nullptr);
  }
  std::vector<MetaPtr> outputs = decision.outputs;
  size_t next = 0;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    outputs[next++] = call.input(static_cast<size_t>(std::countr_zero(left))).meta_ptr();
  }
  const KernelDef* chosen = nullptr;
  const KernelQuery query{call.op, metas, outputs, call.attrs};
  decision.kernel = kernels_.select(query, outputs[0]->device, only_kernel_, &chosen);
  decision.accepts_blocked = chosen->accepts_blocked;
  const bool has_blocked = std::any_of(metas.begin(), metas.end(), [](MetaPtr meta) {
    return meta != nullptr && meta->blocked != nullptr;
  });
  if (has_blocked && !decision.accepts_blocked) {
    for (MetaPtr& meta : metas) {
      if (meta != nullptr && meta->blocked != nullptr) meta = with_blocked(meta, nullptr);
    }
    decision.kernel = kernels_.select(query, outputs[0]->device, only_kernel_, &chosen);
  }
  if (decision.kernel.outputs.empty()) decision.kernel.outputs = std::move(outputs);
  decision.is_prepared = true;
}

void EagerInterpreter::run(const Call& call, const Decision& base, Tensor* outputs) {
  const auto& decision = static_cast<const CachedDecision&>(base);
  PreparedInputs inputs(call.inputs);
  if (decision.redistributes) redistribute_inputs(call, decision, inputs);

  if (call.op.view != nullptr && call.mutates == 0 && (decision.is_view || !decision.is_prepared)) {
    const Tensor& input = *inputs.span()[0];
    input.make_strided();
    if (make_view(call, input, decision, outputs[0])) {
      decision.is_view = true;
      decision.is_prepared = true;
      return;
    }
  }
  if (call.mutates != 0) {
    for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
      call.input(static_cast<size_t>(std::countr_zero(left))).make_strided();
    }
    separate_overlaps(call, inputs);
  }
  if (decision.outputs[0]->device != DeviceType::kCpu) [[unlikely]]
    move_numbers(call, decision.outputs[0]->device, inputs);
  if (!decision.is_prepared) [[unlikely]]
    prepare(call, inputs.span(), decision);

  RankContext& rank = *thread_state().context;
  bool is_held = false;
  std::array<TensorView, kInlineTensors> inline_inputs;
  std::vector<TensorView> heap_inputs;
  const size_t num_inputs = call.inputs.size();
  TensorView* input_views = inline_inputs.data();
  if (num_inputs > kInlineTensors) {
    heap_inputs.resize(num_inputs);
    input_views = heap_inputs.data();
  }
  for (size_t i = 0; i < num_inputs; ++i) {
    const Tensor& input = *inputs.span()[i];
    if (!decision.accepts_blocked && input.defined()) input.make_strided();
    input_views[i] = view_of(input);
    is_held |= input_views[i].meta != nullptr && input_views[i].meta->is_held;
  }
  std::array<TensorView, kInlineTensors> output_views;
  const size_t num_outputs = decision.outputs.size();
  FLOW_ASSERT(num_outputs <= kInlineTensors, call.op.name, " has too many outputs");
  for (size_t i = 0; i < num_outputs; ++i) {
    if (call.mutates == 0) {
      const MetaPtr meta = decision.kernel.outputs[i];
      // Ranks that hold no part get storage without bytes: aliases know each other by it.
      const size_t bytes = meta->is_held ? meta->local_bytes() : 0;
      outputs[i] = Tensor::make(meta, allocate_storage(rank, meta->device, bytes));
    }
    output_views[i] = view_of(outputs[i]);
    is_held |= output_views[i].meta->is_held;
  }
  if (!is_held) return;  // this rank has no part in the call
  const KernelContext context{{input_views, num_inputs},
                              {output_views.data(), num_outputs},
                              call.attrs,
                              decision.kernel.state.get(),
                              call.random,
                              rank,
                              call.site};
  run_kernel(decision.kernel, context);
  if (call.mutates != 0) bump_versions(call);
}

namespace {
EagerInterpreter& eager_interpreter() {
  auto* interpreter = dynamic_cast<EagerInterpreter*>(thread_state().interpreter);
  FLOW_ASSERT(interpreter != nullptr, "kernels are restricted in eager mode only");
  return *interpreter;
}
}  // namespace

KernelGuard::KernelGuard(std::string name) : outer_(eager_interpreter().only_kernel()) {
  eager_interpreter().set_only_kernel(std::move(name));
  decision_cache().clear();
}

KernelGuard::~KernelGuard() {
  eager_interpreter().set_only_kernel(outer_);
  decision_cache().clear();
}

}  // namespace flow::eager
