#include "eager/interpreter.h"

#include <array>
#include <bit>

#include "boxing/check_replicas.h"
#include "boxing/redistribute.h"
#include "core/context.h"
#include "core/device/device_memory.h"
#include "core/env.h"
#include "core/grad_mode.h"
#include "core/strided_twin.h"
#include "core/traced.h"
#include "core/view_link.h"
#include "eager/chooser.h"
#include "eager/run_kernel.h"
#include "ops/creation/copy.h"
#include "ops/creation/copy_op.h"
#include "ops/creation/creation_op.h"

namespace flow::eager {

namespace {

// Inputs and outputs of nearly all ops fit here; only cat and similar ops need more.
constexpr size_t kInlineTensors = 8;

// The inputs that a kernel sees: those of the call, or their redistributed, strided or copied
// forms.
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

// Returns a copy of the memory that `input` shows. The copy keeps the strides, because the kernel
// is prepared for them; calls with the same metas but without an overlap use the same kernel.
Tensor copy_of_memory(const Tensor& input) {
  const TensorImpl& impl = input.impl();
  const size_t bytes = bytes_spanned(*impl.meta);
  RankContext& rank = *thread_state().context;
  const DeviceType device = impl.meta->device;
  Ref<Storage> storage = allocate_storage(rank, device, bytes);
  copy_bytes(rank, storage->data(), device, impl.data(), device, bytes);
  return Tensor::make(impl.meta, std::move(storage));
}

// Copies each input that overlaps a written one and is not the same view: the kernel would read it
// half-written.
void separate_overlaps(const Call& call, PreparedInputs& inputs) {
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const TensorImpl& written = call.input(static_cast<size_t>(std::countr_zero(left))).impl();
    for (size_t i = 0; i < call.inputs.size(); ++i) {
      const Tensor& input = *inputs.span()[i];
      if (!input.defined() || &input.impl() == &written) continue;
      const TensorImpl& read = input.impl();
      if (!read.storage || read.storage != written.storage) continue;
      const bool same_view = read.meta == written.meta && read.offset == written.offset;
      if (!same_view && !are_apart(*read.meta, read.offset, *written.meta, written.offset))
        inputs.replace(i, copy_of_memory(input));
    }
  }
}

// Only a copy may read the memory of another device.
void use_memory(const Call& call, const PreparedInputs& inputs, OthersMemory& others) {
  const bool is_copy = &call.op == &ops::kToDevice;
  for (const Tensor* input : inputs.span()) {
    if (!input->defined()) continue;
    others.add(input->impl(), call.op.name, call.site,
               is_copy ? OthersMemory::Where::kAnywhere : OthersMemory::Where::kHere);
  }
}

void move_numbers(const Call& call, const KernelCall& kernel, PreparedInputs& inputs) {
  for (size_t i = 0; i < kernel.forms.size(); ++i) {
    if (kernel.forms[i] != InputForm::kOnDevice) continue;
    const DeviceType device = kernel.inputs[i]->device;
    inputs.replace(i, to_device(TensorArg(*inputs.span()[i], call.site), device));
  }
}

// A traced tensor has no memory; it may be a value of a trace that has ended.
void refuse_traced(const Call& call) {
  for (const Tensor* input : call.inputs) {
    if (!input->defined() || input->impl().storage) continue;
    if (input->impl().trace != nullptr) throw_traced(call.op.name, *input, call.site);
  }
}

// Returns where the values of a tensor are stored, in the form that `meta` describes.
inline TensorView view_of(const Tensor& tensor, MetaPtr meta) {
  if (meta == nullptr) return {};
  const TensorImpl& impl = tensor.impl();
  if (!impl.storage) return {nullptr, meta};
  if (impl.meta != meta && impl.meta->blocked != nullptr) [[unlikely]]
    return {strided_twin(impl)->data(), meta};
  return {impl.data(), meta};
}

void bump_versions(const Call& call) {
  for (uint32_t left = call.mutates; left != 0; left &= left - 1) {
    const TensorImpl& impl = call.input(static_cast<size_t>(std::countr_zero(left))).impl();
    if (impl.storage) impl.storage->bump_version();
  }
}

// Returns whether the meta of a written input has changed, so that the call needs another decision.
bool make_written_inputs_writable(const Call& call) {
  bool has_changed = false;
  for (uint32_t left = call.mutates; left != 0; left &= left - 1)
    has_changed |= make_writable(call.input(static_cast<size_t>(std::countr_zero(left))).impl());
  return has_changed;
}

// Returns whether the meta of an input has changed because its strided twin was written.
bool follow_written_twins(const Call& call) {
  bool has_changed = false;
  for (const Tensor* input : call.inputs)
    has_changed |= input->defined() && follow_written_twin(input->impl());
  return has_changed;
}

Tensor make_view(const Call& call, const KernelCall& kernel, const Tensor& input) {
  const TensorImpl& source = input.impl();
  const int64_t offset = view_offset(kernel, call.op, call.attrs);
  const MetaPtr meta = kernel.outputs[0];
  if (kernel.forms[0] == InputForm::kStrided && source.storage) [[unlikely]]
    return Tensor::make(meta, strided_twin(source), offset);
  return Tensor::make(meta, source.storage, source.offset + offset);
}

// The output is uninitialised. Ranks that hold no part get storage without bytes, by which aliases
// are recognised.
inline Tensor make_output(RankContext& rank, MetaPtr meta) {
  const size_t bytes = meta->is_held ? meta->local_bytes() : 0;
  return Tensor::make(meta, allocate_storage(rank, meta->device, bytes));
}

// The outputs of a call in which this rank has no part.
void make_absent_outputs(const Call& call, const KernelCall& kernel,
                         std::span<const Tensor* const> inputs, Tensor* outputs) {
  if (call.mutates != 0) return;
  for (size_t i = 0; i < kernel.outputs.size(); ++i) {
    outputs[i] = kernel.shares_input ? make_view(call, kernel, *inputs[0])
                                     : make_output(*thread_state().context, kernel.outputs[i]);
  }
}

void launch(const Call& call, const KernelCall& kernel, std::span<const Tensor* const> inputs,
            Tensor* outputs) {
  RankContext& rank = *thread_state().context;
  const size_t num_outputs = kernel.outputs.size();
  std::array<TensorView, kInlineTensors> inline_views;
  std::vector<TensorView> heap_views;
  TensorView* views = inline_views.data();
  if (inputs.size() + num_outputs > kInlineTensors) [[unlikely]] {
    heap_views.resize(inputs.size() + num_outputs);
    views = heap_views.data();
  }
  TensorView* const output_views = views + inputs.size();
  for (size_t i = 0; i < inputs.size(); ++i)
    views[i] = view_of(*inputs[i], kernel.inputs[i]);
  for (size_t i = 0; i < num_outputs; ++i) {
    if (call.mutates == 0) outputs[i] = make_output(rank, kernel.outputs[i]);
    output_views[i] = view_of(outputs[i], kernel.outputs[i]);
  }
  run_kernel(kernel.fn, {{views, inputs.size()},
                         {output_views, num_outputs},
                         call.attrs,
                         kernel.state.get(),
                         call.random,
                         rank,
                         call.site});
  if (call.mutates != 0) bump_versions(call);
}

// Memory without values differs between ranks.
void check_results(const Call& call, std::span<const Tensor> outputs) {
  if (&call.op == &ops::kEmpty) return;
  for (const Tensor& output : outputs)
    boxing::check_replicas(output, call.op.name, call.site);
}

}  // namespace

EagerInterpreter::EagerInterpreter(const KernelTable& kernels)
    : kernels_(kernels), checks_replicas_(env_flag("FLOW_CHECK")) {}

const KernelCall& EagerInterpreter::decide(const Call& call, std::span<const Tensor* const> inputs,
                                           const CachedDecision& decision) const {
  std::vector<MetaPtr> metas;
  for (const Tensor* input : inputs)
    metas.push_back(input->defined() ? input->meta_ptr() : nullptr);
  // A linked view may show memory that redistributing its base has made, but not the base's. The
  // elements of an expanded one are separate, so that replace() can write them.
  const bool allows_view =
      !decision.links_view || (call.op.write_back != &cannot_write_back &&
                               !share_memory(call.input(0).impl(), inputs[0]->impl()));
  return decision.kernel_call.emplace(make_kernel_call({.op = call.op,
                                                        .inputs = metas,
                                                        .outputs = decision.outputs,
                                                        .attrs = call.attrs,
                                                        .mutates = call.mutates,
                                                        .allows_view = allows_view},
                                                       kernels_, only_kernel_));
}

void EagerInterpreter::run(const Call& call, const Decision& base, Tensor* outputs) {
  refuse_traced(call);
  if (call.mutates != 0 && make_written_inputs_writable(call)) [[unlikely]]
    return run(call, thread_state().chooser->choose(call), outputs);
  const auto& decision = static_cast<const CachedDecision&>(base);
  PreparedInputs inputs(call.inputs);
  if (decision.redistributes) redistribute_inputs(call, decision, inputs);
  const KernelCall& kernel =
      decision.kernel_call ? *decision.kernel_call : decide(call, inputs.span(), decision);
  if (kernel.has_blocked_input && follow_written_twins(call)) [[unlikely]]
    return run(call, thread_state().chooser->choose(call), outputs);
  switch (kernel.kind) {
    case KernelCall::Kind::kNothing:
      make_absent_outputs(call, kernel, inputs.span(), outputs);
      break;
    case KernelCall::Kind::kView:
      outputs[0] = make_view(call, kernel, *inputs.span()[0]);
      break;
    case KernelCall::Kind::kKernel: {
      OthersMemory others(*thread_state().context);
      use_memory(call, inputs, others);
      if (call.mutates != 0) separate_overlaps(call, inputs);
      if (kernel.moves_numbers) [[unlikely]]
        move_numbers(call, kernel, inputs);
      launch(call, kernel, inputs.span(), outputs);
      if (checks_replicas_) [[unlikely]]
        check_results(call, {outputs, kernel.outputs.size()});
      break;
    }
  }
  if (decision.links_view) [[unlikely]]
    link_view(call, outputs[0]);
}

void EagerInterpreter::replace(const Tensor& target, const Tensor& value) {
  const NoGradGuard not_the_users;
  target.copy_(value);
}

namespace {
EagerInterpreter& eager_interpreter() {
  const ThreadState& state = thread_state();
  FLOW_ASSERT(state.trace == nullptr, "kernels are restricted in eager mode only");
  return *static_cast<EagerInterpreter*>(state.interpreter);
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
